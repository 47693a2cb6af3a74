"""How a pump comes by its rows: which campaign it claims from next, and which of its claims are through."""

from typing import Any

from psycopg import Connection

from console.config import Settings
from console.dispatch import recorder
from console.dispatch.asker import Asker
from console.dispatch.jobs import JobBook
from console.dispatch.queues import Composer, Outlet, Queue
from console.dispatch.recorder import Claimed
from console.dispatch.timing import claim_size

# With nothing to claim, what there is to send is looked at again at the latest after this.
LONGEST_REST_S = 1.0
NEVER = float("inf")


class Claimer:
    """Asks for one claim at a time. Times are seconds of time.monotonic()."""

    def __init__(self, settings: Settings, *, lane: str, outlet: Outlet):
        self._settings = settings
        self._jobs = JobBook(settings, lane=lane, outlet=outlet)
        self._book = ClaimBook()
        self._rests_until = 0.0
        self._asked: tuple[Queue, int] | None = None  # the line, and the identity that the rows will be held under

    @property
    def is_asking(self) -> bool:
        return self._asked is not None

    @property
    def due_at(self) -> float:
        """When it can ask again."""
        return NEVER if self._asked else self._rests_until

    def wake(self) -> None:
        """Somebody has committed new work; may be called from any thread."""
        self._jobs.wake()
        self._rests_until = 0.0

    def ask(self, asker: Asker, now: float, *, worker_id: int, slot: int) -> None:
        """Asks for a claim, if there may be something to claim."""
        if now < self._rests_until:
            return
        if self._jobs.is_stale(now):
            self._jobs.read(asker.connection, now)
        line = self._jobs.next_line(now)
        if line is None:
            self._rests_until = now + min(self._settings.tick_s, LONGEST_REST_S)
            return
        values = line.claim_values(
            worker_id=worker_id,
            limit=claim_size(self._settings.batch_size, self._settings.max_rate),
            slot=slot,
            through_ids=self._book.take_through(),
        )
        asker.ask(line.statement, values)
        self._asked = line, worker_id

    def take(self, connection: Connection, answer: list[Any], now: float) -> list[tuple[Claimed, Composer]]:
        """Reads the answer: the rows that are ours now, each with what makes its message."""
        assert self._asked is not None
        line, worker_id = self._asked
        self._asked = None
        rows, last = recorder.claimed_rows(
            answer, worker_id=worker_id, account_id=line.account_id, campaign_id=line.campaign_id
        )
        self._book.open(rows)
        self._jobs.found(line, last, now)
        return list(zip(rows, line.composers(connection, rows, now), strict=True))

    def moved_on(self, claimed: Claimed) -> None:
        """To be called once for each row when the database has it in another state than `sending`, or another's."""
        self._book.moved_on(claimed)

    def lose(self) -> None:
        """The database is gone, and with it the answer that was waited for."""
        self._asked = None


class ClaimBook:
    """Counts down the sends of each claim. One forgotten too late costs a row; one forgotten too early, its sends."""

    def __init__(self) -> None:
        self._left: dict[int, int] = {}
        self._through: list[int] = []

    def open(self, rows: list[Claimed]) -> None:
        """Takes in the sends of one claim."""
        if rows:
            self._left[rows[0].claim_id] = len(rows)

    def moved_on(self, claimed: Claimed) -> None:
        """See Claimer."""
        left = self._left.get(claimed.claim_id, 0) - 1
        if left > 0:
            self._left[claimed.claim_id] = left
        elif left == 0:
            del self._left[claimed.claim_id]
            self._through.append(claimed.claim_id)

    def take_through(self) -> list[int]:
        """Gives the claims whose sends have all moved on, each once."""
        through, self._through = self._through, []
        return through
