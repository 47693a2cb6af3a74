"""Times, gaps, names and lists as timelines write them. Pure."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

SOURCES = {
    "web_request": "a web request",
    "webhook": "a webhook",
    "cron": "a scheduled run",
    "background_job": "a background job",
    "manual_admin": "a person in an admin tool",
    "api": "an API call",
    "sql": "an SQL call",
    "import": "an import",
}
DECISIONS = {
    "accepted": "it was accepted",
    "duplicate_suppressed": "its key was taken, so it made no second message",
    "duplicate_observed": "its key was taken, but the message type only observes, so it made a message all the same",
    "suppressed": "the recipient has opted out, so its message was stopped",
    "refused": "it was refused, because its key is taken by a message with other content",
}
OUTCOMES = {
    "accepted": "accepted it",
    "deferred": "put it off, so it surely was not accepted",
    "refused": "refused it for good",
    "no_answer": "gave no answer: it may have been accepted or not",
}
CHANGES = {
    "revive": "put the dead letter back into the queue",
    "settle_sent": "settled it as sent",
    "settle_resend": "had it sent again",
    "settle_failed": "gave it up",
}
FACTS = {
    "accepted": "was accepted",
    "deferred": "is delayed on its way",
    "delivered": "was delivered",
    "bounced": "bounced",
    "complained": "was marked as spam",
    "opened": "was opened",
    "dropped": "was dropped",
}
# States that a send can end in without an attempt that says why.
ENDS = {
    "queued": "waits to be sent",
    "sending": "is being sent",
    "failed": "failed",
    "in_doubt": "is in doubt",
    "dead": "is a dead letter",
    "suppressed": "was stopped by an opt-out",
    "cancelled": "was cancelled",
    "expired": "became too late to be of use",
}
CAUSES = {
    "event_created_twice": "The event was created twice",
    "webhook_redelivered": "A webhook was delivered again and treated as new",
    "duplicate_subscription": "Two subscriptions deliver the same webhook",
    "job_enqueued_twice": "The job was enqueued twice",
    "job_ran_twice": "One job ran twice",
    "retry_after_accept": "It was tried again after it had been accepted",
    "two_code_paths": "Two code paths send the same message",
    "key_too_narrow": "The dedupe key is too narrow",
    "key_too_broad": "The dedupe key is too broad",
    "operator_resend": "A person had it sent again",
    "in_doubt_resend": "It was handed over again while the first hand-over was in doubt",
    "one_accept": "It was accepted once",
    "never_accepted": "It was never accepted",
    "undecided": "The records do not decide",
}


def clock(moment: datetime) -> str:
    """Gives the time of day in UTC with its milliseconds: 10:02:11.250."""
    utc = moment.astimezone(UTC)
    return f"{utc:%H:%M:%S}.{utc.microsecond // 1000:03d}"


def day(moment: datetime) -> str:
    """Gives the day in UTC: 7 Dec 2026."""
    utc = moment.astimezone(UTC)
    return f"{utc.day} {utc:%b %Y}"


def gap(length: timedelta) -> str:
    """Gives a length of time with one unit or two: 35 ms, 1.2 s, 4 min 5 s, 3 h 2 min, 2 d 4 h."""
    seconds = length.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit_s, unit, small_s, small in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit_s:
            rest = whole % unit_s // small_s
            return f"{whole // unit_s} {unit}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def listed(words: Iterable[str]) -> str:
    """Gives a, b and c."""
    *most, last = list(words) or ["nothing"]
    return f"{', '.join(most)} and {last}" if most else last


def named(values: Mapping[str, Any]) -> str:
    """Gives names with their values: order_id 1001, user_id 7."""
    return ", ".join(f"{name} {value}" for name, value in sorted(values.items()))


def times(count: int) -> str:
    """Gives once, twice, 3 times."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def plural(count: int, noun: str) -> str:
    """Gives 1 message, 2 messages."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
