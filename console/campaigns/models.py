"""Tables of campaigns, the versions of their content, and the counters of their progress."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, SmallInteger, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import Text

from console.audience.models import EMAIL_LOWER
from console.db import IDENTITY, Base


class Campaign(Base):
    """One message to everybody on a list. campaigns/states.py says how it moves."""

    __tablename__ = "campaigns"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "list_id"], ["lists.account_id", "lists.id"]),
        ForeignKeyConstraint(["account_id", "message_type"], ["message_types.account_id", "message_types.name"]),
        ForeignKeyConstraint(["account_id", "author_id"], ["users.account_id", "users.id"], name="campaigns_author_fk"),
        ForeignKeyConstraint(
            ["account_id", "approver_id"], ["users.account_id", "users.id"], name="campaigns_approver_fk"
        ),
        CheckConstraint(
            "status IN ('draft','submitted','approved','sending','paused','sent','cancelled')", name="status"
        ),
        CheckConstraint(
            "NOT requires_second_person OR approver_id IS NULL OR approver_id <> author_id", name="second_person"
        ),
        CheckConstraint(
            "status NOT IN ('approved','sending','paused','sent')"
            " OR (approver_id IS NOT NULL AND scheduled_for IS NOT NULL AND approved_fingerprint IS NOT NULL)",
            name="approved",
        ),
        Index("campaigns_due_idx", "scheduled_for", postgresql_where=text("status = 'approved'")),
        Index("campaigns_sending_idx", "account_id", "id", postgresql_where=text("status = 'sending'")),
        {"comment": "One message to everybody on a list."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The campaign's number.")
    name: Mapped[str] = mapped_column(comment="The campaign's name for people.")
    list_id: Mapped[int] = mapped_column(comment="The list that is mailed.")
    message_type: Mapped[str] = mapped_column(
        server_default=text("'campaign'"), comment="The message type: lane, caps, policy for messages in doubt."
    )
    status: Mapped[str] = mapped_column(
        server_default=text("'draft'"),
        comment="draft, submitted, approved, sending, paused, sent or cancelled (campaigns/states.py).",
    )
    version: Mapped[int] = mapped_column(server_default=text("1"), comment="The content version now in force.")
    requires_second_person: Mapped[bool] = mapped_column(
        server_default=text("true"), comment="The account's setting when the campaign was made."
    )
    author_id: Mapped[int] = mapped_column(comment="Who wrote the content now in force.")
    approver_id: Mapped[int | None] = mapped_column(comment="Who approved it; empty until then and after an edit.")
    fingerprint: Mapped[str | None] = mapped_column(
        comment="SHA-256 of subject, bodies, sender and audience, set at submission; what the approver sees."
    )
    approved_fingerprint: Mapped[str | None] = mapped_column(
        comment="SHA-256 over fingerprint, approver and time: what exactly was approved."
    )
    audience_estimate: Mapped[int | None] = mapped_column(comment="Confirmed members of the list at submission.")
    scheduled_for: Mapped[datetime | None] = mapped_column(comment="When sending may start.")
    schedule_zone: Mapped[str | None] = mapped_column(comment="The IANA zone that the approver typed the time in.")
    note: Mapped[str | None] = mapped_column(comment="Why it was rejected, paused, held or cancelled, in words.")
    submitted_at: Mapped[datetime | None] = mapped_column(comment="When it was last submitted.")
    approved_at: Mapped[datetime | None] = mapped_column(comment="When it was approved.")
    started_at: Mapped[datetime | None] = mapped_column(comment="When it was moved from approved to sending.")
    finished_at: Mapped[datetime | None] = mapped_column(comment="When no row was queued or sending any more.")
    audience_cursor: Mapped[str] = mapped_column(
        EMAIL_LOWER, server_default=text("''"), comment="The audience is built up to this address."
    )
    audience_built_at: Mapped[datetime | None] = mapped_column(comment="When the audience was complete.")
    correlation_id: Mapped[str | None] = mapped_column(comment="Follows this run from its start to the provider.")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it was made.")
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it last changed.")


class CampaignContent(Base):
    """What a campaign says; never changed, an edit makes the next version."""

    __tablename__ = "campaign_contents"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "campaign_id"], ["campaigns.account_id", "campaigns.id"]),
        {"comment": "What campaigns say, version by version; rows are never changed."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    campaign_id: Mapped[int] = mapped_column(primary_key=True, comment="The campaign.")
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, comment="1, 2, 3, ...")
    subject: Mapped[str] = mapped_column(comment="Subject with merge fields.")
    sender: Mapped[str] = mapped_column(comment="The From field: an address, or Name <address>.")
    html: Mapped[str] = mapped_column(comment="The HTML part with merge fields.")
    text: Mapped[str] = mapped_column(comment="The text part with merge fields; made from the HTML when not given.")
    fields: Mapped[list[str]] = mapped_column(
        ARRAY(Text), comment="Top-level merge fields that the content uses; copied to each send at the audience build."
    )
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it was written.")


class CampaignCount(Base):
    """Progress, kept by the statements that move rows; the sum over the slots is the figure."""

    __tablename__ = "campaign_counts"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "campaign_id"], ["campaigns.account_id", "campaigns.id"]),
        {
            "comment": "How many sends of a campaign are in which state, in slots so that workers don't wait in line.",
            "postgresql_with": {"fillfactor": "50"},
        },
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    campaign_id: Mapped[int] = mapped_column(primary_key=True, comment="The campaign.")
    slot: Mapped[int] = mapped_column(
        SmallInteger, primary_key=True, autoincrement=False, comment="0 to 15; each worker writes to its own."
    )
    queued: Mapped[int] = mapped_column(server_default=text("0"), comment="Sum over the slots: sends now queued.")
    sending: Mapped[int] = mapped_column(server_default=text("0"), comment="Sum over the slots: sends now sending.")
    sent: Mapped[int] = mapped_column(server_default=text("0"), comment="Sum over the slots: sends accepted.")
    failed: Mapped[int] = mapped_column(server_default=text("0"), comment="Sum over the slots: sends refused for good.")
    dead: Mapped[int] = mapped_column(server_default=text("0"), comment="Sum over the slots: dead letters.")
    in_doubt: Mapped[int] = mapped_column(server_default=text("0"), comment="Sum over the slots: sends in doubt.")
    suppressed: Mapped[int] = mapped_column(server_default=text("0"), comment="Sum over the slots: stopped by opt-out.")
    cancelled: Mapped[int] = mapped_column(server_default=text("0"), comment="Sum over the slots: cancelled sends.")
    expired: Mapped[int] = mapped_column(server_default=text("0"), comment="Sum over the slots: too late to be sent.")
