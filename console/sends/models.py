"""Tables of the ledger: sends, their attempts, the triggers that asked for them, their types."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Computed,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    SmallInteger,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from console.audience.models import EMAIL_LOWER
from console.db import IDENTITY, Base


class MessageType(Base):
    """How messages of one kind are treated."""

    __tablename__ = "message_types"
    __table_args__ = (
        CheckConstraint("lane IN ('urgent','normal','bulk')", name="lane"),
        CheckConstraint("in_doubt_policy IN ('hold','resend')", name="in_doubt_policy"),
        CheckConstraint("attempt_cap > 0 AND age_cap_s > 0", name="caps"),
        CheckConstraint("mode IN ('enforce','observe')", name="mode"),
        CheckConstraint("on_conflict IN ('refuse','first')", name="on_conflict"),
        CheckConstraint("window_s > 0", name="window"),
        ForeignKeyConstraint(["account_id", "template"], ["templates.account_id", "templates.name"]),
        ForeignKeyConstraint(["account_id", "content_id"], ["send_contents.account_id", "send_contents.id"]),
        ForeignKeyConstraint(["account_id", "route"], ["routes.account_id", "routes.name"]),
        {"comment": "How messages of one kind are treated."},
    )

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    name: Mapped[str] = mapped_column(primary_key=True, comment="The type's name; each account has 'campaign'.")
    lane: Mapped[str] = mapped_column(server_default=text("'bulk'"), comment="urgent, normal or bulk.")
    in_doubt_policy: Mapped[str] = mapped_column(
        server_default=text("'hold'"), comment="hold: stay in doubt; resend: hand over again (at least once)."
    )
    attempt_cap: Mapped[int] = mapped_column(
        SmallInteger, server_default=text("12"), comment="Attempts after which a send is a dead letter."
    )
    age_cap_s: Mapped[int] = mapped_column(
        server_default=text("345600"),
        comment="Seconds from first being due after which a send is a dead letter; 4 days (RFC 5321, 4.5.4.1).",
    )
    template: Mapped[str | None] = mapped_column(comment="The template of its messages; empty: callers give the parts.")
    sender: Mapped[str | None] = mapped_column(comment="The From field of its messages.")
    route: Mapped[str | None] = mapped_column(comment="By which route they go; empty: the account's default.")
    content_id: Mapped[int | None] = mapped_column(comment="The template's newest version with the sender, as sent.")
    window_s: Mapped[int | None] = mapped_column(comment="Seconds for which a dedupe key is taken; empty: for ever.")
    mode: Mapped[str] = mapped_column(
        server_default=text("'enforce'"),
        comment="enforce: a taken key makes no second message; observe: it does, and the trigger says so.",
    )
    on_conflict: Mapped[str] = mapped_column(
        server_default=text("'refuse'"),
        comment="A taken key with other content: refuse it, or answer with the first message.",
    )
    key_pattern: Mapped[str | None] = mapped_column(
        comment="Makes the dedupe key: order_receipt:{order_id}:{email_type}; empty: callers give it."
    )


class SendContent(Base):
    """What messages are made from, as it was when they were accepted; never changed, so a retry repeats its message."""

    __tablename__ = "send_contents"
    __table_args__ = (
        Index(
            "send_contents_template_idx",
            "account_id",
            "fingerprint",
            unique=True,
            postgresql_where=text("NOT is_rendered"),
        ),
        # Not unique: who hands over equal finished parts would wait for the end of each other's transactions.
        Index("send_contents_rendered_idx", "account_id", "fingerprint", postgresql_where=text("is_rendered")),
        {"comment": "What messages outside campaigns are made from; a row is never changed."},
    )

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The content's number.")
    fingerprint: Mapped[str] = mapped_column(comment="SHA-256 of all that follows; equal content is one row.")
    subject: Mapped[str] = mapped_column(comment="The subject.")
    sender: Mapped[str] = mapped_column(comment="The From field.")
    sender_domain: Mapped[str] = mapped_column(comment="The domain of Message-IDs, in A-labels.")
    html: Mapped[str] = mapped_column(comment="The HTML part.")
    is_rendered: Mapped[bool] = mapped_column(
        server_default=text("false"), comment="Finished parts from the caller, in which no template language is read."
    )
    template: Mapped[str | None] = mapped_column(comment="The template that it is from.")
    template_version: Mapped[int | None] = mapped_column(comment="The version of that.")
    required_fields: Mapped[list[str]] = mapped_column(
        ARRAY(Text), server_default=text("'{}'"), comment="Parameters without which no message can be made."
    )
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it was first used.")
    # Last, since from here on the name is the column.
    text: Mapped[str] = mapped_column(comment="The text part; empty: made from the HTML part.")


class Send(Base):
    """One message to one recipient. The row is the reservation; sends/states.py says how it moves."""

    __tablename__ = "sends"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "campaign_id"], ["campaigns.account_id", "campaigns.id"]),
        ForeignKeyConstraint(["account_id", "subscriber_id"], ["subscribers.account_id", "subscribers.id"]),
        CheckConstraint("lane IN ('urgent','normal','bulk')", name="lane"),
        CheckConstraint(
            "status IN ('queued','sending','sent','failed','in_doubt','dead','suppressed','cancelled','expired')",
            name="status",
        ),
        CheckConstraint("status <> 'sending' OR claimed_by IS NOT NULL", name="claimed"),
        ForeignKeyConstraint(["account_id", "message_type"], ["message_types.account_id", "message_types.name"]),
        ForeignKeyConstraint(["account_id", "content_id"], ["send_contents.account_id", "send_contents.id"]),
        # The reservation: of all rows with one key, one holds it.
        Index("sends_key_idx", "account_id", "dedupe_key", unique=True, postgresql_where=text("holds_key")),
        Index("sends_past_key_idx", "account_id", "dedupe_key", postgresql_where=text("NOT holds_key")),
        UniqueConstraint("account_id", "campaign_id", "subscriber_id"),
        # Address before campaign: the same index finds all that one person got.
        UniqueConstraint("account_id", "email_lower", "campaign_id"),
        # No index names `status`: mark and outcome then change no indexed column, so PostgreSQL writes the new row
        # version beside the old one and touches no index (HOT). Rows being sent are found through `claims`.
        # Exactly the ORDER BY of the claim (dispatch/recorder.py), or the planner walks past every sent row.
        Index("sends_queued_idx", "account_id", "campaign_id", "due_at", "id", postgresql_where=text("is_queued")),
        # The same for what belongs to no campaign.
        Index(
            "sends_lane_idx",
            "account_id",
            "lane",
            "due_at",
            "id",
            postgresql_where=text("is_queued AND campaign_id IS NULL"),
        ),
        # A campaign's Message-IDs name their campaign, along whose sends they are found.
        Index("sends_message_id_idx", "account_id", "message_id", postgresql_where=text("campaign_id IS NULL")),
        # What waits for a person, of all campaigns, by why it does.
        Index(
            "sends_unsettled_idx",
            "account_id",
            "exception",
            "error_class",
            "id",
            postgresql_where=text("exception IN ('dead','in_doubt')"),
        ),
        # The states that few rows are in; sent rows never enter it.
        Index(
            "sends_exception_idx",
            "account_id",
            "campaign_id",
            "exception",
            "id",
            postgresql_where=text("exception IS NOT NULL"),
        ),
        {
            "comment": "The ledger: one row a message; the row is the reservation, the queue entry and the record.",
            "postgresql_with": {"fillfactor": "70"},
        },
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The send's number.")
    campaign_id: Mapped[int | None] = mapped_column(comment="The campaign, when it came from one.")
    subscriber_id: Mapped[int | None] = mapped_column(comment="The subscriber, when it came from a campaign.")
    email: Mapped[str] = mapped_column(comment="The address that the message goes to.")
    email_lower: Mapped[str] = mapped_column(EMAIL_LOWER, comment="The address, normalised (audience/address.py).")
    lane: Mapped[str] = mapped_column(comment="urgent, normal or bulk; lanes never wait for one another.")
    dedupe_key: Mapped[str] = mapped_column(
        comment="The event's stable name; for a campaign the job_id, campaign:{campaign_id}:{subscriber_id}."
    )
    holds_key: Mapped[bool] = mapped_column(
        server_default=text("true"),
        comment="Whether the key is taken by this row; not after its window, or if observed.",
    )
    key_until: Mapped[datetime | None] = mapped_column(comment="When the key may be used again; empty: never.")
    message_type: Mapped[str | None] = mapped_column(comment="Its type, when it did not come from a campaign.")
    content_id: Mapped[int | None] = mapped_column(comment="Its content, when it did not come from a campaign.")
    expires_at: Mapped[datetime | None] = mapped_column(comment="After this it is of no use and is not sent.")
    metadata_: Mapped[dict[str, Any]] = mapped_column(
        "metadata", server_default=text("'{}'"), comment="What the caller wants to find with it again."
    )
    status: Mapped[str] = mapped_column(server_default=text("'queued'"), comment="The state (sends/states.py).")
    is_queued: Mapped[bool] = mapped_column(
        Computed("status = 'queued'", persisted=True), comment="Whether the state is queued; for the queue's index."
    )
    exception: Mapped[str | None] = mapped_column(
        Computed(
            "CASE WHEN status IN ('failed','in_doubt','dead','suppressed','cancelled','expired') THEN status END",
            persisted=True,
        ),
        comment="The state, when it is one that few sends are in; for the indexes over those.",
    )
    due_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="Not to be claimed before.")
    first_due_at: Mapped[datetime] = mapped_column(
        server_default=func.now(),
        comment="When it was first due, or put back by a person; the age cap counts from here.",
    )
    attempt_no: Mapped[int] = mapped_column(
        SmallInteger, server_default=text("0"), comment="Attempts so far: hand-overs and refusals before one."
    )
    attempt_base: Mapped[int] = mapped_column(
        SmallInteger,
        server_default=text("0"),
        comment="Attempts before a person put it back last; the attempt cap and the waits count from here.",
    )
    bound_to: Mapped[str | None] = mapped_column(
        comment="The provider that alone may have it again: it may have been taken there. Empty: as its route says."
    )
    bound_until: Mapped[datetime | None] = mapped_column(
        comment="Until when it may be handed over there again; later it is in doubt again. Empty: it is not bound."
    )
    interrupted_count: Mapped[int] = mapped_column(
        SmallInteger, server_default=text("0"), comment="Claims that ended with the worker's death before a hand-over."
    )
    claimed_by: Mapped[int | None] = mapped_column(comment="The worker that claimed it last; fences its outcomes.")
    claimed_at: Mapped[datetime | None] = mapped_column(comment="When it was claimed last.")
    handed_over_at: Mapped[datetime | None] = mapped_column(
        comment="The mark, set just before the final dot of this attempt; empty: surely not handed over."
    )
    finished_at: Mapped[datetime | None] = mapped_column(comment="When it reached a final state.")
    message_id: Mapped[str] = mapped_column(comment="The Message-ID with its brackets; the same in every attempt.")
    dated_at: Mapped[datetime | None] = mapped_column(comment="The Date field, set at the first claim, then kept.")
    merge_values: Mapped[dict[str, Any]] = mapped_column(
        server_default=text("'{}'"), comment="The subscriber's values of the fields that the content uses, as approved."
    )
    correlation_id: Mapped[str] = mapped_column(comment="Follows one trigger to the provider's id.")
    provider_reply: Mapped[str | None] = mapped_column(comment="The last words of the provider, or why there are none.")
    error_class: Mapped[str] = mapped_column(
        server_default=text("''"),
        comment="Why it is dead or in doubt, for grouping: 451-4.7.1-rcpt, no-answer-end, too-old; else empty.",
    )
    provider_id: Mapped[str | None] = mapped_column(comment="The provider's own id for the message.")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it was reserved.")


class Claim(Base):
    """The sends that a worker took in one statement; forgotten when all of them are through."""

    __tablename__ = "claims"
    __table_args__ = (
        Index(None, "worker_id"),
        {"comment": "Which sends each worker holds, one row a claim: how recovery finds those of a dead one."},
    )

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The claim's number.")
    worker_id: Mapped[int] = mapped_column(comment="The worker that made it.")
    campaign_id: Mapped[int | None] = mapped_column(comment="The campaign that the sends are of.")
    send_ids: Mapped[list[int]] = mapped_column(ARRAY(BigInteger), comment="The sends, sending when it was made.")
    claimed_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it was made.")


class Attempt(Base):
    """One hand-over, or a refusal before it, with what the provider said."""

    __tablename__ = "attempts"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "send_id"], ["sends.account_id", "sends.id"]),
        CheckConstraint("outcome IN ('accepted','deferred','refused','no_answer')", name="outcome"),
        {"comment": "Each hand-over, or refusal before one, with the provider's words."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    send_id: Mapped[int] = mapped_column(primary_key=True, comment="The send.")
    attempt_no: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False, comment="From 1.")
    worker_id: Mapped[int] = mapped_column(comment="The worker that made it.")
    provider: Mapped[str] = mapped_column(comment="The provider's name in our registry.")
    outcome: Mapped[str] = mapped_column(comment="accepted, deferred, refused or no_answer (then: in doubt).")
    phase: Mapped[str] = mapped_column(comment="Where it ended: mail, rcpt, data, body, end, compose, recovery.")
    code: Mapped[int | None] = mapped_column(SmallInteger, comment="Reply code, such as 250 or 451.")
    enhanced: Mapped[str | None] = mapped_column(comment="Enhanced status code (RFC 3463), such as 4.2.2.")
    reply: Mapped[str | None] = mapped_column(comment="The provider's words, all lines, cut at 2,000 characters.")
    claimed_at: Mapped[datetime | None] = mapped_column(comment="When its claim was made.")
    handed_over_at: Mapped[datetime | None] = mapped_column(comment="The mark; empty when it ended before one.")
    ended_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When the outcome was recorded.")


class Trigger(Base):
    """One request to send, whoever made it."""

    __tablename__ = "triggers"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "campaign_id"], ["campaigns.account_id", "campaigns.id"]),
        CheckConstraint(
            "source IN ('web_request','webhook','cron','background_job','manual_admin','api','sql','import')",
            name="source",
        ),
        CheckConstraint(
            "decision IN ('accepted','duplicate_suppressed','duplicate_observed','suppressed','refused')",
            name="decision",
        ),
        Index(None, "account_id", "campaign_id", postgresql_where=text("campaign_id IS NOT NULL")),
        Index(None, "account_id", "send_id", postgresql_where=text("send_id IS NOT NULL")),
        Index(None, "account_id", "email_lower", "at", postgresql_where=text("email_lower IS NOT NULL")),
        Index(None, "account_id", "correlation_id"),
        # What a team looks at before it lets a type enforce its keys.
        Index(
            "triggers_odd_idx",
            "account_id",
            "message_type",
            "id",
            postgresql_where=text("decision IN ('refused','duplicate_observed') OR warnings IS NOT NULL"),
        ),
        {"comment": "Each request to send. A campaign's start is one trigger for all its recipients."},
    )

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The trigger's number.")
    at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it came.")
    source: Mapped[str] = mapped_column(comment="Who asked: web_request, webhook, cron, background_job, ...")
    code_path: Mapped[str] = mapped_column(comment="Which code asked: a service and function name.")
    correlation_id: Mapped[str] = mapped_column(comment="Follows it to the provider's id.")
    campaign_id: Mapped[int | None] = mapped_column(comment="The campaign that it started.")
    send_id: Mapped[int | None] = mapped_column(comment="The send that it made or met.")
    decision: Mapped[str] = mapped_column(comment="accepted, duplicate_suppressed, duplicate_observed, ...")
    message_type: Mapped[str | None] = mapped_column(comment="The type of message that was asked for.")
    email_lower: Mapped[str | None] = mapped_column(EMAIL_LOWER, comment="The recipient, normalised.")
    template: Mapped[str | None] = mapped_column(comment="The template that was asked for; empty: finished parts.")
    dedupe_key: Mapped[str | None] = mapped_column(comment="The key that was given or made.")
    request_id: Mapped[str | None] = mapped_column(comment="The caller's request.")
    event: Mapped[str | None] = mapped_column(comment="The business event, such as invoice.paid.")
    entities: Mapped[dict[str, Any]] = mapped_column(
        server_default=text("'{}'"), comment="What the event is about, by name: order_id and the like."
    )
    differs: Mapped[list[str] | None] = mapped_column(
        ARRAY(Text), comment="What was not as in the message that holds the key."
    )
    warnings: Mapped[list[str] | None] = mapped_column(
        ARRAY(Text), comment="What is odd about its key: key_looks_random, key_too_broad."
    )


class SqlGrant(Base):
    """A database role that may hand over messages for an account."""

    __tablename__ = "sql_grants"
    __table_args__ = ({"comment": "Database roles of applications, and the account each hands messages over for."},)

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    role_name: Mapped[str] = mapped_column(primary_key=True, comment="The role, as pg_roles names it.")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="Since when.")
