"""Tables of the ways out that an account has configured, of the order in which they are tried, of what they report."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import Text

from console.db import IDENTITY, Base


class ConfiguredProvider(Base):
    """One account at a provider, with what it takes to use it."""

    __tablename__ = "providers"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "changed_by"], ["users.account_id", "users.id"]),
        ForeignKeyConstraint(["account_id", "endpoint_id"], ["inbox_endpoints.account_id", "inbox_endpoints.id"]),
        UniqueConstraint("account_id", "name"),
        UniqueConstraint("account_id", "endpoint_id"),
        CheckConstraint("kind IN ('smtp','resend','brevo','postmark','mailjet','ses','file')", name="kind"),
        # The installation's own server has this name in every account (SENDONCE_SMTP_URL).
        CheckConstraint("name <> 'smtp'", name="name"),
        {"comment": "Ways out that accounts have configured, beside the installation's own SMTP server."},
    )

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The provider's number.")
    name: Mapped[str] = mapped_column(comment="Its name in routes and on sends; never changed. a-z, 0-9, -, _.")
    kind: Mapped[str] = mapped_column(comment="smtp, resend, brevo, postmark, mailjet, ses or file (kinds.py).")
    settings: Mapped[dict[str, Any]] = mapped_column(
        server_default=text("'{}'"), comment="What its kind wants to know, as texts by name; nothing secret."
    )
    sealed_secret: Mapped[str] = mapped_column(
        server_default=text("''"), comment="The API key or password, sealed (console/secrets.py). Empty: none."
    )
    endpoint_id: Mapped[int | None] = mapped_column(comment="Where its reports come in; empty: nowhere yet.")
    version: Mapped[int] = mapped_column(server_default=text("1"), comment="Counts its changes.")
    changed_by: Mapped[int | None] = mapped_column(comment="Who changed it last; empty for the command line.")
    changed_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it was changed last.")


class Route(Base):
    """In which order providers are tried."""

    __tablename__ = "routes"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "changed_by"], ["users.account_id", "users.id"]),
        CheckConstraint("cardinality(providers) > 0", name="providers"),
        {"comment": "Ordered lists of providers; an account without a route named default uses smtp."},
    )

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    name: Mapped[str] = mapped_column(
        primary_key=True, comment="Its name; the one named default is used where none is named."
    )
    providers: Mapped[list[str]] = mapped_column(
        ARRAY(Text), comment="Names of providers, the first choice first; smtp is the installation's own."
    )
    changed_by: Mapped[int | None] = mapped_column(comment="Who changed it last; empty for the command line.")
    changed_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it was changed last.")


class ProviderEvent(Base):
    """What a provider reported about a message, as it stands beside the send's state."""

    __tablename__ = "provider_events"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "send_id"], ["sends.account_id", "sends.id"]),
        CheckConstraint(
            "fact IN ('accepted','deferred','delivered','bounced','complained','opened','dropped')", name="fact"
        ),
        CheckConstraint("bounce IN ('hard','soft','policy','other')", name="bounce"),
        CheckConstraint("NOT is_open OR send_id IS NOT NULL", name="open"),
        # A report that comes again, or is read again, is the same row.
        UniqueConstraint("account_id", "provider", "event_key"),
        Index(None, "account_id", "send_id"),
        Index("provider_events_open_idx", "account_id", "id", postgresql_where=text("is_open")),
        {"comment": "What providers reported about messages: facts beside the state, in whatever order they came."},
    )

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The fact's number.")
    provider: Mapped[str] = mapped_column(comment="The provider's name in the account.")
    event_key: Mapped[str] = mapped_column(comment="Which report it is, and its place in it.")
    fact: Mapped[str] = mapped_column(comment="accepted, deferred, delivered, bounced, complained, opened, dropped.")
    bounce: Mapped[str | None] = mapped_column(comment="hard (no such address), soft, policy or other; of a bounce.")
    send_id: Mapped[int | None] = mapped_column(comment="The send; empty when it is about none of ours.")
    tag: Mapped[str] = mapped_column(comment="Our tag in the report, by which the send was found.")
    provider_id: Mapped[str] = mapped_column(comment="The provider's own id for the message.")
    email: Mapped[str] = mapped_column(comment="The recipient, as the report names it.")
    words: Mapped[str] = mapped_column(comment="The provider's and the remote server's words.")
    happened_at: Mapped[datetime | None] = mapped_column(comment="When it happened, by the provider's clock.")
    received_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it was read here.")
    inbox_event_id: Mapped[int | None] = mapped_column(comment="The report as it came (inbox_events).")
    is_open: Mapped[bool] = mapped_column(
        server_default=text("false"), comment="Whether the send was on its way still, so that it has yet to be settled."
    )
