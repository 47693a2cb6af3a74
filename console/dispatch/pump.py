"""One sending thread: claims rows, keeps its connections busy, marks and records in groups.

A turn of the loop: claim when few rows wait; begin a message on every free connection; hear what the provider says;
when nothing more is to be heard at once, record the outcomes and mark the messages that are ready in one commit, then
send their dots. One slow answer holds up one connection, not the thread. No lock and no hand-off per message.
"""

import os
import random
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import psycopg
import structlog

from console.config import Settings
from console.content.fill import Unfillable
from console.dispatch import recorder, store
from console.dispatch.gate import Gate
from console.dispatch.jobs import JobBook, Line
from console.dispatch.outcomes import given_back, not_composed, outcome_of
from console.dispatch.recorder import Claimed, Outcome
from console.dispatch.timing import claim_size, pace_interval_s
from console.providers.base import Answer, Channel, Provider, Ready, Trouble, Untouched

log = structlog.get_logger(__name__)

# With messages ready for their mark, how long to listen for more before the group is committed.
GATHER_S = 0.001
# Outcomes alone (nothing waits for a mark) are put on record at the latest after this.
RECORD_WITHIN_S = 0.01
# While other connections work, how long to wait after one could not be opened.
OPEN_AGAIN_S = 5.0
IDLE_CLOSE_S = 30.0
DATABASE_AGAIN_S = 0.5
LONGEST_SLEEP_S = 1.0


class Delivery:
    """One claimed row on its way through a connection."""

    __slots__ = ("claimed", "is_second_try", "line", "not_before", "was_marked")

    def __init__(self, claimed: Claimed, line: Line, not_before: float):
        self.claimed = claimed
        self.line = line
        self.not_before = not_before
        self.is_second_try = False
        self.was_marked = False


