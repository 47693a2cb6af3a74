"""A pump's link to the database: its identity there, and two ways to ask, made anew when they break."""

import os
from collections.abc import Callable

import psycopg

from console.dispatch import store
from console.dispatch.asker import Asker
from console.providers.base import Provider

AGAIN_S = 0.5
# Opens a connection of dispatch (asker.py).
Connect = Callable[[], psycopg.Connection]


class Link:
    """A connection for claims and two for records, so that they wait for the disk at the same time."""

    def __init__(self, connect: Connect, provider: Provider):
        self._connect = connect
        self._provider = provider
        self._again_at = 0.0
        self.worker_id = 0
        self.claims: Asker | None = None
        self.records: tuple[Asker, ...] = ()

    @property
    def slot(self) -> int:
        """The slot of the counters that this worker writes to."""
        return self.worker_id % store.WORKER_SLOT_COUNT

    @property
    def askers(self) -> tuple[Asker, ...]:
        return self.records if self.claims is None else (*self.records, self.claims)

    @property
    def is_up(self) -> bool:
        return bool(self.records)

    @property
    def free_record(self) -> Asker | None:
        """One that may be asked; None while all wait for an answer."""
        return next((asker for asker in self.records if not asker.is_waiting), None)

    def may_reach(self, now: float) -> bool:
        """Gives False shortly after a vain try to connect."""
        return now >= self._again_at

    def reach(self, held_ids: list[int], now: float) -> None:
        """Connects; puts back what an earlier connection claimed without the pump hearing of it.

        Takes:  held_ids, the sends that the pump knows it holds.
        Raises: psycopg.OperationalError.
        """
        self._again_at = now + AGAIN_S
        connection = self._connect()
        if not self.worker_id:
            self.register(connection)
        store.release_unheld(connection, self.worker_id, held_ids=held_ids, slot=self.slot)
        self.claims = Asker(self._connect())
        self.records = Asker(connection), Asker(self._connect())

    def register(self, connection: psycopg.Connection) -> None:
        """Takes a new identity."""
        self.worker_id = store.register(
            connection,
            host=os.uname().nodename,
            pid=os.getpid(),
            provider=self._provider.name,
            may_settle=self._provider.capabilities.may_settle,
        )

    def close(self) -> None:
        for asker in self.askers:
            asker.connection.close()
        self.records, self.claims = (), None
