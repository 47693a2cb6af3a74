"""Tables of inbound webhooks: endpoints, events as they came, their redeliveries, rules, refusals and notices."""

from datetime import date, datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import Text

from console.db import IDENTITY, Base


class Endpoint(Base):
    """An address that an application sends its events to."""

    __tablename__ = "inbox_endpoints"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "created_by"], ["users.account_id", "users.id"]),
        UniqueConstraint("account_id", "name"),
        CheckConstraint("scheme IN ('none','standard_webhooks','hmac_sha256','basic')", name="scheme"),
        CheckConstraint("signature_encoding IN ('hex','base64')", name="signature_encoding"),
        CheckConstraint("reader IN ('rules','reports','bounces')", name="reader"),
        CheckConstraint("scheme = 'none' OR cardinality(sealed_secrets) > 0", name="secrets"),
        {"comment": "Addresses that applications send events to, and how it is known that an event is theirs."},
    )

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The endpoint's number.")
    name: Mapped[str] = mapped_column(comment="Its name in the address, in dedupe keys and code paths: a-z, 0-9, -, _.")
    # The one key without an account in front: the token is what an account is found by.
    token_hash: Mapped[str] = mapped_column(unique=True, comment="SHA-256, in hex, of the address's secret part.")
    reader: Mapped[str] = mapped_column(
        server_default=text("'rules'"),
        comment="Who reads its events: rules, reports (of a provider), or bounces (a mailbox).",
    )
    is_active: Mapped[bool] = mapped_column(
        server_default=text("true"), comment="Whether it takes events; else its address is as unknown as a wrong one."
    )
    scheme: Mapped[str] = mapped_column(comment="none, standard_webhooks, hmac_sha256 or basic.")
    sealed_secrets: Mapped[list[str]] = mapped_column(
        ARRAY(Text), server_default=text("'{}'"), comment="Secrets, newest first, each sealed (console/secrets.py)."
    )
    signature_header: Mapped[str] = mapped_column(
        server_default=text("''"), comment="hmac_sha256: the header with the signature."
    )
    signature_prefix: Mapped[str] = mapped_column(
        server_default=text("''"), comment="hmac_sha256: what stands before the signature, such as sha256=."
    )
    signature_encoding: Mapped[str] = mapped_column(server_default=text("'hex'"), comment="hmac_sha256: hex or base64.")
    event_id_header: Mapped[str] = mapped_column(
        server_default=text("'webhook-id'"), comment="The header with the event's id; looked at first. Empty: none."
    )
    event_id_path: Mapped[str] = mapped_column(
        server_default=text("'$.id'"), comment="The JSON path of the event's id in the body. Empty: none."
    )
    event_type_header: Mapped[str] = mapped_column(
        server_default=text("''"), comment="The header with the event's type; looked at first. Empty: none."
    )
    event_type_path: Mapped[str] = mapped_column(
        server_default=text("'$.type'"), comment="The JSON path of the event's type in the body. Empty: none."
    )
    created_by: Mapped[int | None] = mapped_column(comment="Who made it; empty for the command line.")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it was made.")


