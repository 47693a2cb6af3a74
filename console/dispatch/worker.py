"""The sending part of a process: a pump, one thread for their heartbeats, one that listens for new work."""

import threading

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


class Worker:
    """Sends until it is drained. `start`, then `drain` and `join`."""

    def __init__(self, settings: Settings, database_url: str):
        self._settings = settings
        self._database_url = database_url
        self._provider = provider_for(settings)
        self._gate = Gate(self._provider.name)
        self._pump = self._new_pump()
        self._is_draining = False
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._beat, name="heartbeat", daemon=True),
            threading.Thread(target=self._listen, name="listener", daemon=True),
        ]

    def start(self) -> None:
        for thread in (self._pump, *self._threads):
            thread.start()

    def drain(self, *, within_s: float = DRAIN_S) -> None:
        """Takes no new work, waits for what is handed over, gives the rest back; returns at once."""
        self._is_draining = True
        self._pump.stop(within_s=within_s)

    def join(self, timeout: float | None = None) -> bool:
        """Waits for the end of a drain; gives False when the time ran out first."""
        self._pump.join(timeout)
        self._is_over.set()
        return not self._pump.is_alive()

    def _new_pump(self) -> Pump:
        return Pump(
            self._settings,
            provider=self._provider,
            gate=self._gate,
            connect=lambda: connect(self._database_url),
        )

    def _beat(self) -> None:
        """Says that the pump lives. A thread of its own: a slow answer is no reason to be declared dead."""
        connection: psycopg.Connection | None = None
        while not self._is_over.wait(self._settings.heartbeat_s):
            try:
                connection = connection or connect(self._database_url)
                self._look_at_pump(connection)
            except psycopg.OperationalError as error:
                log.warning("heartbeat.missed", reason=str(error).strip().partition("\n")[0])
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _look_at_pump(self, connection: psycopg.Connection) -> None:
        pump = self._pump
        if pump.is_alive():
            if pump.worker_id and not store.heartbeat(connection, pump.worker_id):
                pump.declared_dead()
        elif not self._is_draining:
            # An error of ours ended it (the traceback is in the log). Its rows go to recovery, a new one takes over.
            store.bury(connection, pump.worker_id)
            self._pump = self._new_pump()
            self._pump.start()
            log.error("pump.replaced", worker_id=pump.worker_id)

    def _listen(self) -> None:
        """Wakes the pump when new work is committed; without it the pump would find it at the next tick."""
        while not self._is_over.is_set():
            try:
                with connect(self._database_url) as connection:
                    store.listen(connection)
                    while not self._is_over.is_set():
                        for _ in connection.notifies(timeout=LISTEN_AGAIN_S):
                            self._pump.work_came()
            except psycopg.OperationalError:
                self._is_over.wait(LISTEN_AGAIN_S)
