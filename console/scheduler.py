"""The clock of a process: the table of ticks, run by APScheduler from memory. A clock, not a queue.

Ticks are idempotent and run in every process; the database decides who wins. What is due is in the database, so a
tick that is missed, killed or run twice changes nothing but the time at which work is found.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from datetime import UTC
from typing import Any, NamedTuple

import psycopg
import structlog
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger
from sqlalchemy import Engine, event
from sqlalchemy.exc import SQLAlchemyError

from console import clock, ticks_store
from console.campaigns.ticks import build_audiences, cancel_rest, finish_done, start_due
from console.config import Settings
from console.db import transaction
from console.dispatch.recovery import reap
from console.inbox.ticks import forget_bodies, read_bounces, read_events, read_reports, visit_mailboxes

log = structlog.get_logger(__name__)

# A tick that finds work runs again at once, this often at most; the next tick goes on from there.
MOST_ROUNDS = 1000
LONGEST_ERROR = 500
# An event may ask for an urgent message; bodies are kept for days.
INBOX_TICK_S = 1.0
FORGET_TICK_S = 600.0


class Tick(NamedTuple):
    """One line of the table: `run` gives how much it did, and is run again at once while that is more than 0."""

    name: str
    every_s: float
    run: Callable[[Engine, Settings], int]


def ticks(settings: Settings) -> tuple[Tick, ...]:
    """Gives the table of ticks."""
    return (
        Tick("campaigns.start_due", settings.tick_s, start_due),
        Tick("campaigns.build_audiences", settings.tick_s, build_audiences),
        Tick("campaigns.finish_done", settings.tick_s, finish_done),
        Tick("campaigns.cancel_rest", settings.tick_s, cancel_rest),
        Tick("inbox.read_events", min(settings.tick_s, INBOX_TICK_S), read_events),
        Tick("inbox.read_reports", min(settings.tick_s, INBOX_TICK_S), read_reports),
        Tick("inbox.visit_mailboxes", settings.tick_s, visit_mailboxes),
        Tick("inbox.read_bounces", settings.tick_s, read_bounces),
        Tick("inbox.forget_bodies", FORGET_TICK_S, forget_bodies),
        Tick("dispatch.reap", settings.heartbeat_s, reap),
    )


class Scheduler:
    """Runs the ticks until it is stopped. The engine is its own: stop() cancels what runs on it."""

    def __init__(self, table: tuple[Tick, ...], engine: Engine, settings: Settings):
        self._engine = engine
        self._settings = settings
        self._is_over = threading.Event()
        self._running: set[str] = set()
        self._busy: set[psycopg.Connection[Any]] = set()
        event.listen(engine, "checkout", lambda connection, *_: self._busy.add(connection))
        event.listen(engine, "checkin", lambda connection, *_: self._busy.discard(connection))
        self._clock = BackgroundScheduler(timezone=UTC)
        for tick in table:
            self._clock.add_job(
                self._run,
                IntervalTrigger(seconds=tick.every_s, timezone=UTC),  # pyright: ignore[reportArgumentType] - parts too
                args=[tick],
                id=tick.name,
                next_run_time=clock.now(),
                max_instances=1,
                coalesce=True,
                misfire_grace_time=None,
            )

    def start(self) -> None:
        self._clock.start()

    def stop(self, *, within_s: float = 2.0) -> None:
        """Starts no further tick; gives the running ones `within_s` to end, then cancels their statements."""
        self._is_over.set()
        self._clock.shutdown(wait=False)
        deadline = time.monotonic() + within_s
        while self._running and time.monotonic() < deadline:
            time.sleep(0.02)
        while self._running and time.monotonic() < deadline + within_s:
            for connection in tuple(self._busy):
                with contextlib.suppress(psycopg.Error):
                    connection.cancel_safe(timeout=1)
            time.sleep(0.05)

    def is_running(self) -> bool:
        """Tells whether a tick is at work at this moment."""
        return bool(self._running)

    def _run(self, tick: Tick) -> None:
        self._running.add(tick.name)
        try:
            self._run_while_there_is_work(tick)
        except Exception as error:  # noqa: BLE001 - one of the two outermost loops: a tick's fault stops nothing else
            if self._is_over.is_set():
                log.info("tick.cancelled", tick=tick.name)
            else:
                self._record_failure(tick, error)
        finally:
            self._running.discard(tick.name)

    def _run_while_there_is_work(self, tick: Tick) -> None:
        for _ in range(MOST_ROUNDS):
            if self._is_over.is_set():
                return
            done_count = tick.run(self._engine, self._settings)
            with transaction(self._engine) as session:
                ticks_store.record_run(session, tick.name)
            if done_count == 0:
                return

    def _record_failure(self, tick: Tick, error: Exception) -> None:
        reason = (str(error).strip() or type(error).__name__)[:LONGEST_ERROR]
        log.error("tick.failed", tick=tick.name, reason=reason, exc_info=error)
        try:
            with transaction(self._engine) as session:
                ticks_store.record_failure(session, tick.name, error=reason)
        except SQLAlchemyError:
            log.error("tick.failure_not_recorded", tick=tick.name)
