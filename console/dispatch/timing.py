"""When to try again, how fast to go, when a provider is left alone. Pure: no clock, no dice of its own."""

from console.config import Rate

# Each retry waits four times as long as the one before, from the base, up to this.
RETRY_FACTOR = 4.0
RETRY_CAP_S = 7200.0
RETRY_JITTER = 0.25
BREAKER_CAP_S = 30.0
BREAKER_LASTING_CAP_S = 300.0
# A claim ended by the worker's death costs no attempt; a message that ends five workers is a dead letter.
INTERRUPTION_CAP = 5
# Slots a little wider than the pace asks for, so that a message that is late by milliseconds never makes a full window
# overflow.
PACE_MARGIN = 1.02


def wait_before_retry(attempt_no: int, *, base_s: float, asked_s: float | None, dice: float) -> float:
    """Gives how many seconds to wait after attempt `attempt_no` was deferred.

    Takes:  attempt_no, from 1; base_s, the first wait; asked_s, what the provider asked for, None when nothing; dice,
            evenly from 0 to 1.
    Shape:  with a base of 30 s: 30 s, 2 min, 8 min, 32 min, then 2 h each, and up to a quarter more; never less than
            asked_s.
    Raises: ValueError when attempt_no < 1.
    Source: RFC 5321, 4.5.4.1 for the retry interval; RFC 9110, 10.2.3 for Retry-After.
    """
    if attempt_no < 1:
        raise ValueError(f"attempt_no is {attempt_no}, but attempts count from 1")
    wait_s = min(base_s * RETRY_FACTOR ** min(attempt_no - 1, 20), max(RETRY_CAP_S, base_s))
    return max(wait_s * (1 + RETRY_JITTER * dice), asked_s or 0.0)


def breaker_wait(failure_count: int, *, is_lasting: bool) -> float:
    """Gives how many seconds an open breaker waits before one worker may try again.

    Shape:  1, 2, 4, ... s up to 30 s; for lasting trouble (password, certificate) from 5 s up to 5 min.
    """
    first_s, cap_s = (5.0, BREAKER_LASTING_CAP_S) if is_lasting else (1.0, BREAKER_CAP_S)
    return min(first_s * 2.0 ** min(max(failure_count, 1) - 1, 20), cap_s)


def pace_interval_s(rate: Rate) -> float:
    """Gives the seconds between two messages so that no window of the rate's period holds more than its count."""
    return rate.period_s / rate.count * PACE_MARGIN


def claim_size(wanted: int, rate: Rate | None) -> int:
    """Gives how many rows to claim at once: what is wanted, but under a pace no more than a second's worth."""
    if rate is None:
        return wanted
    return max(1, min(wanted, int(1.0 / pace_interval_s(rate))))
