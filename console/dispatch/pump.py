"""The sending thread: claims rows, keeps its connections busy, marks and records in groups.

A turn of the loop: ask the database for what is needed next, unless it is still at the last question; begin a message
on every free connection; hear what the provider and the database say. While the database marks one group of messages
and records another's outcomes, the next group's bodies are made and sent. One slow answer holds up one connection,
never the thread; there is no lock and no hand-off per message.
"""

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import psycopg
import structlog

from console.config import Settings
from console.content.source import Unfillable
from console.dispatch import recorder, store
from console.dispatch.asker import Asker
from console.dispatch.connections import Connections
from console.dispatch.delivery import Delivery
from console.dispatch.gate import Gate
from console.dispatch.jobs import JobBook, Line
from console.dispatch.link import Link
from console.dispatch.outcomes import given_back, not_composed, outcome_of
from console.dispatch.recorder import Outcome
from console.dispatch.timing import claim_size, pace_interval_s
from console.providers.base import Answer, Channel, Provider, Ready, Trouble, Untouched

log = structlog.get_logger(__name__)

# Outcomes alone (nothing waits for a mark) are put on record at the latest after this.
RECORD_WITHIN_S = 0.01
# While other connections work, how long to wait after one could not be opened.
OPEN_AGAIN_S = 5.0
LONGEST_SLEEP_S = 1.0
NEVER = float("inf")


