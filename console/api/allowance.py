"""How often a key may call: taken from the shared bucket of its row in small advances, spent in this process.

An advance makes one statement serve many calls; what is advanced has been paid for, so that all processes together
allow no more than the limit in the long run.
"""

import math
import threading
import time
from dataclasses import dataclass

from sqlalchemy import Engine

from console.accounts.key_store import KeyHolder
from console.api import allowance_store
from console.api.allowance_store import Bucket
from console.db import in_autocommit

# A key may save up this much of its calls, and spend it at once.
BURST_S = 10.0
ADVANCE_SHARE = 0.05


@dataclass(slots=True)
class _Purse:
    """What this process has of one key's calls: in advance, or none before a moment of the monotonic clock."""

    advance: int = 0
    closed_until: float = 0.0


class Allowances:
    """The allowances of all keys, as one process sees them."""

    def __init__(self, engine: Engine):
        self._engine = in_autocommit(engine)
        self._purses: dict[tuple[int, int], _Purse] = {}
        self._lock = threading.Lock()

    def spend(self, holder: KeyHolder, *, calls: int = 1) -> int | None:
        """Takes `calls` off the key's allowance.

        Gives: None when it may go on, else after how many whole seconds it may try again (from 1).
        """
        purse = self._purse(holder)
        with self._lock:
            if purse.advance >= calls:
                purse.advance -= calls
                return None
            closed_s = purse.closed_until - time.monotonic()
        if closed_s > 0:
            return math.ceil(closed_s)
        return self._fetch(holder, purse, calls=calls)

    def _fetch(self, holder: KeyHolder, purse: _Purse, *, calls: int) -> int | None:
        bucket = _bucket(holder.calls_per_minute)
        advance = int(bucket.most * ADVANCE_SHARE)
        with self._engine.connect() as connection:
            wait_s = allowance_store.take(
                connection, holder.account_id, key_id=holder.key_id, bucket=bucket, wanted=calls + advance
            )
        with self._lock:
            if wait_s is None:
                purse.advance += advance
                return None
            purse.closed_until = time.monotonic() + wait_s
        return max(1, math.ceil(wait_s))

    def _purse(self, holder: KeyHolder) -> _Purse:
        with self._lock:
            return self._purses.setdefault((holder.account_id, holder.key_id), _Purse())


def _bucket(calls_per_minute: int) -> Bucket:
    per_s = calls_per_minute / 60
    return Bucket(most=max(1.0, per_s * BURST_S), per_s=per_s)
