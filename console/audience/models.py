"""Tables of the people who get mail, the lists they are on, and who must not be mailed."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import Text

from console.db import IDENTITY, Base

# Byte order, so that the same index serves equality, prefixes (LIKE 'abc%') and the audience build's walk.
EMAIL_LOWER = Text(collation="C")


class MailingList(Base):
    """A named set of subscribers."""

    __tablename__ = "lists"
    __table_args__ = (UniqueConstraint("account_id", "name"), {"comment": "Named sets of subscribers."})

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The list's number.")
    name: Mapped[str] = mapped_column(comment="The list's name for people, unique in the account.")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When the list was made.")


class Subscriber(Base):
    """Somebody who gets mail. Two with different external ids may share an address; a campaign mails it once."""

    __tablename__ = "subscribers"
    __table_args__ = (
        UniqueConstraint("account_id", "email_lower", "external_id"),
        CheckConstraint("status IN ('confirmed','unconfirmed')", name="status"),
        {"comment": "People who get mail."},
    )

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The subscriber's number.")
    email: Mapped[str] = mapped_column(comment="The address as given, trimmed; mail goes to this form.")
    email_lower: Mapped[str] = mapped_column(
        EMAIL_LOWER, comment="The address normalised for comparing (audience/address.py)."
    )
    external_id: Mapped[str] = mapped_column(
        server_default=text("''"), comment="The person's number in the customer's own system; empty when not given."
    )
    status: Mapped[str] = mapped_column(
        server_default=text("'confirmed'"), comment="confirmed, or unconfirmed: on file, never mailed by a campaign."
    )
    attributes: Mapped[dict[str, Any]] = mapped_column(
        server_default=text("'{}'"), comment="Merge fields: a JSON object of whatever the import brought."
    )
    created_at: Mapped[datetime] = mapped_column(
        server_default=func.now(), comment="When first seen; the earliest confirmed one wins a shared address."
    )
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When last changed by an import.")


class ListMember(Base):
    """A subscriber's place on a list. Leaving a list is a suppression for that list, not the loss of this row."""

    __tablename__ = "list_members"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "list_id"], ["lists.account_id", "lists.id"]),
        ForeignKeyConstraint(["account_id", "subscriber_id"], ["subscribers.account_id", "subscribers.id"]),
        Index(None, "account_id", "subscriber_id"),
        {"comment": "Who is on which list."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    list_id: Mapped[int] = mapped_column(primary_key=True, comment="The list.")
    subscriber_id: Mapped[int] = mapped_column(primary_key=True, comment="The subscriber.")
    added_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When put on the list.")


class Suppression(Base):
    """An address that must not be mailed: at all, or (with a list_id) by that list. Asked last, at the hand-over."""

    __tablename__ = "suppressions"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "list_id"], ["lists.account_id", "lists.id"]),
        UniqueConstraint("account_id", "email_lower", "list_id", postgresql_nulls_not_distinct=True),
        CheckConstraint("kind IN ('manual','unsubscribed','bounced','complained')", name="kind"),
        {"comment": "Addresses that must not be mailed; wins over everything else."},
    )

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The suppression's number.")
    email_lower: Mapped[str] = mapped_column(EMAIL_LOWER, comment="The address, normalised (audience/address.py).")
    list_id: Mapped[int | None] = mapped_column(comment="The list that was left; empty: no mail at all.")
    kind: Mapped[str] = mapped_column(comment="manual, unsubscribed, bounced or complained.")
    reason: Mapped[str] = mapped_column(comment="Why, in words for people.")
    send_id: Mapped[int | None] = mapped_column(comment="The send whose link, bounce or complaint it came from.")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="Since when.")
