"""The states of a send and the changes between them: the one table that everything else obeys. Pure.

Nothing but sends/store.py and dispatch/recorder.py writes `status`, each time by compare-and-set from the
sources that this table names; tests hold the literals in their SQL against it.
"""

from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """Where a send is."""

    QUEUED = "queued"  # waits; moved on by a claim, an opt-out or a cancellation
    SENDING = "sending"  # claimed by a worker; moved on by its outcome, or by recovery
    SENT = "sent"  # a provider accepted it
    FAILED = "failed"  # refused for good; the reply says why
    IN_DOUBT = "in_doubt"  # handed over, no outcome known; moved on by proof or by a person
    DEAD = "dead"  # attempts or age ran out; a person may put it back
    SUPPRESSED = "suppressed"  # an opt-out stopped it
    CANCELLED = "cancelled"  # its campaign, or a person, stopped it
    EXPIRED = "expired"  # too late to be of use


S = State


class Change(StrEnum):
    """What can happen to a send."""

    CLAIM = "claim"
    MARK = "mark"
    ACCEPT = "accept"
    REFUSE = "refuse"
    DEFER = "defer"
    GIVE_BACK = "give_back"
    DOUBT = "doubt"
    BURY = "bury"
    SUPPRESS = "suppress"
    CANCEL = "cancel"
    EXPIRE = "expire"
    SETTLE_SENT = "settle_sent"
    SETTLE_RESEND = "settle_resend"
    SETTLE_FAILED = "settle_failed"
    REVIVE = "revive"
    REPORT = "report"


class Step(NamedTuple):
    sources: frozenset[State]
    target: State


STEPS: dict[Change, Step] = {
    Change.CLAIM: Step(frozenset({S.QUEUED}), S.SENDING),
    # The fence before the final dot: the row stays where it is, but only if it still is there.
    Change.MARK: Step(frozenset({S.SENDING}), S.SENDING),
    # From IN_DOUBT the next three need proof: a late answer to the same attempt, or the provider's own records.
    Change.ACCEPT: Step(frozenset({S.SENDING, S.IN_DOUBT}), S.SENT),
    Change.REFUSE: Step(frozenset({S.SENDING, S.IN_DOUBT}), S.FAILED),
    Change.DEFER: Step(frozenset({S.SENDING, S.IN_DOUBT}), S.QUEUED),
    # Surely not handed over: no attempt is counted. From IN_DOUBT when the worker itself, frozen meanwhile, says so.
    Change.GIVE_BACK: Step(frozenset({S.SENDING, S.IN_DOUBT}), S.QUEUED),
    # From QUEUED when it was to be handed over again to the provider that may have it, and can't be safely any more.
    Change.DOUBT: Step(frozenset({S.SENDING, S.QUEUED}), S.IN_DOUBT),
    Change.BURY: Step(frozenset({S.QUEUED, S.SENDING, S.IN_DOUBT}), S.DEAD),
    Change.SUPPRESS: Step(frozenset({S.QUEUED, S.SENDING}), S.SUPPRESSED),
    Change.CANCEL: Step(frozenset({S.QUEUED, S.SENDING}), S.CANCELLED),
    Change.EXPIRE: Step(frozenset({S.QUEUED}), S.EXPIRED),
    # A person, with a reason; the message type's policy; a provider that makes no second message of it.
    Change.SETTLE_SENT: Step(frozenset({S.IN_DOUBT}), S.SENT),
    Change.SETTLE_RESEND: Step(frozenset({S.IN_DOUBT}), S.QUEUED),
    Change.SETTLE_FAILED: Step(frozenset({S.IN_DOUBT}), S.FAILED),
    Change.REVIVE: Step(frozenset({S.DEAD, S.FAILED}), S.QUEUED),
    # The provider itself says that it has the message: no second hand-over, whatever was planned meanwhile.
    Change.REPORT: Step(frozenset({S.IN_DOUBT, S.QUEUED, S.DEAD}), S.SENT),
}

FINAL = frozenset({S.SENT, S.FAILED, S.SUPPRESSED, S.CANCELLED, S.EXPIRED})
