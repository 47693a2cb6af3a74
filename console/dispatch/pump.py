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
from contextlib import suppress

import psycopg
import structlog

from console.config import Settings
from console.dispatch import store
from console.dispatch.asker import Asker
from console.dispatch.call_log import CallLog
from console.dispatch.claims import Claimer
from console.dispatch.connections import Connections
from console.dispatch.delivery import Delivery, uncomposed
from console.dispatch.gate import Gate
from console.dispatch.link import Connect, Link
from console.dispatch.outcomes import given_back, outcome_of
from console.dispatch.queues import OWN, Outlet
from console.dispatch.rounds import NEVER, Rounds
from console.dispatch.timing import pace_interval_s
from console.providers.base import Answer, Channel, Message, Provider, Ready, Trouble, Untouched

log = structlog.get_logger(__name__)

LONGEST_SLEEP_S = 1.0
# So many messages are made in one go while the database and the provider are at work.
COMPOSE_AHEAD = 4


class Pump(threading.Thread):
    """See the module. `stop` asks it to drain; it ends by itself when all that was marked is answered."""

    def __init__(
        self, settings: Settings, *, lane: str, provider: Provider, gate: Gate, connect: Connect, outlet: Outlet = OWN
    ):
        super().__init__(name=f"pump {lane} {provider.name}", daemon=True)
        self._settings = settings
        self._slots = settings.connections
        self._provider = provider
        self._gate = gate
        self._link = Link(connect, provider)
        self._claimer = Claimer(settings, lane=lane, outlet=outlet)
        self._connections = Connections(provider, most=settings.connections)
        self._may_claim = False
        self._refusal: Trouble | None = None  # the provider takes nothing from us, whatever the message
        self._is_trying = False  # a connection is being opened to see whether the provider is back
        self._waiting: deque[Delivery] = deque()
        self._busy: dict[int, Delivery] = {}
        self._following: dict[int, Delivery] = {}  # behind the terminator of the one that is busy
        self._rounds = Rounds(size=max(1, settings.connections // 2), provider_name=provider.name)
        self._calls = CallLog(settings.log_calls, provider.name)
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
        self._claimer.wake()
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
        self._calls.flush()

    def _is_through(self) -> bool:
        if not self._is_stopping.is_set():
            return False
        is_asking = self._claimer.is_asking or not self._rounds.is_empty
        is_empty = not (is_asking or self._busy or self._following or self._waiting)
        return is_empty or time.monotonic() > self._stop_at + 1.0

    def _ask(self, now: float) -> None:
        """Does the rare things that need the database, then asks the next questions."""
        claims = self._link.claims
        assert claims is not None
        records = self._link.free_record
        if records is not None:
            self._look_around(records.connection, now)
            if self._rounds.due_at(busy_count=len(self._busy)) <= now:
                self._rounds.start(records, slot=self._link.slot)
        is_hungry = len(self._waiting) < self._slots and self._may_claim
        if is_hungry and not claims.is_waiting:
            self._claimer.ask(claims, now, worker_id=self._link.worker_id, slot=self._link.slot)

    def _look_around(self, connection: psycopg.Connection, now: float) -> None:
        """Sets the pump to what others have decided: a new identity, a drain, a provider that is down or back."""
        if self._is_replaced.is_set():
            self._take_new_identity(connection)
        count = len(self._connections)
        troubles = self._connections.take_opened(now)
        # One that was being opened when the breaker opened is no proof that the provider is well again.
        if len(self._connections) > count and (self._is_trying or not self._gate.is_open):
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
            self._wait_for_provider(connection, now)

    def _claimed(self, asker: Asker, answer: list, now: float) -> None:
        rows = self._claimer.take(asker.connection, answer, now)
        wait_s = interval_s = 0.0
        rate = self._settings.max_rate
        if rate is not None and rows:
            interval_s = pace_interval_s(rate)
            wait_s = store.reserve_pace(asker.connection, self._provider.name, count=len(rows), interval_s=interval_s)
        for place, (claimed, composer) in enumerate(rows):
            self._waiting.append(Delivery(claimed, composer, now + wait_s + place * interval_s))

    def _begin_waiting(self, now: float) -> None:
        while self._may_begin(now):
            channel = self._connections.take_free()
            if channel is None:
                if not self._gate.is_open:
                    self._connections.open_to(len(self._busy) + len(self._waiting), now)
                return
            self._begin(channel, self._waiting.popleft(), now)

    def _may_begin(self, now: float) -> bool:
        is_due = bool(self._waiting) and self._waiting[0].not_before <= now
        return is_due and not (self._is_stopping.is_set() or (self._busy and self._gate.is_on_probation))

    def _begin(self, channel: Channel, delivery: Delivery, now: float) -> None:
        message = self._composed(delivery, now)
        if message is None:
            self._connections.put_free(channel, now)
            return
        self._busy[channel.fileno()] = delivery
        self._take(channel, channel.begin(message, now), now)

    def _composed(self, delivery: Delivery, now: float) -> Message | None:
        """Gives the message; None when it can't be made, which is its outcome."""
        if (failed := delivery.compose(self._settings)) is not None:
            self._rounds.add_finished(failed, now)
        return delivery.message

    def _take(self, channel: Channel, result: Answer | Ready | None, now: float) -> None:
        """Takes in what came of using a channel."""
        fd = channel.fileno()
        while result is not None:
            if isinstance(result, Ready):
                self._rounds.add_ready(fd, self._busy[fd], now)
                break
            self._answered(fd, result, now)
            following = self._following.pop(fd, None)
            if following is None:
                if channel.is_open:
                    self._connections.put_free(channel, now)
                break
            if not channel.is_open:
                self._waiting.appendleft(following)
                break
            self._busy[fd] = following
            result = channel.hear(now)
        self._connections.look_after(channel)

    def _hand_over(self, channel: Channel, now: float) -> None:
        """Sends the terminator, and behind it the commands of the next message."""
        if channel.can_follow and self._may_begin(now):
            delivery = self._waiting.popleft()
            message = self._composed(delivery, now)
            if message is not None:
                if channel.follow(message):
                    self._following[channel.fileno()] = delivery
                else:
                    self._waiting.appendleft(delivery)
        self._take(channel, channel.finish(now), now)

    def _answered(self, fd: int, answer: Answer, now: float) -> None:
        delivery = self._busy.pop(fd)
        if self._rounds.is_marking(fd):
            delivery.early_answer = answer
            return
        self._rounds.drop_ready(fd)
        if isinstance(answer, Untouched) and (answer.trouble or not delivery.is_second_try):
            self._refusal = answer.trouble or self._refusal
            if delivery.was_marked:  # handed over, and surely not taken
                back = given_back(delivery.claimed, was_marked=True)
                self._rounds.add_finished(self._calls.answered(delivery, back), now)
                return
            delivery.is_second_try = answer.trouble is None
            self._waiting.appendleft(delivery)
            return
        self._conclude(delivery, answer, now)

    def _conclude(self, delivery: Delivery, answer: Answer, now: float) -> None:
        self._refusal = self._gate.hear(answer, was_marked=delivery.was_marked) or self._refusal
        outcome = outcome_of(
            answer,
            delivery.claimed,
            delivery.line.job,
            was_marked=delivery.was_marked,
            may_settle=self._provider.capabilities.may_settle,
            retry_base_s=self._settings.retry_base_s,
            dice=random.random(),
        )
        self._rounds.add_finished(self._calls.answered(delivery, outcome), now)

    def _recorded(self, asker: Asker, answer: list, now: float) -> None:
        marked_ids, done_ids = set(answer[0]), set(answer[1])
        ended = self._rounds.end(asker)
        marked, lost = [], []
        for fd, delivery in ended.marking.items():
            delivery.was_marked = delivery.claimed.id in marked_ids
            if delivery.early_answer is not None:
                self._conclude(delivery, delivery.early_answer, now)
            elif delivery.was_marked:
                marked.append(self._connections[fd])
            else:
                lost.append(delivery)
                self._abandon(fd)
        self._release(asker.connection, lost)
        for outcome in ended.recording:
            self._claimer.moved_on(outcome.claimed)
            if outcome.claimed.id not in done_ids:
                store.settle_late(asker.connection, outcome, slot=self._link.slot)
        try:
            # The next group first: the database works on it while this one is handed over.
            self._ask(now)
        finally:
            self._calls.calling(ended.marking.values())
            for channel in marked:
                self._hand_over(channel, now)

    def _compose_ahead(self, deliveries: list[Delivery]) -> None:
        """Makes messages while the database and the provider are at work."""
        for delivery in deliveries:
            if self._composed(delivery, time.monotonic()) is None:
                self._waiting.remove(delivery)

    def _abandon(self, fd: int) -> None:
        self._busy.pop(fd, None)
        self._connections.drop(fd)

    def _release(self, connection: psycopg.Connection, deliveries: list[Delivery]) -> None:
        if deliveries:
            store.release(connection, [(d.claimed, d.line.job.list_id) for d in deliveries], slot=self._link.slot)
            for delivery in deliveries:
                self._claimer.moved_on(delivery.claimed)

    def _give_back_unmarked(self, connection: psycopg.Connection) -> None:
        deliveries = list(self._waiting)
        self._waiting.clear()
        for fd, delivery in list(self._busy.items()):
            if not delivery.was_marked and not self._rounds.is_marking(fd):
                deliveries.append(delivery)
                self._abandon(fd)
        self._rounds.drop_all_ready()
        self._release(connection, deliveries)

    def _hear_all(self, timeout_s: float) -> None:
        # Only while the database is at work: else there are better things to do.
        is_ahead = self._rounds.is_under_way and not self._is_stopping.is_set()
        to_compose = uncomposed(self._waiting, among=self._slots, most=COMPOSE_AHEAD) if is_ahead else []
        channels, has_database = self._connections.wait(0.0 if to_compose else timeout_s)
        if not channels and not has_database:
            self._compose_ahead(to_compose)
            return
        now = time.monotonic()
        try:
            for channel in channels:
                self._take(channel, channel.advance(now), now)
                if self._rounds.is_full and self._link.free_record is not None:
                    self._ask(now)
            if has_database:
                self._hear_database()
        except psycopg.OperationalError as error:
            self._lose_database(error)

    def _hear_database(self) -> None:
        # The marks first: messages wait for them.
        for asker in self._link.askers:
            if (answer := asker.hear()) is not None:
                take = self._claimed if asker is self._link.claims else self._recorded
                take(asker, answer, time.monotonic())

    def _expire(self, now: float) -> None:
        is_cut_off = now > self._stop_at
        for channel in self._connections:
            # After the drain's time what is handed over and unanswered is in doubt, and recorded as that.
            if channel.deadline <= now or (is_cut_off and channel.fileno() in self._busy):
                self._take(channel, channel.time_out(), now)
        self._connections.close_idle(now)

    def _sleep_s(self, now: float) -> float:
        is_free = self._link.free_record is not None
        due = min((channel.deadline for channel in self._connections), default=NEVER)
        if is_free:
            due = min(due, self._rounds.due_at(busy_count=len(self._busy)))
        if self._waiting and self._waiting[0].not_before > now:
            due = min(due, self._waiting[0].not_before)
        if is_free and not self._waiting and not self._gate.is_open:
            due = min(due, self._claimer.due_at)
        return max(0.0, min(due - now, LONGEST_SLEEP_S))

    def _meet_trouble(self, connection: psycopg.Connection, trouble: Trouble, now: float) -> None:
        if len(self._connections):
            # The provider works, it only takes no more connections.
            self._connections.rest(now)
        elif self._is_trying or not self._gate.is_open:
            # Connections that were opened side by side fail side by side: that is one failure.
            self._is_trying = False
            log.warning("provider.trouble", provider=self._provider.name, reason=trouble.reason)
            self._gate.fail(connection, trouble)

    def _wait_for_provider(self, connection: psycopg.Connection, now: float) -> None:
        """With the breaker open: rows that are not on the way go back to the queue, and one worker tries again."""
        waiting = list(self._waiting)
        self._waiting.clear()
        self._release(connection, waiting)
        if not self._connections.is_opening and self._gate.may_try(connection):
            self._is_trying = True
            self._connections.open_to(len(self._connections) + 1, now)

    def _reach_database(self, now: float) -> bool:
        if not self._link.may_reach(now):
            return False
        under_way = (*self._waiting, *self._busy.values(), *self._following.values())
        held = [d.claimed.id for d in under_way] + [o.claimed.id for o in self._rounds.unrecorded]
        self._link.reach(held, now)
        for asker in self._link.askers:
            self._connections.watch(asker.fileno())
        return True

    def _lose_database(self, error: psycopg.OperationalError) -> None:
        """Whether the last marks went through is unknown, but no dot followed them: the messages are surely unsent."""
        log.warning("database.lost", worker_id=self._link.worker_id, reason=str(error).strip().partition("\n")[0])
        self._link.close()
        self._claimer.lose()
        now = time.monotonic()
        for fd, delivery in self._rounds.lose():
            if delivery.early_answer is None:
                self._abandon(fd)
            self._rounds.add_finished(given_back(delivery.claimed, was_marked=True), now)

    def _take_new_identity(self, connection: psycopg.Connection) -> None:
        """Drops the rows that wait: recovery has them. Those under way keep the old identity, which fences them."""
        self._is_replaced.clear()
        self._waiting.clear()
        self._link.register(connection)
        log.warning("worker.replaced", worker_id=self._link.worker_id)

    def _close(self) -> None:
        self._connections.close()
        if self._is_stopping.is_set() and (free := self._link.free_record) is not None:
            with suppress(psycopg.OperationalError):
                store.unregister(free.connection, self._link.worker_id)
        self._link.close()
