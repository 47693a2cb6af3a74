"""The sending part of a process: pumps, a thread for their heartbeats, one that listens for new work, one for doubts.

There is a pump for each lane and each provider that a route names, with a thread, connections and claims of its own:
lanes never wait for one another, nor providers.
"""

import threading
import time
from dataclasses import dataclass, replace

import psycopg
import structlog

from console.config import Settings
from console.dispatch import store, work_store
from console.dispatch.asker import connect
from console.dispatch.doubts import Doubts
from console.dispatch.gate import Gate
from console.dispatch.pump import Pump
from console.dispatch.queues import OWN, Outlet
from console.errors import ConfigError
from console.providers.base import Provider
from console.providers.registry import open_provider, provider_for
from console.providers.store import Configured

log = structlog.get_logger(__name__)

DRAIN_S = 8.0
LISTEN_AGAIN_S = 1.0
DOUBTS_END_S = 0.5
LANES = ("urgent", "normal", "bulk")
# Connections of the urgent lane and of the normal one: their messages come one by one, not by the thousand.
SMALL_LANE_CONNECTIONS = 4


@dataclass(frozen=True, slots=True)
class Way:
    """A provider as it was configured when its pumps were started."""

    provider: Provider
    gate: Gate
    outlet: Outlet
    version: int


class Worker:
    """Sends until it is drained. `start`, then `drain` and `join`."""

    def __init__(self, settings: Settings, database_url: str):
        self._settings = settings
        self._database_url = database_url
        provider = provider_for(settings)
        self._ways = {0: Way(provider, Gate(provider.name), OWN, 0)}  # by the configured provider's id; 0: our own
        self._refused: dict[int, int] = {}  # versions of providers that can't be opened
        self._pumps = {(lane, 0): self._new_pump(lane, 0) for lane in LANES}
        self._retired: list[Pump] = []  # of providers that have changed; they finish what they have
        self._is_draining = False
        self._changing = threading.Lock()  # pumps are started, or all are drained
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._beat, name="heartbeat", daemon=True),
            threading.Thread(target=self._listen, name="listener", daemon=True),
        ]
        self._doubts = Doubts(settings, lambda: connect(database_url), self._is_over)

    def start(self) -> None:
        for thread in (*self._pumps.values(), *self._threads, self._doubts):
            thread.start()

    def drain(self, *, within_s: float = DRAIN_S) -> None:
        """Takes no new work, waits for what is handed over, gives the rest back; returns at once."""
        with self._changing:
            self._is_draining = True
            for pump in self._pumps.values():
                pump.stop(within_s=within_s)

    def join(self, timeout: float | None = None) -> bool:
        """Waits for the end of a drain; gives False when the time ran out first."""
        give_up_at = None if timeout is None else time.monotonic() + timeout
        pumps = [*self._pumps.values(), *self._retired]
        for pump in pumps:
            pump.join(None if give_up_at is None else max(0.0, give_up_at - time.monotonic()))
        self._is_over.set()
        # Its statements are short, but it may wait for a provider, whose answer another process will ask for again.
        self._doubts.join(DOUBTS_END_S)
        return not any(pump.is_alive() for pump in pumps)

    def _new_pump(self, lane: str, way_id: int) -> Pump:
        way = self._ways[way_id]
        connections = self._settings.connections
        if lane != "bulk":
            connections = min(SMALL_LANE_CONNECTIONS, connections)
        return Pump(
            replace(self._settings, connections=connections),
            lane=lane,
            provider=way.provider,
            gate=way.gate,
            connect=lambda: connect(self._database_url),
            outlet=way.outlet,
        )

    def _beat(self) -> None:
        """Says that the pumps live. A thread of its own: a slow answer is no reason to be declared dead."""
        connection: psycopg.Connection | None = None
        while not self._is_over.wait(self._settings.heartbeat_s if connection else 0.0):
            try:
                if connection is None:
                    connection = connect(self._database_url)
                else:
                    for key in list(self._pumps):
                        self._look_at_pump(connection, key)
                    self._look_at_retired(connection)
                self._look_at_providers(connection)
            except psycopg.OperationalError as error:
                log.warning("heartbeat.missed", reason=str(error).strip().partition("\n")[0])
                if connection is not None:
                    connection.close()
                connection = None
                self._is_over.wait(self._settings.heartbeat_s)
        if connection is not None:
            connection.close()

    def _look_at_pump(self, connection: psycopg.Connection, key: tuple[str, int]) -> None:
        pump = self._pumps[key]
        if pump.is_alive():
            if pump.worker_id and not store.heartbeat(connection, pump.worker_id):
                pump.declared_dead()
        elif not self._is_draining:
            # An error of ours ended it (the traceback is in the log). Its rows go to recovery, a new one takes over.
            store.bury(connection, pump.worker_id)
            self._pumps[key] = self._new_pump(*key)
            self._pumps[key].start()
            log.error("pump.replaced", lane=key[0], worker_id=pump.worker_id)

    def _look_at_retired(self, connection: psycopg.Connection) -> None:
        self._retired = [pump for pump in self._retired if pump.is_alive()]
        for pump in self._retired:
            store.heartbeat(connection, pump.worker_id)

    def _look_at_providers(self, connection: psycopg.Connection) -> None:
        """Starts pumps for providers that routes name, anew when one has changed, and ends those of the others."""
        rows = {row.id: row for row in work_store.routed_providers(connection)}
        with self._changing:
            if self._is_draining:
                return
            for way_id, way in list(self._ways.items()):
                if way_id and (way_id not in rows or rows[way_id].version != way.version):
                    self._retire(way_id)
            for row in rows.values():
                if row.id not in self._ways and self._refused.get(row.id) != row.version:
                    self._open(row)

    def _open(self, row: Configured) -> None:
        try:
            provider = open_provider(self._settings, row)
        except ConfigError as error:
            self._refused[row.id] = row.version
            log.error("provider.not_opened", provider=row.full_name, reason=str(error))
            return
        self._ways[row.id] = Way(provider, Gate(provider.name), Outlet(row.account_id, row.name), row.version)
        for lane in LANES:
            pump = self._pumps[lane, row.id] = self._new_pump(lane, row.id)
            pump.start()
        log.info("provider.opened", provider=row.full_name, kind=row.kind)

    def _retire(self, way_id: int) -> None:
        del self._ways[way_id]
        for lane in LANES:
            pump = self._pumps.pop((lane, way_id))
            pump.stop(within_s=DRAIN_S)
            self._retired.append(pump)

    def _listen(self) -> None:
        """Wakes pumps when new work is committed; without it they would find it at the next tick."""
        while not self._is_over.is_set():
            try:
                with connect(self._database_url) as connection:
                    store.listen(connection)
                    while not self._is_over.is_set():
                        for notice in connection.notifies(timeout=LISTEN_AGAIN_S):
                            self._wake(notice.payload)
            except psycopg.OperationalError:
                self._is_over.wait(LISTEN_AGAIN_S)

    def _wake(self, payload: str) -> None:
        """Wakes the pumps of the lane that the payload names; of all lanes when it names none."""
        for (lane, _), pump in list(self._pumps.items()):
            if payload in ("", lane):
                pump.work_came()
