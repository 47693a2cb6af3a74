"""What is on record about one recipient in one window: rows as plain values, as store.py reads them. Pure.

Timeline and verdict are made from these values alone, so whatever they say stands in a row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

# What makes a message, as against what meets one that is there.
MAKING = frozenset({"accepted", "suppressed", "duplicate_observed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One trigger: somebody asked for a message."""

    id: int
    at: datetime
    source: str
    code_path: str
    event: str
    entities: Mapping[str, Any]
    decision: str
    dedupe_key: str
    request_id: str
    correlation_id: str
    message_type: str
    template: str
    send_id: int | None
    campaign_id: int | None = None
    differs: Sequence[str] = ()
    warnings: Sequence[str] = ()

    @property
    def way(self) -> tuple[str, str]:
        """The code path with its source."""
        return self.source, self.code_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued:
    """One send: a message that was reserved."""

    id: int
    at: datetime
    email: str
    status: str
    message_type: str
    subject: str
    dedupe_key: str
    message_id: str
    provider_id: str
    correlation_id: str
    campaign_id: int | None
    campaign_name: str
    params: Mapping[str, Any]
    reply: str
    policy: str
    finished_at: datetime | None
    due_at: datetime
    interrupted_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One attempt: a hand-over with its outcome, or what was refused before one."""

    send_id: int
    attempt_no: int
    worker_id: int
    provider: str
    outcome: str
    phase: str
    reply: str
    handed_over_at: datetime | None
    ended_at: datetime

    @property
    def may_have_arrived(self) -> bool:
        """Whether the provider accepted it, or nobody knows."""
        return self.outcome in ("accepted", "no_answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What a person decided about a send: revive, settle_sent, settle_resend, settle_failed."""

    send_id: int
    set_id: int
    change: str
    by_name: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """One inbound webhook event that asked for a message."""

    id: int
    at: datetime
    endpoint: str
    event_id: str
    id_source: str
    event_type: str
    body_sha256: str
    request_id: str
    correlation_id: str
    send_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redelivered:
    """The same webhook event once more; it made nothing."""

    id: int
    event_number: int
    at: datetime
    request_id: str
    is_same_body: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What the provider reported about a send."""

    id: int
    send_id: int
    at: datetime
    provider: str
    fact: str
    provider_id: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is on record; `message_type` names the one that was asked for, empty for all."""

    recipient: str
    start: datetime
    end: datetime
    message_type: str = ""
    asked: Sequence[Asked] = field(default_factory=list)
    enqueued: Sequence[Enqueued] = field(default_factory=list)
    tried: Sequence[Tried] = field(default_factory=list)
    decided: Sequence[Decided] = field(default_factory=list)
    came: Sequence[Came] = field(default_factory=list)
    redelivered: Sequence[Redelivered] = field(default_factory=list)
    reported: Sequence[Reported] = field(default_factory=list)

    def attempts_of(self, send_id: int) -> list[Tried]:
        """Gives the attempts of a send, first to last."""
        return sorted((each for each in self.tried if each.send_id == send_id), key=lambda each: each.attempt_no)

    def maker_of(self, send: Enqueued) -> Asked | None:
        """Gives the trigger that made the send; of a campaign's, the one that started the campaign."""
        makers = [each for each in self.asked if each.send_id == send.id and each.decision in MAKING]
        if not makers and send.campaign_id is not None:
            makers = [each for each in self.asked if each.campaign_id == send.campaign_id]
        return min(makers, key=lambda each: each.id, default=None)

    def webhook_of(self, asked: Asked) -> Came | None:
        """Gives the inbound event that a trigger comes from."""
        wanted = (asked.correlation_id, asked.request_id)
        return next((each for each in self.came if (each.correlation_id, each.request_id) == wanted), None)

    def accepts_of(self, send: Enqueued) -> list[datetime]:
        """Gives when a provider accepted the send, as far as it is known: by its answer, its report, or a person."""
        moments = [each.ended_at for each in self.attempts_of(send.id) if each.outcome == "accepted"]
        if moments:
            return moments
        proofs = [each.at for each in self.reported if each.send_id == send.id and each.fact != "dropped"]
        proofs += [each.at for each in self.decided if each.send_id == send.id and each.change == "settle_sent"]
        return sorted(proofs)[:1]

    def doubts_of(self, send: Enqueued) -> list[Tried]:
        """Gives the hand-overs that nobody knows the outcome of. A proof that one was accepted clears one of them."""
        doubts = [each for each in self.attempts_of(send.id) if each.outcome == "no_answer"]
        has_answer = any(each.outcome == "accepted" for each in self.attempts_of(send.id))
        return doubts if has_answer or not self.accepts_of(send) else doubts[1:]
