"""The sending part of a process: a few pumps, one thread for their heartbeats, one that listens for new work."""

import math
import threading

import psycopg
import structlog

from console.config import Settings
from console.dispatch import store
from console.dispatch.gate import Gate
from console.dispatch.pump import Pump
from console.providers.registry import provider_for

log = structlog.get_logger(__name__)

# Measured on two cores shared with the database and smtp-sink: two pumps overlap each other's waits for commits, a
# third only adds switching.
PUMP_COUNT = 2
DRAIN_S = 8.0
LISTEN_AGAIN_S = 1.0


class Worker:
    """Sends until it is drained. `start`, then `drain` and `join`."""

    def __init__(self, settings: Settings, database_url: str):
        self._settings = settings
        self._database_url = database_url
        provider = provider_for(settings)
        gate = Gate(provider.name)
        count = min(PUMP_COUNT, settings.connections)
        self._pumps = [
            Pump(
                settings,
                index=index,
                slots=math.ceil((settings.connections - index) / count),
                provider=provider,
                gate=gate,
                connect=self._connect,
            )
            for index in range(count)
        ]
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._beat, name="heartbeat", daemon=True),
            threading.Thread(target=self._listen, name="listener", daemon=True),
        ]

    def start(self) -> None:
        for thread in (*self._pumps, *self._threads):
            thread.start()

    def drain(self, *, within_s: float = DRAIN_S) -> None:
        """Takes no new work, waits for what is handed over, gives the rest back; returns at once."""
        for pump in self._pumps:
            pump.stop(within_s=within_s)

    def join(self, timeout: float | None = None) -> bool:
        """Waits for the end of a drain; gives False when the time ran out first."""
        for pump in self._pumps:
            pump.join(timeout)
        self._is_over.set()
        return not any(pump.is_alive() for pump in self._pumps)

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            self._database_url, autocommit=True, connect_timeout=5, application_name="sendonce dispatch"
        )

    def _beat(self) -> None:
        """Says that the pumps live. A thread of its own: a slow answer is no reason to be declared dead."""
        connection: psycopg.Connection | None = None
        while not self._is_over.wait(self._settings.heartbeat_s):
            try:
                connection = connection or self._connect()
                for pump in self._pumps:
                    if pump.worker_id and pump.is_alive() and not store.heartbeat(connection, pump.worker_id):
                        pump.declared_dead()
            except psycopg.OperationalError as error:
                log.warning("heartbeat.missed", reason=str(error).strip().partition("\n")[0])
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _listen(self) -> None:
        """Wakes the pumps when new work is committed; without it they would find it at the next tick."""
        while not self._is_over.is_set():
            try:
                with self._connect() as connection:
                    store.listen(connection)
                    while not self._is_over.is_set():
                        for _ in connection.notifies(timeout=LISTEN_AGAIN_S):
                            for pump in self._pumps:
                                pump.work_came()
            except psycopg.OperationalError:
                self._is_over.wait(LISTEN_AGAIN_S)