class Pump(threading.Thread):
    """See the module. `stop` asks it to drain; it ends by itself when all that was marked is answered."""

    def __init__(
        self, settings: Settings, *, provider: Provider, gate: Gate, connect: Callable[[], psycopg.Connection]
    ):
        super().__init__(name="pump", daemon=True)
        self._settings = settings
        self._slots = settings.connections
        self._provider = provider
        self._gate = gate
        self._link = Link(connect)
        self._jobs = JobBook(settings)
        self._connections = Connections(provider, most=settings.connections)
        self._open_at = 0.0
        self._rests_until = 0.0
        self._may_claim = False
        self._refusal: Trouble | None = None  # the provider takes nothing from us, whatever the message
        self._is_trying = False  # a connection is being opened to see whether the provider is back
        self._waiting: deque[Delivery] = deque()
        self._busy: dict[int, Delivery] = {}
        self._ready: dict[int, Delivery] = {}
        self._finished: list[Outcome] = []
        self._finished_at = 0.0
        # What the database has been asked: a claim for this line under this identity, and a record of these.
        self._claiming: tuple[Line, int] | None = None
        self._marking: dict[int, Delivery] = {}
        self._recording: list[Outcome] = []
        self._is_stopping = threading.Event()
        self._stop_at = NEVER
        self._is_replaced = threading.Event()

    @property
    def worker_id(self) -> int:
        """The identity in the workers table; 0 before the first connection."""
        return self._link.worker_id

    def stop(self, *, within_s: float) -> None:
        """Asks for a drain: no new claims, finish what is marked within the time, give the rest back."""
        self._stop_at = time.monotonic() + within_s
        self._is_stopping.set()
        self._connections.wake()

    def work_came(self) -> None:
        """Somebody has committed new work."""
        self._jobs.wake()
        self._rests_until = 0.0
        self._connections.wake()

    def declared_dead(self) -> None:
        """The heartbeat found the identity dead: recovery has the rows, the pump goes on under a new one."""
        self._is_replaced.set()
        self._connections.wake()

    def run(self) -> None:
        try:
            while not self._is_through():
                self._turn(time.monotonic())
        finally:
            # After an unexpected error too: a closed line surely stops what was not handed over.
            self._close()

    def _turn(self, now: float) -> None:
        try:
            if self._link.is_up or self._reach_database(now):
                self._ask(now)
        except psycopg.OperationalError as error:
            self._lose_database(error)
        self._begin_waiting(now)
        self._hear_all(self._sleep_s(now))
        self._expire(time.monotonic())

    def _is_through(self) -> bool:
        if not self._is_stopping.is_set():
            return False
        is_asking = bool(self._marking or self._recording or self._claiming)
        is_empty = not (is_asking or self._busy or self._waiting or self._finished)
        return is_empty or time.monotonic() > self._stop_at + 1.0

    def _ask(self, now: float) -> None:
        """Does the rare things that need the database, then asks the next questions."""
        claims, records = self._link.claims, self._link.records
        assert claims is not None
        assert records is not None
        if not records.is_waiting:
            self._look_around(records.connection, now)
            if self._is_record_due(now):
                self._ask_record(records)
        is_hungry = len(self._waiting) < self._slots and now >= self._rests_until
        if is_hungry and self._may_claim and not claims.is_waiting:
            self._ask_claim(claims, now)

    def _look_around(self, connection: psycopg.Connection, now: float) -> None:
        """Sets the pump to what others have decided: a new identity, a drain, a provider that is down or back."""
        if self._is_replaced.is_set():
            self._take_new_identity(connection)
        count = len(self._connections)
        troubles = self._connections.take_opened(now)
        if len(self._connections) > count:
            self._is_trying = False
            self._gate.succeed(connection)
        elif troubles:
            self._meet_trouble(connection, troubles[-1], now)
        if self._refusal is not None:
            # It lets us connect, but takes nothing from us: as good as no connection.
            self._connections.drop_free()
            if not self._gate.is_open:
                self._gate.fail(connection, self._refusal)
            self._refusal = None
        self._may_claim = False
        if self._is_stopping.is_set():
            self._give_back_unmarked(connection)
        elif self._gate.may_claim(connection, now):
            self._may_claim = True
        else:
            self._wait_for_provider(connection)

    def _ask_claim(self, asker: Asker, now: float) -> None:
        if self._jobs.is_stale(now):
            self._jobs.read(asker.connection, now)
        line = self._jobs.next_line(now)
        if line is None:
            self._rests_until = now + min(self._settings.tick_s, LONGEST_SLEEP_S)
            return
        limit = claim_size(self._settings.batch_size, self._settings.max_rate)
        asker.ask(recorder.CLAIM, line.claim_values(worker_id=self._link.worker_id, limit=limit, slot=self._link.slot))
        self._claiming = line, self._link.worker_id

    def _claimed(self, connection: psycopg.Connection, answer: list, now: float) -> None:
        assert self._claiming is not None
        line, worker_id = self._claiming
        self._claiming = None
        rows, last = recorder.claimed_rows(
            answer, worker_id=worker_id, account_id=line.job.account_id, campaign_id=line.job.campaign_id
        )
        self._jobs.found(line, last, now)
        wait_s = interval_s = 0.0
        rate = self._settings.max_rate
        if rate is not None and rows:
            interval_s = pace_interval_s(rate)
            wait_s = store.reserve_pace(connection, self._provider.name, count=len(rows), interval_s=interval_s)
        for place, claimed in enumerate(rows):
            self._waiting.append(Delivery(claimed, line, now + wait_s + place * interval_s))

    def _begin_waiting(self, now: float) -> None:
        while self._waiting and self._waiting[0].not_before <= now and not self._is_stopping.is_set():
            channel = self._connections.take_free()
            if channel is None:
                if now >= self._open_at and not self._gate.is_open:
                    self._connections.open_to(len(self._busy) + len(self._waiting))
                return
            self._begin(channel, self._waiting.popleft(), now)

    def _begin(self, channel: Channel, delivery: Delivery, now: float) -> None:
        try:
            message = delivery.line.compose(delivery.claimed, self._settings)
        except Exception as error:
            if not isinstance(error, Unfillable):
                log.error("message.not_composed", send_id=delivery.claimed.id, exc_info=error)
            self._finish(not_composed(delivery.claimed, str(error) or type(error).__name__), now)
            self._connections.put_free(channel, now)
            return
        self._busy[channel.fileno()] = delivery
        self._take(channel, channel.begin(message, now), now)

    def _take(self, channel: Channel, result: Answer | Ready | None, now: float) -> None:
        """Takes in what came of using a channel."""
        fd = channel.fileno()
        if isinstance(result, Ready):
            self._ready[fd] = self._busy[fd]
        elif result is not None:
            self._answered(fd, result, now)
            if channel.is_open:
                self._connections.put_free(channel, now)
        self._connections.look_after(channel)

    def _answered(self, fd: int, answer: Answer, now: float) -> None:
        delivery = self._busy.pop(fd)
        if fd in self._marking:
            delivery.early_answer = answer
            return
        self._ready.pop(fd, None)
        if isinstance(answer, Untouched) and (answer.trouble or not delivery.is_second_try):
            self._refusal = answer.trouble or self._refusal
            delivery.is_second_try = answer.trouble is None
            self._waiting.appendleft(delivery)
            return
        self._conclude(delivery, answer, now)

    def _conclude(self, delivery: Delivery, answer: Answer, now: float) -> None:
        outcome = outcome_of(
            answer,
            delivery.claimed,
            delivery.line.job,
            was_marked=delivery.was_marked,
            retry_base_s=self._settings.retry_base_s,
            dice=random.random(),
        )
        self._finish(outcome, now)

    def _finish(self, outcome: Outcome, now: float) -> None:
        if not self._finished:
            self._finished_at = now
        self._finished.append(outcome)

    def _is_record_due(self, now: float) -> bool:
        if self._ready:
            return True
        if not self._finished:
            return False
        return not self._busy or len(self._finished) >= self._slots or now - self._finished_at > RECORD_WITHIN_S

    def _ask_record(self, asker: Asker) -> None:
        self._marking, self._ready = self._ready, {}
        self._recording, self._finished = self._finished, []
        values = recorder.record_values(
            outcomes=self._recording,
            marks=[(d.claimed, d.line.job.list_id) for d in self._marking.values()],
            provider=self._provider.name,
            slot=self._link.slot,
        )
        asker.ask(recorder.RECORD, values)

    def _recorded(self, connection: psycopg.Connection, answer: list, now: float) -> None:
        marked_ids, done_ids = set(answer[0]), set(answer[1])
        marking, self._marking = self._marking, {}
        recording, self._recording = self._recording, []
        lost = []
        for fd, delivery in marking.items():
            delivery.was_marked = delivery.claimed.id in marked_ids
            if delivery.early_answer is not None:
                self._conclude(delivery, delivery.early_answer, now)
            elif delivery.was_marked:
                channel = self._connections[fd]
                self._take(channel, channel.finish(now), now)
            else:
                lost.append(delivery)
                self._abandon(fd)
        self._release(connection, lost)
        for outcome in recording:
            if outcome.claimed.id not in done_ids:
                store.settle_late(connection, outcome, slot=self._link.slot)

    def _abandon(self, fd: int) -> None:
        self._busy.pop(fd, None)
        self._connections.drop(fd)

    def _release(self, connection: psycopg.Connection, deliveries: list[Delivery]) -> None:
        if deliveries:
            store.release(connection, [(d.claimed, d.line.job.list_id) for d in deliveries], slot=self._link.slot)

    def _give_back_unmarked(self, connection: psycopg.Connection) -> None:
        deliveries = list(self._waiting)
        self._waiting.clear()
        for fd, delivery in list(self._busy.items()):
            if not delivery.was_marked:
                deliveries.append(delivery)
                self._abandon(fd)
        self._ready = {}
        self._release(connection, deliveries)

    def _hear_all(self, timeout_s: float) -> None:
        channels, has_database = self._connections.wait(timeout_s)
        now = time.monotonic()
        for channel in channels:
            self._take(channel, channel.advance(now), now)
        if has_database:
            try:
                self._hear_database()
            except psycopg.OperationalError as error:
                self._lose_database(error)

    def _hear_database(self) -> None:
        # The marks first: messages wait for them.
        for asker, take in ((self._link.records, self._recorded), (self._link.claims, self._claimed)):
            if asker is not None and (answer := asker.hear()) is not None:
                take(asker.connection, answer, time.monotonic())

    def _expire(self, now: float) -> None:
        is_cut_off = now > self._stop_at
        for channel in self._connections:
            # After the drain's time what is handed over and unanswered is in doubt, and recorded as that.
            if channel.deadline <= now or (is_cut_off and channel.fileno() in self._busy):
                self._take(channel, channel.time_out(), now)
        self._connections.close_idle(now)

    def _sleep_s(self, now: float) -> float:
        is_free = self._link.may_record
        if is_free and self._ready:
            return 0.0
        due = min((channel.deadline for channel in self._connections), default=NEVER)
        if is_free and self._finished:
            due = min(due, self._finished_at + RECORD_WITHIN_S)
        if self._waiting and self._waiting[0].not_before > now:
            due = min(due, self._waiting[0].not_before)
        if is_free and not self._waiting and not self._gate.is_open:
            due = min(due, self._rests_until)
        return max(0.0, min(due - now, LONGEST_SLEEP_S))

    def _meet_trouble(self, connection: psycopg.Connection, trouble: Trouble, now: float) -> None:
        if len(self._connections):
            # The provider works, it only takes no more connections.
            self._open_at = now + OPEN_AGAIN_S
        elif self._is_trying or not self._gate.is_open:
            # Connections that were opened side by side fail side by side: that is one failure.
            self._is_trying = False
            log.warning("provider.trouble", provider=self._provider.name, reason=trouble.reason)
            self._gate.fail(connection, trouble)

    def _wait_for_provider(self, connection: psycopg.Connection) -> None:
        """With the breaker open: rows that are not on the way go back to the queue, and one worker tries again."""
        waiting = list(self._waiting)
        self._waiting.clear()
        self._release(connection, waiting)
        if not self._connections.is_opening and self._gate.may_try(connection):
            self._is_trying = True
            self._connections.open_to(len(self._connections) + 1)

    def _reach_database(self, now: float) -> bool:
        if not self._link.may_reach(now):
            return False
        held = [d.claimed.id for d in (*self._waiting, *self._busy.values())] + [o.claimed.id for o in self._finished]
        self._link.reach(held, now)
        for asker in (self._link.records, self._link.claims):
            assert asker is not None
            self._connections.watch(asker.fileno())
        return True

    def _lose_database(self, error: psycopg.OperationalError) -> None:
        """Whether the last marks went through is unknown, but no dot followed them: the messages are surely unsent."""
        log.warning("database.lost", worker_id=self._link.worker_id, reason=str(error).strip().partition("\n")[0])
        self._link.close()
        self._claiming = None
        now = time.monotonic()
        self._finished = self._recording + self._finished
        self._recording = []
        for fd, delivery in self._marking.items():
            if delivery.early_answer is None:
                self._abandon(fd)
            self._finish(given_back(delivery.claimed, was_marked=True), now)
        self._marking = {}

    def _take_new_identity(self, connection: psycopg.Connection) -> None:
        """Drops the rows that wait: recovery has them. Those under way keep the old identity, which fences them."""
        self._is_replaced.clear()
        self._waiting.clear()
        self._link.register(connection)
        log.warning("worker.replaced", worker_id=self._link.worker_id)

    def _close(self) -> None:
        self._connections.close()
        if self._is_stopping.is_set() and self._link.may_record:
            assert self._link.records is not None
            with suppress(psycopg.OperationalError):
                store.unregister(self._link.records.connection, self._link.worker_id)
        self._link.close()
