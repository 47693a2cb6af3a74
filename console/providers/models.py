"""Tables of the ways out that an account has configured, and of the order in which they are tried."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import Text

from console.db import IDENTITY, Base


class ConfiguredProvider(Base):
    """One account at a provider, with what it takes to use it."""

    __tablename__ = "providers"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "changed_by"], ["users.account_id", "users.id"]),
        UniqueConstraint("account_id", "name"),
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
