"""Tables of tenants, the people who sign in, the keys of their programs, and what they did."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Integer, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import Text

from console.db import IDENTITY, Base

ROLES = ("marketer", "approver", "support", "operator", "admin")
# What an API key may do: hand in and cancel messages; read; stop mail to an address and allow it again.
SCOPES = ("send", "read", "suppress")


class Account(Base):
    """A tenant."""

    __tablename__ = "accounts"
    __table_args__ = ({"comment": "Tenants; every other row belongs to one."},)

    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="Leads every key of every other table.")
    slug: Mapped[str] = mapped_column(unique=True, comment="The account's name in commands and addresses: a-z, 0-9, -.")
    name: Mapped[str] = mapped_column(comment="The account's name for people.")
    requires_second_person: Mapped[bool] = mapped_column(
        server_default=text("true"), comment="Whether the author of a campaign is kept from approving it."
    )
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When the account was made.")


class User(Base):
    """A person who signs in to one account."""

    __tablename__ = "users"
    __table_args__ = (
        UniqueConstraint("account_id", "email_lower"),
        CheckConstraint("roles <@ ARRAY['marketer','approver','support','operator','admin']", name="roles"),
        {"comment": "People who sign in, with their roles."},
    )

    account_id: Mapped[int] = mapped_column(
        ForeignKey("accounts.id"), primary_key=True, comment="The account that the person works in."
    )
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The person's number.")
    email: Mapped[str] = mapped_column(comment="The address as typed.")
    email_lower: Mapped[str] = mapped_column(comment="The address normalised for comparing (audience/address.py).")
    name: Mapped[str] = mapped_column(comment="How the person is called on screens.")
    password_hash: Mapped[str] = mapped_column(comment="argon2id hash of the password.")
    roles: Mapped[list[str]] = mapped_column(
        ARRAY(Text), comment="What the person may do: marketer, approver, support, operator, admin."
    )
    is_active: Mapped[bool] = mapped_column(server_default=text("true"), comment="Whether the person may sign in.")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When the person was added.")
    signed_in_at: Mapped[datetime | None] = mapped_column(comment="The last sign-in; empty before the first.")
    session_version: Mapped[int] = mapped_column(
        server_default=text("0"), comment="Grows with each sign-out, which ends the sessions begun before."
    )


class AuditEntry(Base):
    """Who did what, and when."""

    __tablename__ = "audit_entries"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "user_id"], ["users.account_id", "users.id"]),
        {"comment": "What people did, kept for ever: approvals, pauses, suppressions, look-ups."},
    )

    account_id: Mapped[int] = mapped_column(
        ForeignKey("accounts.id"), primary_key=True, comment="The account that it happened in."
    )
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The entry's number.")
    at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it happened.")
    user_id: Mapped[int | None] = mapped_column(comment="Who did it; empty for the command line and the scheduler.")
    action: Mapped[str] = mapped_column(comment="What was done: campaign.approve, subscriber.suppress, ...")
    object_id: Mapped[str] = mapped_column(comment="What it was done to: a row's id or an address.")
    details: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"), comment="What else belongs to it.")


class ApiKey(Base):
    """A key with which a program of the account calls /api/v1. Shown once; only its hash is kept."""

    __tablename__ = "api_keys"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "created_by"], ["users.account_id", "users.id"], name="api_keys_maker_fk"),
        ForeignKeyConstraint(
            ["account_id", "revoked_by"], ["users.account_id", "users.id"], name="api_keys_revoker_fk"
        ),
        CheckConstraint("scopes <@ ARRAY['send','read','suppress'] AND cardinality(scopes) > 0", name="scopes"),
        CheckConstraint("calls_per_minute > 0", name="calls_per_minute"),
        {"comment": "Keys of programs that call the API; hashed, bound to one account."},
    )

    account_id: Mapped[int] = mapped_column(
        ForeignKey("accounts.id"), primary_key=True, comment="The account that it works in, and no other."
    )
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The key's number; stands in its prefix.")
    name: Mapped[str] = mapped_column(comment="What it is for, in words for people; may be empty.")
    secret_hash: Mapped[str] = mapped_column(
        unique=True, comment="SHA-256 in hex of the 256 random bits in the key; they are kept nowhere."
    )
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text), comment="What it may do: send, read, suppress.")
    calls_per_minute: Mapped[int] = mapped_column(
        Integer,
        comment="Calls that it may make in a minute on average, from all processes; a message of a batch is one.",
    )
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it was made.")
    created_by: Mapped[int | None] = mapped_column(comment="Who made it; empty for the command line.")
    last_used_at: Mapped[datetime | None] = mapped_column(
        comment="The last call, to the minute: written when the one before is a minute old."
    )
    revoked_at: Mapped[datetime | None] = mapped_column(comment="Since when it is refused; empty while it works.")
    revoked_by: Mapped[int | None] = mapped_column(comment="Who revoked it; empty for the command line.")