class Rule(Base):
    """What mail an event of one type asks for."""

    __tablename__ = "inbox_rules"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "endpoint_id"], ["inbox_endpoints.account_id", "inbox_endpoints.id"]),
        ForeignKeyConstraint(["account_id", "changed_by"], ["users.account_id", "users.id"]),
        UniqueConstraint("account_id", "endpoint_id", "name"),
        CheckConstraint("status IN ('draft','on','off')", name="status"),
        # What is on has been tried as it is.
        CheckConstraint("status <> 'on' OR tried_version = version", name="tried"),
        # One event makes one message: at most one rule that is on for each type.
        Index(
            "inbox_rules_on_key",
            "account_id",
            "endpoint_id",
            "event_type",
            unique=True,
            postgresql_where=text("status = 'on'"),
        ),
        {"comment": "Which event asks for which message, by JSON paths."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The rule's number.")
    endpoint_id: Mapped[int] = mapped_column(comment="The endpoint whose events it reads.")
    name: Mapped[str] = mapped_column(comment="Its name on screens and in code paths: a-z, 0-9, -, _.")
    event_type: Mapped[str] = mapped_column(comment="The type of event; * for those that no other rule is for.")
    status: Mapped[str] = mapped_column(server_default=text("'draft'"), comment="draft, on or off.")
    version: Mapped[int] = mapped_column(server_default=text("1"), comment="Counts its changes.")
    message_type: Mapped[str] = mapped_column(comment="The message type that is sent.")
    recipient_path: Mapped[str] = mapped_column(comment="The JSON path of the recipient's address.")
    params: Mapped[dict[str, Any]] = mapped_column(
        server_default=text("'{}'"), comment="The template's parameters: name to JSON path."
    )
    dedupe_pattern: Mapped[str] = mapped_column(
        server_default=text("''"),
        comment="The dedupe key: a JSON path, or a pattern with {names}; empty: the type's, else the event's id.",
    )
    entities: Mapped[dict[str, Any]] = mapped_column(
        server_default=text("'{}'"), comment="What it is about, for timelines: name to JSON path."
    )
    tried_version: Mapped[int | None] = mapped_column(comment="The version that was last tried out with success.")
    tried_event_id: Mapped[int | None] = mapped_column(comment="The event (its number) that it was tried out on.")
    tried_at: Mapped[datetime | None] = mapped_column(comment="When.")
    changed_by: Mapped[int | None] = mapped_column(comment="Who wrote this version; empty for the command line.")
    changed_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When this version was written.")


class Event(Base):
    """One event, as it came the first time."""

    __tablename__ = "inbox_events"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "endpoint_id"], ["inbox_endpoints.account_id", "inbox_endpoints.id"]),
        UniqueConstraint("account_id", "endpoint_id", "event_id"),
        CheckConstraint("id_source IN ('header','body','hash')", name="id_source"),
        CheckConstraint("status IN ('stored','done','no_rule','failed')", name="status"),
        # The lists of the screens: all, of one endpoint, in one state.
        Index(None, "account_id", "endpoint_id", "id"),
        Index(None, "account_id", "status", "id", postgresql_where=text("status IN ('no_rule','failed')")),
        # The same event, or the same body, elsewhere: a subscription too many.
        Index(None, "account_id", "event_id"),
        Index(None, "account_id", "body_sha256", "received_at"),
        # From a trigger to the event that it comes from.
        Index("inbox_events_correlation_idx", "account_id", "correlation_id"),
        # Bodies to be forgotten.
        Index("inbox_events_kept_idx", "received_at", postgresql_where=text("body IS NOT NULL")),
        {"comment": "Events as they came: stored before anything else, one row for each id that an endpoint is sent."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The event's number here.")
    endpoint_id: Mapped[int] = mapped_column(comment="The endpoint that it came to.")
    event_id: Mapped[str] = mapped_column(comment="The sender's id for it; else sha256: and the body's hash.")
    id_source: Mapped[str] = mapped_column(comment="Where the id was found: header or body; hash: nowhere.")
    event_type: Mapped[str] = mapped_column(comment="The sender's word for what happened; empty: none found.")
    body: Mapped[bytes | None] = mapped_column(comment="The body, byte for byte; empty once it is forgotten.")
    body_bytes: Mapped[int] = mapped_column(comment="The body's length.")
    body_sha256: Mapped[str] = mapped_column(comment="SHA-256 of the body, in hex.")
    headers: Mapped[dict[str, Any]] = mapped_column(comment="The request's headers, those with secrets masked.")
    request_id: Mapped[str] = mapped_column(comment="The request that brought it first.")
    correlation_id: Mapped[str] = mapped_column(comment="Follows it to the provider's id.")
    received_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it came first.")
    delivery_count: Mapped[int] = mapped_column(server_default=text("1"), comment="How often it came.")
    last_received_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it came last.")
    status: Mapped[str] = mapped_column(
        server_default=text("'stored'"), comment="stored: waits; done; no_rule: none is on for it; failed."
    )
    reason: Mapped[str] = mapped_column(server_default=text("''"), comment="Why it failed or found no rule, in words.")
    run_count: Mapped[int] = mapped_column(
        server_default=text("0"), comment="How often its rule was looked for or run."
    )
    ran_at: Mapped[datetime | None] = mapped_column(comment="When that was last.")
    rule_id: Mapped[int | None] = mapped_column(comment="The rule that was run last.")
    rule_version: Mapped[int | None] = mapped_column(comment="The version of that rule.")
    send_id: Mapped[int | None] = mapped_column(comment="The send that it made or met.")
    decision: Mapped[str] = mapped_column(
        server_default=text("''"), comment="What the ledger said of it (triggers.decision)."
    )


class Queued(Base):
    """An event that waits to be read. Apart from its event, so that a redelivery never waits for the reader's lock."""

    __tablename__ = "inbox_queue"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "event_id"], ["inbox_events.account_id", "inbox_events.id"]),
        Index(None, "reader", "due_at", "event_id"),
        {"comment": "Events that wait to be read; locked while one is."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    event_id: Mapped[int] = mapped_column(primary_key=True, comment="The event's number.")
    reader: Mapped[str] = mapped_column(comment="Who reads it: rules, reports or bounces.")
    due_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="Not to be read before.")