class Pump(threading.Thread):
    """See the module. `stop` asks it to drain; it ends by itself when all that was marked is answered."""

    def __init__(
        self,
        settings: Settings,
        *,
        index: int,
        slots: int,
        provider: Provider,
        gate: Gate,
        connect: Callable[[], psycopg.Connection],
    ):
        super().__init__(name=f"pump-{index}", daemon=True)
        self.worker_id = 0
        self._settings = settings
        self._slots = slots
        self._provider = provider
        self._gate = gate
        self._connect = connect
        self._connection: psycopg.Connection | None = None
        self._database_at = 0.0
        self._jobs = JobBook(settings)
        self._openers = ThreadPoolExecutor(max_workers=slots, thread_name_prefix=f"{self.name}-open")
        self._opening: deque[Future[Channel | Trouble]] = deque()
        self._open_at = 0.0
        self._epoll = select.epoll()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._epoll.register(self._wake_read, select.EPOLLIN)
        self._channels: dict[int, Channel] = {}
        self._idle: list[tuple[Channel, float]] = []
        self._busy: dict[int, Delivery] = {}
        self._waiting: deque[Delivery] = deque()
        self._ready: dict[int, Delivery] = {}
        self._finished: list[Outcome] = []
        self._finished_at = 0.0
        self._is_stopping = threading.Event()
        self._stop_at = float("inf")
        self._is_replaced = threading.Event()
        self._rests_until = 0.0

    # -- called from other threads

    def stop(self, *, within_s: float) -> None:
        """Asks for a drain: no new claims, finish what is marked within the time, give the rest back."""
        self._stop_at = time.monotonic() + within_s
        self._is_stopping.set()
        self._wake()

    def work_came(self) -> None:
        """Somebody has committed new work."""
        self._jobs.wake()
        self._rests_until = 0.0
        self._wake()

    def declared_dead(self) -> None:
        """The heartbeat found the identity dead: recovery has the rows, the pump goes on under a new one."""
        self._is_replaced.set()
        self._wake()

    # -- the thread

    def run(self) -> None:
        while not self._is_through():
            now = time.monotonic()
            try:
                self._turn(now)
            except psycopg.OperationalError as error:
                self._lose_database(error)
            self._poll(self._sleep_s())
            self._expire(time.monotonic())
        self._close()

    def _turn(self, now: float) -> None:
        """Does what needs the database and can be done now."""
        connection = self._database(now)
        if connection is None:
            return
        if self._is_replaced.is_set():
            self._take_new_identity(connection)
        if self._is_stopping.is_set():
            self._give_back_unmarked(connection)
        elif self._gate.may_claim(connection, now):
            self._claim(connection, now)
        else:
            self._wait_for_provider(connection)
        self._take_opened(connection, now)
        self._begin_waiting(now)
        if self._is_flush_due(now):
            self._flush(connection)

    def _is_through(self) -> bool:
        if not self._is_stopping.is_set():
            return False
        is_empty = not (self._busy or self._waiting or self._ready or self._finished)
        return is_empty or time.monotonic() > self._stop_at + 1.0

    # -- claiming

    def _claim(self, connection: psycopg.Connection, now: float) -> None:
        if len(self._waiting) >= self._slots or now < self._rests_until:
            return
        rate = self._settings.max_rate
        line, rows = self._jobs.claim(
            connection,
            worker_id=self.worker_id,
            limit=claim_size(self._settings.batch_size, rate),
            slot=self._slot,
            now=now,
        )
        if line is None:
            self._rests_until = now + min(self._settings.tick_s, LONGEST_SLEEP_S)
            return
        wait_s = interval_s = 0.0
        if rate is not None and rows:
            interval_s = pace_interval_s(rate)
            wait_s = store.reserve_pace(connection, self._provider.name, count=len(rows), interval_s=interval_s)
        for place, claimed in enumerate(rows):
            self._waiting.append(Delivery(claimed, line, now + wait_s + place * interval_s))

    @property
    def _slot(self) -> int:
        return self.worker_id % store.WORKER_SLOT_COUNT

    # -- connections

    def _begin_waiting(self, now: float) -> None:
        while self._waiting and self._waiting[0].not_before <= now:
            channel = self._free_channel()
            if channel is None:
                self._open_more(now)
                return
            self._begin(channel, self._waiting.popleft(), now)

    def _free_channel(self) -> Channel | None:
        while self._idle:
            channel, _ = self._idle.pop()
            if channel.is_open:
                return channel
            self._forget(channel)
        return None

    def _begin(self, channel: Channel, delivery: Delivery, now: float) -> None:
        try:
            message = delivery.line.compose(delivery.claimed, self._settings)
        except Unfillable as error:
            self._finish(not_composed(delivery.claimed, str(error)), now)
            self._idle.append((channel, now))
            return
        self._busy[channel.fileno()] = delivery
        self._hear(channel, channel.begin(message, now), now)

    def _open_more(self, now: float) -> None:
        count = len(self._channels) + len(self._opening)
        wanted = min(self._slots, len(self._busy) + len(self._waiting))
        if now < self._open_at or self._gate.is_open:
            return
        for _ in range(wanted - count):
            self._start_opening()

    def _start_opening(self) -> None:
        future = self._openers.submit(self._provider.connect)
        self._opening.append(future)
        future.add_done_callback(lambda _: self._wake())

    def _take_opened(self, connection: psycopg.Connection, now: float) -> None:
        for _ in range(len(self._opening)):
            future = self._opening.popleft()
            if not future.done():
                self._opening.append(future)
                continue
            match future.result():
                case Trouble() as trouble:
                    self._meet_trouble(connection, trouble, now)
                case channel:
                    self._gate.succeed(connection)
                    self._channels[channel.fileno()] = channel
                    self._epoll.register(channel.fileno(), select.EPOLLIN)
                    self._idle.append((channel, now))

    def _meet_trouble(self, connection: psycopg.Connection, trouble: Trouble, now: float) -> None:
        if self._channels:
            # The provider works, it only takes no more connections.
            self._open_at = now + OPEN_AGAIN_S
            return
        if not self._opening:
            log.warning("provider.trouble", provider=self._provider.name, reason=trouble.reason)
            self._gate.fail(connection, trouble)

    def _wait_for_provider(self, connection: psycopg.Connection) -> None:
        """With the breaker open: rows that are not on the way go back to the queue, and one worker tries again."""
        self._release(connection, [self._waiting.popleft() for _ in range(len(self._waiting))])
        if not self._opening and self._gate.may_try(connection):
            self._start_opening()

    # -- what the provider says

    def _poll(self, timeout_s: float) -> None:
        for fd, _ in self._epoll.poll(timeout_s):
            if fd == self._wake_read:
                os.read(self._wake_read, 4096)
                continue
            channel = self._channels.get(fd)
            if channel is not None:
                now = time.monotonic()
                self._hear(channel, channel.advance(now), now)

    def _hear(self, channel: Channel, result: Answer | Ready | None, now: float) -> None:
        fd = channel.fileno()
        if isinstance(result, Ready):
            self._ready[fd] = self._busy[fd]
        elif result is not None:
            self._answered(fd, result, now)
            if channel.is_open:
                self._idle.append((channel, now))
        if not channel.is_open:
            self._forget(channel)
        else:
            self._epoll.modify(fd, select.EPOLLIN | select.EPOLLOUT if channel.wants_write else select.EPOLLIN)

    def _answered(self, fd: int, answer: Answer, now: float) -> None:
        delivery = self._busy.pop(fd)
        self._ready.pop(fd, None)
        if isinstance(answer, Untouched) and not delivery.is_second_try:
            delivery.is_second_try = True
            self._waiting.appendleft(delivery)
            return
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

    def _forget(self, channel: Channel) -> None:
        self._channels.pop(channel.fileno(), None)

    def _expire(self, now: float) -> None:
        for channel in list(self._channels.values()):
            if channel.deadline <= now:
                self._hear(channel, channel.time_out(), now)
        while self._idle and self._idle[0][1] + IDLE_CLOSE_S < now:
            channel, _ = self._idle.pop(0)
            channel.quit()
            self._forget(channel)
        if now > self._stop_at:
            self._cut_off(now)

    def _cut_off(self, now: float) -> None:
        """The drain's time is up: what is handed over and unanswered is in doubt, and is recorded as that."""
        for fd in list(self._busy):
            self._hear(self._channels[fd], self._channels[fd].time_out(), now)

    # -- recording

    def _is_flush_due(self, now: float) -> bool:
        if self._ready:
            return True
        if not self._finished:
            return False
        return not self._busy or len(self._finished) >= self._slots or now - self._finished_at > RECORD_WITHIN_S

    def _flush(self, connection: psycopg.Connection) -> None:
        ready, outcomes = list(self._ready.items()), self._finished
        recorded = recorder.record(
            connection,
            outcomes=outcomes,
            marks=[(d.claimed, d.line.job.list_id) for _, d in ready],
            provider=self._provider.name,
            slot=self._slot,
        )
        now = time.monotonic()
        self._ready = {}
        self._finished = []
        lost = []
        for fd, delivery in ready:
            if delivery.claimed.id in recorded.marked:
                delivery.was_marked = True
                channel = self._channels[fd]
                self._hear(channel, channel.finish(now), now)
            else:
                lost.append(delivery)
                self._abandon(fd)
        self._release(connection, lost)
        for outcome in outcomes:
            if outcome.claimed.id not in recorded.done:
                self._settle(connection, outcome)

    def _settle(self, connection: psycopg.Connection, outcome: Outcome) -> None:
        """Records an outcome whose row has moved on: recovery has it, or the record was made but its answer lost."""
        store.settle_late(connection, outcome, slot=self._slot)
        if outcome.outcome is None:
            # The mark did not go through after all.
            store.release(connection, [(outcome.claimed, 0)], slot=self._slot)

    def _abandon(self, fd: int) -> None:
        """Closes a connection whose message must not be handed over: only that surely stops it."""
        self._busy.pop(fd, None)
        channel = self._channels.pop(fd)
        channel.close()

    def _release(self, connection: psycopg.Connection, deliveries: list[Delivery]) -> None:
        if deliveries:
            store.release(connection, [(d.claimed, d.line.job.list_id) for d in deliveries], slot=self._slot)

    def _give_back_unmarked(self, connection: psycopg.Connection) -> None:
        deliveries = [self._waiting.popleft() for _ in range(len(self._waiting))]
        for fd, delivery in list(self._busy.items()):
            if not delivery.was_marked:
                deliveries.append(delivery)
                self._abandon(fd)
        self._ready = {}
        self._release(connection, deliveries)

    # -- the database

    def _database(self, now: float) -> psycopg.Connection | None:
        """Gives the connection; a new one, with what was lost set right, when the old one broke."""
        if self._connection is not None:
            return self._connection
        if now < self._database_at:
            return None
        self._database_at = now + DATABASE_AGAIN_S
        connection = self._connect()
        if not self.worker_id:
            self.worker_id = store.register(connection, host=os.uname().nodename, pid=os.getpid())
        held = [d.claimed.id for d in (*self._waiting, *self._busy.values())] + [o.claimed.id for o in self._finished]
        store.release_unheld(connection, self.worker_id, held_ids=held, slot=self._slot)
        self._connection = connection
        return connection

    def _lose_database(self, error: psycopg.OperationalError) -> None:
        """Whether the last marks went through is unknown, but no dot followed them: the messages are surely unsent."""
        log.warning("database.lost", pump=self.name, reason=str(error).strip().splitlines()[0] if str(error) else "")
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        now = time.monotonic()
        for fd, delivery in self._ready.items():
            self._abandon(fd)
            self._finish(given_back(delivery.claimed, was_marked=True), now)
        self._ready = {}

    def _take_new_identity(self, connection: psycopg.Connection) -> None:
        """Drops the rows that wait: recovery has them. Those under way keep the old identity, which fences them."""
        self._is_replaced.clear()
        self._waiting.clear()
        self.worker_id = store.register(connection, host=os.uname().nodename, pid=os.getpid())
        log.warning("worker.replaced", pump=self.name, worker_id=self.worker_id)

    def _sleep_s(self) -> float:
        now = time.monotonic()
        if self._ready:
            return 0.0
        if self._finished:
            return GATHER_S
        due = min((c.deadline for c in self._channels.values()), default=float("inf"))
        if self._waiting and not self._gate.is_open:
            due = min(due, max(self._waiting[0].not_before, now + GATHER_S))
        if not self._busy and not self._waiting:
            due = min(due, max(self._rests_until, now + GATHER_S))
        return max(0.0, min(due - now, LONGEST_SLEEP_S))

    def _wake(self) -> None:
        # A full pipe means that it is awake as can be.
        with suppress(BlockingIOError):
            os.write(self._wake_write, b".")

    def _close(self) -> None:
        for channel in self._channels.values():
            channel.quit()
        self._openers.shutdown(wait=False, cancel_futures=True)
        if self._connection is not None:
            store.unregister(self._connection, self.worker_id)
            self._connection.close()
