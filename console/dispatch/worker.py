"""The sending part of a process: a pump for each lane, one thread for their heartbeats, one that listens for new work.

Lanes never wait for one another: each has a thread, connections and claims of its own.
"""

import threading
import time
from dataclasses import replace

import psycopg
import structlog

from console.config import Settings
from console.dispatch import store
from console.dispatch.asker import connect
from console.dispatch.gate import Gate
from console.dispatch.pump import Pump
from console.providers.registry import provider_for

log = structlog.get_logger(__name__)

DRAIN_S = 8.0
LISTEN_AGAIN_S = 1.0
LANES = ("urgent", "normal", "bulk")
# Connections of the urgent lane and of the normal one: their messages come one by one, not by the thousand.
SMALL_LANE_CONNECTIONS = 4


class Worker:
    """Sends until it is drained. `start`, then `drain` and `join`."""

    def __init__(self, settings: Settings, database_url: str):
        self._settings = settings
        self._database_url = database_url
        self._provider = provider_for(settings)
        self._gate = Gate(self._provider.name)
        self._pumps = {lane: self._new_pump(lane) for lane in LANES}
        self._is_draining = False
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._beat, name="heartbeat", daemon=True),
            threading.Thread(target=self._listen, name="listener", daemon=True),
        ]

    def start(self) -> None:
        for thread in (*self._pumps.values(), *self._threads):
            thread.start()

    def drain(self, *, within_s: float = DRAIN_S) -> None:
        """Takes no new work, waits for what is handed over, gives the rest back; returns at once."""
        self._is_draining = True
        for pump in self._pumps.values():
            pump.stop(within_s=within_s)

    def join(self, timeout: float | None = None) -> bool:
        """Waits for the end of a drain; gives False when the time ran out first."""
        give_up_at = None if timeout is None else time.monotonic() + timeout
        for pump in self._pumps.values():
            pump.join(None if give_up_at is None else max(0.0, give_up_at - time.monotonic()))
        self._is_over.set()
        return not any(pump.is_alive() for pump in self._pumps.values())

    def _new_pump(self, lane: str) -> Pump:
        connections = self._settings.connections
        if lane != "bulk":
            connections = min(SMALL_LANE_CONNECTIONS, connections)
        return Pump(
            replace(self._settings, connections=connections),
            lane=lane,
            provider=self._provider,
            gate=self._gate,
            connect=lambda: connect(self._database_url),
        )

    def _beat(self) -> None:
        """Says that the pumps live. A thread of its own: a slow answer is no reason to be declared dead."""
        connection: psycopg.Connection | None = None
        while not self._is_over.wait(self._settings.heartbeat_s):
            try:
                connection = connection or connect(self._database_url)
                for lane in LANES:
                    self._look_at_pump(connection, lane)
            except psycopg.OperationalError as error:
                log.warning("heartbeat.missed", reason=str(error).strip().partition("\n")[0])
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _look_at_pump(self, connection: psycopg.Connection, lane: str) -> None:
        pump = self._pumps[lane]
        if pump.is_alive():
            if pump.worker_id and not store.heartbeat(connection, pump.worker_id):
                pump.declared_dead()
        elif not self._is_draining:
            # An error of ours ended it (the traceback is in the log). Its rows go to recovery, a new one takes over.
            store.bury(connection, pump.worker_id)
            self._pumps[lane] = self._new_pump(lane)
            self._pumps[lane].start()
            log.error("pump.replaced", lane=lane, worker_id=pump.worker_id)

    def _listen(self) -> None:
        """Wakes pumps when new work is committed; without it they would find it at the next tick."""
        while not self._is_over.is_set():
            try:
                with connect(self._database_url) as connection:
                    store.listen(connection)
                    while not self._is_over.is_set():
                        for notice in connection.notifies(timeout=LISTEN_AGAIN_S):
                            # The payload names a lane, or nothing: then it may be any.
                            for lane in LANES:
                                if notice.payload in ("", lane):
                                    self._pumps[lane].work_came()
            except psycopg.OperationalError:
                self._is_over.wait(LISTEN_AGAIN_S)
