"""The states of a campaign and the changes between them. Pure; the SQL beside it (store.py) obeys this table."""

from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """Where a campaign is."""

    DRAFT = "draft"  # being written; a rejected campaign is a draft again, with a note
    SUBMITTED = "submitted"  # waits for an approver
    APPROVED = "approved"  # waits for its time
    SENDING = "sending"  # its audience is built and its rows are sent
    PAUSED = "paused"  # no new claims; a person resumes
    SENT = "sent"  # no row is queued or sending
    CANCELLED = "cancelled"  # stopped for good


S = State


class Change(StrEnum):
    """What can happen to a campaign."""

    EDIT = "edit"
    SUBMIT = "submit"
    APPROVE = "approve"
    REJECT = "reject"
    START = "start"
    HOLD = "hold"
    PAUSE = "pause"
    RESUME = "resume"
    FINISH = "finish"
    REOPEN = "reopen"
    CANCEL = "cancel"


class Step(NamedTuple):
    sources: frozenset[State]
    target: State


STEPS: dict[Change, Step] = {
    # An edit voids the approval.
    Change.EDIT: Step(frozenset({S.DRAFT, S.SUBMITTED, S.APPROVED}), S.DRAFT),
    Change.SUBMIT: Step(frozenset({S.DRAFT}), S.SUBMITTED),
    Change.APPROVE: Step(frozenset({S.SUBMITTED}), S.APPROVED),
    Change.REJECT: Step(frozenset({S.SUBMITTED, S.APPROVED}), S.DRAFT),
    Change.START: Step(frozenset({S.APPROVED}), S.SENDING),
    # Found due longer ago than the late limit: kept for a person instead of sent by surprise.
    Change.HOLD: Step(frozenset({S.APPROVED}), S.PAUSED),
    Change.PAUSE: Step(frozenset({S.SENDING}), S.PAUSED),
    Change.RESUME: Step(frozenset({S.PAUSED}), S.SENDING),
    Change.FINISH: Step(frozenset({S.SENDING}), S.SENT),
    # A person put one of its dead letters, or a send in doubt, back to the queue (sends/settle_store.py).
    Change.REOPEN: Step(frozenset({S.SENT}), S.SENDING),
    Change.CANCEL: Step(frozenset({S.DRAFT, S.SUBMITTED, S.APPROVED, S.SENDING, S.PAUSED}), S.CANCELLED),
}
