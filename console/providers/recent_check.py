"""One answer to "does the provider take anything from us" for all channels that are opened at about the same time.

Sixteen channels are no sixteen questions: vendors count those too (Amazon SES answers one a second).
"""

import threading
import time
from collections.abc import Callable

from console.providers.base import Trouble

HOLDS_S = 30.0


class RecentCheck:
    """Asks by `check`, which blocks, at most once at a time. All methods may be called from any thread."""

    def __init__(self, check: Callable[[], Trouble | None]):
        self._check = check
        self._lock = threading.Lock()
        self._checked_at = float("-inf")
        self._trouble: Trouble | None = None

    def trouble(self) -> Trouble | None:
        """Gives what was found in the last half minute, or asks anew; trouble is always looked at anew.

        Who had to wait for somebody else's answer shares it, also when it is trouble.
        """
        asked_at = time.monotonic()
        with self._lock:
            holds_s = HOLDS_S if self._trouble is None else 0.0
            if self._checked_at < asked_at - holds_s:
                self._trouble = self._check()
                self._checked_at = time.monotonic()
            return self._trouble

    def forget(self) -> None:
        """To be called when the provider has shown trouble with something else."""
        self._checked_at = float("-inf")
