"""Whether there is any use in claiming now: the provider's circuit breaker, shared by the pumps of one process.

Trouble to connect says nothing about a message, so it burns no attempt: claims pause, rows wait queued, and one worker
after a while tries again. The database's row is what all processes and the screens see.

A provider that takes messages and answers none of them puts each in doubt. After UNANSWERED_LIMIT of them in a row it
counts as away, too, and is on probation then: one message at a time, until one is answered.
"""

import threading
from typing import assert_never

from psycopg import Connection

from console.dispatch import store
from console.dispatch.timing import breaker_wait
from console.providers.base import Accepted, Answer, Deferred, NoAnswer, Refused, Trouble, Untouched

# An open breaker's row is read again this often: another process may have found the provider well.
LOOK_EVERY_S = 1.0
# How long one try may take before another worker may have its turn.
TRY_HOLD_S = 35.0
UNANSWERED_LIMIT = 10


class Gate:
    """The breaker as this process knows it. All methods may be called from any pump."""

    def __init__(self, provider_name: str):
        self._name = provider_name
        self._lock = threading.Lock()
        self._is_open = False
        self._failure_count = 0
        self._look_at = 0.0
        self._is_known = False
        self._unanswered_count = 0

    @property
    def is_on_probation(self) -> bool:
        """Whether the provider has yet to answer a message again, before it gets several at once."""
        return self._unanswered_count >= UNANSWERED_LIMIT

    def hear(self, answer: Answer, *, was_marked: bool) -> Trouble | None:
        """Takes in what became of a message; gives trouble when too many in a row were handed over and not answered."""
        with self._lock:
            match answer:
                case NoAnswer(reply):
                    # On probation already: the one that was tried has met the same, so there is no hurry.
                    is_lasting = self.is_on_probation
                    self._unanswered_count += 1
                    if self.is_on_probation:
                        reason = f"{self._unanswered_count} messages in a row were handed over and not answered"
                        return Trouble(f"{reason}; last: {reply.text}", is_lasting=is_lasting)
                case Accepted() | Deferred() | Refused():
                    if was_marked:
                        self._unanswered_count = 0
                case Untouched():
                    pass
                case never:
                    assert_never(never)
        return None

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
            self._is_open = False
            # A connection is no proof that messages are answered: the next wait goes on from the last one.
            if not self.is_on_probation:
                self._failure_count = 0
