"""Whether there is any use in claiming now: the provider's circuit breaker, shared by the pumps of one process.

Trouble to connect says nothing about a message, so it burns no attempt: claims pause, rows wait queued, and one worker
after a while tries again. The database's row is what all processes and the screens see.
"""

import threading

from psycopg import Connection

from console.dispatch import store
from console.dispatch.timing import breaker_wait
from console.providers.base import Trouble

# An open breaker's row is read again this often: another process may have found the provider well.
LOOK_EVERY_S = 1.0
# How long one try may take before another worker may have its turn.
TRY_HOLD_S = 35.0


class Gate:
    """The breaker as this process knows it. All methods may be called from any pump."""

    def __init__(self, provider_name: str):
        self._name = provider_name
        self._lock = threading.Lock()
        self._is_open = False
        self._failure_count = 0
        self._look_at = 0.0
        self._is_known = False

    @property
    def is_open(self) -> bool:
        """An open breaker lets nothing through."""
        return self._is_open

    def may_claim(self, connection: Connection, now: float) -> bool:
        """Gives False while the breaker is open."""
        with self._lock:
            if self._is_known and not self._is_open:
                return True
            if self._is_known and now < self._look_at:
                return False
            breaker, self._failure_count, _ = store.provider_state(connection, self._name)
            self._is_known, self._is_open = True, breaker == "open"
            self._look_at = now + LOOK_EVERY_S
            return not self._is_open

    def may_try(self, connection: Connection) -> bool:
        """Gives True to one worker of all when the open provider's waiting time is over."""
        return store.take_try(connection, self._name, hold_s=TRY_HOLD_S)

    def fail(self, connection: Connection, trouble: Trouble) -> None:
        """Opens the breaker, or keeps it open for longer."""
        with self._lock:
            self._failure_count += 1
            self._is_known = self._is_open = True
            wait_s = breaker_wait(self._failure_count, is_lasting=trouble.is_lasting)
            store.open_breaker(
                connection, self._name, failure_count=self._failure_count, error=trouble.reason, wait_s=wait_s
            )

    def succeed(self, connection: Connection) -> None:
        """Closes the breaker after a connection that went well."""
        with self._lock:
            if self._is_open:
                store.close_breaker(connection, self._name)
            self._is_open, self._failure_count = False, 0