class Redelivery(Base):
    """One more delivery of an event that was there already."""

    __tablename__ = "inbox_redeliveries"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "event_id"], ["inbox_events.account_id", "inbox_events.id"]),
        {"comment": "Further deliveries of events that were there already; they change nothing."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    event_id: Mapped[int] = mapped_column(primary_key=True, comment="The event's number.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The redelivery's number.")
    received_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it came.")
    request_id: Mapped[str] = mapped_column(comment="The request that brought it.")
    correlation_id: Mapped[str] = mapped_column(comment="The correlation id of that request.")
    is_same_body: Mapped[bool] = mapped_column(comment="Whether its body was the first one's, byte for byte.")


class Refusal(Base):
    """How often requests to an endpoint were refused on one day for one reason."""

    __tablename__ = "inbox_refusals"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "endpoint_id"], ["inbox_endpoints.account_id", "inbox_endpoints.id"]),
        {"comment": "Requests with the right address that were refused, counted by day and reason."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    endpoint_id: Mapped[int] = mapped_column(primary_key=True, comment="The endpoint.")
    on_day: Mapped[date] = mapped_column(primary_key=True, comment="The day, in UTC.")
    reason: Mapped[str] = mapped_column(primary_key=True, comment="Why, in words.")
    refused_count: Mapped[int] = mapped_column(server_default=text("1"), comment="How often.")
    last_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When last.")
    last_request_id: Mapped[str] = mapped_column(comment="The last such request.")


class Notice(Base):
    """Two endpoints seem to be subscribed to the same events, or one endpoint twice."""

    __tablename__ = "inbox_notices"
    __table_args__ = (
        ForeignKeyConstraint(
            ["account_id", "endpoint_id"],
            ["inbox_endpoints.account_id", "inbox_endpoints.id"],
            name="inbox_notices_endpoint_fk",
        ),
        ForeignKeyConstraint(
            ["account_id", "other_endpoint_id"],
            ["inbox_endpoints.account_id", "inbox_endpoints.id"],
            name="inbox_notices_other_endpoint_fk",
        ),
        ForeignKeyConstraint(
            ["account_id", "closed_by"], ["users.account_id", "users.id"], name="inbox_notices_closed_fk"
        ),
        CheckConstraint("kind IN ('same_id','same_body')", name="kind"),
        CheckConstraint("endpoint_id <= other_endpoint_id", name="pair"),
        Index(
            "inbox_notices_open_key",
            "account_id",
            "endpoint_id",
            "other_endpoint_id",
            unique=True,
            postgresql_where=text("closed_at IS NULL"),
        ),
        {"comment": "Endpoints that seem to be subscribed to the same events; one open notice for each pair."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The notice's number.")
    kind: Mapped[str] = mapped_column(comment="same_id: the same event id; same_body: equal bodies within seconds.")
    endpoint_id: Mapped[int] = mapped_column(comment="The endpoint with the lower number.")
    other_endpoint_id: Mapped[int] = mapped_column(comment="The other one; the same one when it gets events twice.")
    event_id: Mapped[int] = mapped_column(comment="The event (its number) that it was noticed at.")
    other_event_id: Mapped[int] = mapped_column(comment="The event that it is equal to.")
    found_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it was noticed.")
    closed_at: Mapped[datetime | None] = mapped_column(comment="When a person closed it; empty: open.")
    closed_by: Mapped[int | None] = mapped_column(comment="Who closed it.")


class BounceMailbox(Base):
    """The mailbox that an account's bounces come back to."""

    __tablename__ = "bounce_mailboxes"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "endpoint_id"], ["inbox_endpoints.account_id", "inbox_endpoints.id"]),
        Index(None, "next_visit_at"),
        {"comment": "Mailboxes that bounces come back to, one an account, and how far each is read."},
    )

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    endpoint_id: Mapped[int] = mapped_column(comment="Under which its mails are stored (inbox_events).")
    url: Mapped[str] = mapped_column(comment="imaps:// or imap://USER@HOST:PORT/FOLDER, without the password.")
    sealed_password: Mapped[str] = mapped_column(comment="The password, sealed (console/secrets.py).")
    uid_validity: Mapped[int] = mapped_column(
        server_default=text("0"), comment="The server's UIDVALIDITY that last_uid belongs to; 0 before the first visit."
    )
    last_uid: Mapped[int] = mapped_column(server_default=text("0"), comment="The UID of the last mail that is stored.")
    next_visit_at: Mapped[datetime] = mapped_column(
        server_default=func.now(), comment="Not to be visited before; whoever visits it moves it on first."
    )
    visited_at: Mapped[datetime | None] = mapped_column(comment="When a visit last came to its end, whatever that was.")
    error: Mapped[str] = mapped_column(
        server_default=text("''"), comment="What stood in the way at the last visit; empty: nothing."
    )
