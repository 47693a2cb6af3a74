"""What waits to be marked or recorded, and the rounds that are with the database: groups that share one commit.

A statement costs as much as eight of its rows, so a round should be large; but while everything is in one round, either
the database or the pump has nothing to do. So half of the connections go in a round, and two rounds take turns.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from console.dispatch import recorder
from console.dispatch.asker import Asker
from console.dispatch.delivery import Delivery
from console.dispatch.recorder import Outcome

# Outcomes alone (nothing waits for a mark) are put on record at the latest after this.
RECORD_WITHIN_S = 0.01
# A message that is ready waits at the latest so long for others to share its commit.
MARK_WITHIN_S = 0.002
NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Round:
    """One statement under way: what it marks, by channel, and what it records."""

    marking: dict[int, Delivery]
    recording: list[Outcome]


class Rounds:
    """See the module. Times are seconds of time.monotonic()."""

    def __init__(self, *, size: int, provider_name: str):
        self._size = size
        self._provider_name = provider_name
        self._ready: dict[int, Delivery] = {}
        self._ready_since = 0.0
        self._finished: list[Outcome] = []
        self._finished_since = 0.0
        self._under_way: dict[Asker, Round] = {}

    @property
    def is_under_way(self) -> bool:
        return bool(self._under_way)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing under way and nothing to record."""
        return not (self._under_way or self._finished)

    @property
    def is_full(self) -> bool:
        """Whether enough messages are ready for a round."""
        return len(self._ready) >= self._size

    @property
    def unrecorded(self) -> list[Outcome]:
        """The outcomes that are in no round yet."""
        return self._finished

    def add_ready(self, fd: int, delivery: Delivery, now: float) -> None:
        """Takes in a message that waits for its mark on the channel `fd`."""
        if not self._ready:
            self._ready_since = now
        self._ready[fd] = delivery

    def drop_ready(self, fd: int) -> None:
        """Forgets a message that will not be handed over."""
        self._ready.pop(fd, None)

    def drop_all_ready(self) -> None:
        self._ready = {}

    def add_finished(self, outcome: Outcome, now: float) -> None:
        """Takes in an outcome to be recorded."""
        if not self._finished:
            self._finished_since = now
        self._finished.append(outcome)

    def is_marking(self, fd: int) -> bool:
        """Whether the message on this channel is in a round: it may be marked already."""
        return any(fd in each.marking for each in self._under_way.values())

    def due_at(self, *, busy_count: int) -> float:
        """Gives when the next round should start; `busy_count` messages are with the provider, ready ones included."""
        due = NEVER
        if self._ready:
            is_last = not self._under_way and len(self._ready) >= busy_count
            due = 0.0 if self.is_full or is_last else self._ready_since + MARK_WITHIN_S
        if self._finished:
            is_last = not busy_count or len(self._finished) >= self._size * 2
            due = min(due, 0.0 if is_last else self._finished_since + RECORD_WITHIN_S)
        return due

    def start(self, asker: Asker, *, slot: int) -> None:
        """Asks the database for the marks of all that is ready, and to record all that has finished."""
        started = Round(self._ready, self._finished)
        self._ready, self._finished = {}, []
        self._under_way[asker] = started
        values = recorder.record_values(
            outcomes=started.recording,
            marks=[(d.claimed, d.line.job.list_id) for d in started.marking.values()],
            provider=self._provider_name,
            slot=slot,
        )
        asker.ask(recorder.RECORD, values)

    def end(self, asker: Asker) -> Round:
        """Gives the round that the asker's answer is for."""
        return self._under_way.pop(asker)

    def lose(self) -> Iterable[tuple[int, Delivery]]:
        """The database is gone: keeps what has finished, gives what was to be marked, with its channel."""
        lost, self._under_way = list(self._under_way.values()), {}
        for each in lost:
            self._finished = each.recording + self._finished
        return [item for each in lost for item in each.marking.items()]
