"""Inbound webhooks: endpoints, events stored first, their queue and redeliveries, rules, refusals, notices."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "inbox_endpoints",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False, comment="The endpoint's number."),
        sa.Column(
            "name",
            sa.Text(),
            nullable=False,
            comment="Its name in the address, in dedupe keys and code paths: a-z, 0-9, -, _.",
        ),
        sa.Column("token_hash", sa.Text(), nullable=False, comment="SHA-256, in hex, of the address's secret part."),
        sa.Column(
            "reader",
            sa.Text(),
            server_default=sa.text("'rules'"),
            nullable=False,
            comment="Who reads its events: rules, or reports (of a provider).",
        ),
        sa.Column(
            "is_active",
            sa.Boolean(),
            server_default=sa.text("true"),
            nullable=False,
            comment="Whether it takes events; else its address is as unknown as a wrong one.",
        ),
        sa.Column("scheme", sa.Text(), nullable=False, comment="none, standard_webhooks, hmac_sha256 or basic."),
        sa.Column(
            "sealed_secrets",
            postgresql.ARRAY(sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
            comment="Secrets, newest first, each sealed (console/secrets.py).",
        ),
        sa.Column(
            "signature_header",
            sa.Text(),
            server_default=sa.text("''"),
            nullable=False,
            comment="hmac_sha256: the header with the signature.",
        ),
        sa.Column(
            "signature_prefix",
            sa.Text(),
            server_default=sa.text("''"),
            nullable=False,
            comment="hmac_sha256: what stands before the signature, such as sha256=.",
        ),
        sa.Column(
            "signature_encoding",
            sa.Text(),
            server_default=sa.text("'hex'"),
            nullable=False,
            comment="hmac_sha256: hex or base64.",
        ),
        sa.Column(
            "event_id_header",
            sa.Text(),
            server_default=sa.text("'webhook-id'"),
            nullable=False,
            comment="The header with the event's id; looked at first. Empty: none.",
        ),
        sa.Column(
            "event_id_path",
            sa.Text(),
            server_default=sa.text("'$.id'"),
            nullable=False,
            comment="The JSON path of the event's id in the body. Empty: none.",
        ),
        sa.Column(
            "event_type_header",
            sa.Text(),
            server_default=sa.text("''"),
            nullable=False,
            comment="The header with the event's type; looked at first. Empty: none.",
        ),
        sa.Column(
            "event_type_path",
            sa.Text(),
            server_default=sa.text("'$.type'"),
            nullable=False,
            comment="The JSON path of the event's type in the body. Empty: none.",
        ),
        sa.Column("created_by", sa.BigInteger(), nullable=True, comment="Who made it; empty for the command line."),
        sa.Column(
            "created_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was made.",
        ),
        sa.CheckConstraint("reader IN ('rules','reports')", name=op.f("inbox_endpoints_reader_check")),
        sa.CheckConstraint(
            "scheme = 'none' OR cardinality(sealed_secrets) > 0", name=op.f("inbox_endpoints_secrets_check")
        ),
        sa.CheckConstraint(
            "scheme IN ('none','standard_webhooks','hmac_sha256','basic')", name=op.f("inbox_endpoints_scheme_check")
        ),
        sa.CheckConstraint(
            "signature_encoding IN ('hex','base64')", name=op.f("inbox_endpoints_signature_encoding_check")
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "created_by"], ["users.account_id", "users.id"], name=op.f("inbox_endpoints_users_fk")
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("inbox_endpoints_accounts_fk")),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("inbox_endpoints_pk")),
        sa.UniqueConstraint("account_id", "name", name=op.f("inbox_endpoints_account_id_name_key")),
        sa.UniqueConstraint("token_hash", name=op.f("inbox_endpoints_token_hash_key")),
        comment="Addresses that applications send events to, and how it is known that an event is theirs.",
    )
    op.create_table(
        "inbox_events",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False, comment="The event's number here."),
        sa.Column("endpoint_id", sa.BigInteger(), nullable=False, comment="The endpoint that it came to."),
        sa.Column(
            "event_id", sa.Text(), nullable=False, comment="The sender's id for it; else sha256: and the body's hash."
        ),
        sa.Column(
            "id_source", sa.Text(), nullable=False, comment="Where the id was found: header or body; hash: nowhere."
        ),
        sa.Column(
            "event_type", sa.Text(), nullable=False, comment="The sender's word for what happened; empty: none found."
        ),
        sa.Column(
            "body", sa.LargeBinary(), nullable=True, comment="The body, byte for byte; empty once it is forgotten."
        ),
        sa.Column("body_bytes", sa.BigInteger(), nullable=False, comment="The body's length."),
        sa.Column("body_sha256", sa.Text(), nullable=False, comment="SHA-256 of the body, in hex."),
        sa.Column(
            "headers",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=False,
            comment="The request's headers, those with secrets masked.",
        ),
        sa.Column("request_id", sa.Text(), nullable=False, comment="The request that brought it first."),
        sa.Column("correlation_id", sa.Text(), nullable=False, comment="Follows it to the provider's id."),
        sa.Column(
            "received_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it came first.",
        ),
        sa.Column(
            "delivery_count", sa.BigInteger(), server_default=sa.text("1"), nullable=False, comment="How often it came."
        ),
        sa.Column(
            "last_received_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it came last.",
        ),
        sa.Column(
            "status",
            sa.Text(),
            server_default=sa.text("'stored'"),
            nullable=False,
            comment="stored: waits; done; no_rule: none is on for it; failed.",
        ),
        sa.Column(
            "reason",
            sa.Text(),
            server_default=sa.text("''"),
            nullable=False,
            comment="Why it failed or found no rule, in words.",
        ),
        sa.Column(
            "run_count",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="How often its rule was looked for or run.",
        ),
        sa.Column("ran_at", sa.TIMESTAMP(timezone=True), nullable=True, comment="When that was last."),
        sa.Column("rule_id", sa.BigInteger(), nullable=True, comment="The rule that was run last."),
        sa.Column("rule_version", sa.BigInteger(), nullable=True, comment="The version of that rule."),
        sa.Column("send_id", sa.BigInteger(), nullable=True, comment="The send that it made or met."),
        sa.Column(
            "decision",
            sa.Text(),
            server_default=sa.text("''"),
            nullable=False,
            comment="What the ledger said of it (triggers.decision).",
        ),
        sa.CheckConstraint("id_source IN ('header','body','hash')", name=op.f("inbox_events_id_source_check")),
        sa.CheckConstraint("status IN ('stored','done','no_rule','failed')", name=op.f("inbox_events_status_check")),
        sa.ForeignKeyConstraint(
            ["account_id", "endpoint_id"],
            ["inbox_endpoints.account_id", "inbox_endpoints.id"],
            name=op.f("inbox_events_inbox_endpoints_fk"),
        ),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("inbox_events_pk")),
        sa.UniqueConstraint(
            "account_id", "endpoint_id", "event_id", name=op.f("inbox_events_account_id_endpoint_id_event_id_key")
        ),
        comment="Events as they came: stored before anything else, one row for each id that an endpoint is sent.",
    )
    op.create_index(
        op.f("inbox_events_account_id_body_sha256_received_at_idx"),
        "inbox_events",
        ["account_id", "body_sha256", "received_at"],
        unique=False,
    )
    op.create_index(
        op.f("inbox_events_account_id_endpoint_id_id_idx"),
        "inbox_events",
        ["account_id", "endpoint_id", "id"],
        unique=False,
    )
    op.create_index(
        op.f("inbox_events_account_id_event_id_idx"), "inbox_events", ["account_id", "event_id"], unique=False
    )
    op.create_index(
        op.f("inbox_events_account_id_status_id_idx"),
        "inbox_events",
        ["account_id", "status", "id"],
        unique=False,
        postgresql_where=sa.text("status IN ('no_rule','failed')"),
    )
    op.create_index(
        "inbox_events_kept_idx",
        "inbox_events",
        ["received_at"],
        unique=False,
        postgresql_where=sa.text("body IS NOT NULL"),
    )
    op.create_table(
        "inbox_notices",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False, comment="The notice's number."),
        sa.Column(
            "kind",
            sa.Text(),
            nullable=False,
            comment="same_id: the same event id; same_body: equal bodies within seconds.",
        ),
        sa.Column("endpoint_id", sa.BigInteger(), nullable=False, comment="The endpoint with the lower number."),
        sa.Column(
            "other_endpoint_id",
            sa.BigInteger(),
            nullable=False,
            comment="The other one; the same one when it gets events twice.",
        ),
        sa.Column(
            "event_id", sa.BigInteger(), nullable=False, comment="The event (its number) that it was noticed at."
        ),
        sa.Column("other_event_id", sa.BigInteger(), nullable=False, comment="The event that it is equal to."),
        sa.Column(
            "found_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was noticed.",
        ),
        sa.Column(
            "closed_at", sa.TIMESTAMP(timezone=True), nullable=True, comment="When a person closed it; empty: open."
        ),
        sa.Column("closed_by", sa.BigInteger(), nullable=True, comment="Who closed it."),
        sa.CheckConstraint("kind IN ('same_id','same_body')", name=op.f("inbox_notices_kind_check")),
        sa.CheckConstraint("endpoint_id <= other_endpoint_id", name=op.f("inbox_notices_pair_check")),
        sa.ForeignKeyConstraint(
            ["account_id", "closed_by"], ["users.account_id", "users.id"], name="inbox_notices_closed_fk"
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "endpoint_id"],
            ["inbox_endpoints.account_id", "inbox_endpoints.id"],
            name="inbox_notices_endpoint_fk",
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "other_endpoint_id"],
            ["inbox_endpoints.account_id", "inbox_endpoints.id"],
            name="inbox_notices_other_endpoint_fk",
        ),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("inbox_notices_pk")),
        comment="Endpoints that seem to be subscribed to the same events; one open notice for each pair.",
    )
    op.create_index(
        "inbox_notices_open_key",
        "inbox_notices",
        ["account_id", "endpoint_id", "other_endpoint_id"],
        unique=True,
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_table(
        "inbox_refusals",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("endpoint_id", sa.BigInteger(), nullable=False, comment="The endpoint."),
        sa.Column("on_day", sa.Date(), nullable=False, comment="The day, in UTC."),
        sa.Column("reason", sa.Text(), nullable=False, comment="Why, in words."),
        sa.Column("refused_count", sa.BigInteger(), server_default=sa.text("1"), nullable=False, comment="How often."),
        sa.Column(
            "last_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When last.",
        ),
        sa.Column("last_request_id", sa.Text(), nullable=False, comment="The last such request."),
        sa.ForeignKeyConstraint(
            ["account_id", "endpoint_id"],
            ["inbox_endpoints.account_id", "inbox_endpoints.id"],
            name=op.f("inbox_refusals_inbox_endpoints_fk"),
        ),
        sa.PrimaryKeyConstraint("account_id", "endpoint_id", "on_day", "reason", name=op.f("inbox_refusals_pk")),
        comment="Requests with the right address that were refused, counted by day and reason.",
    )
    op.create_table(
        "inbox_rules",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False, comment="The rule's number."),
        sa.Column("endpoint_id", sa.BigInteger(), nullable=False, comment="The endpoint whose events it reads."),
        sa.Column("name", sa.Text(), nullable=False, comment="Its name on screens and in code paths: a-z, 0-9, -, _."),
        sa.Column(
            "event_type", sa.Text(), nullable=False, comment="The type of event; * for those that no other rule is for."
        ),
        sa.Column("status", sa.Text(), server_default=sa.text("'draft'"), nullable=False, comment="draft, on or off."),
        sa.Column(
            "version", sa.BigInteger(), server_default=sa.text("1"), nullable=False, comment="Counts its changes."
        ),
        sa.Column("message_type", sa.Text(), nullable=False, comment="The message type that is sent."),
        sa.Column("recipient_path", sa.Text(), nullable=False, comment="The JSON path of the recipient's address."),
        sa.Column(
            "params",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
            comment="The template's parameters: name to JSON path.",
        ),
        sa.Column(
            "dedupe_pattern",
            sa.Text(),
            server_default=sa.text("''"),
            nullable=False,
            comment="The dedupe key: a JSON path, or a pattern with {names}; empty: the type's, else the event's id.",
        ),
        sa.Column(
            "entities",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
            comment="What it is about, for timelines: name to JSON path.",
        ),
        sa.Column(
            "tried_version", sa.BigInteger(), nullable=True, comment="The version that was last tried out with success."
        ),
        sa.Column(
            "tried_event_id", sa.BigInteger(), nullable=True, comment="The event (its number) that it was tried out on."
        ),
        sa.Column("tried_at", sa.TIMESTAMP(timezone=True), nullable=True, comment="When."),
        sa.Column(
            "changed_by", sa.BigInteger(), nullable=True, comment="Who wrote this version; empty for the command line."
        ),
        sa.Column(
            "changed_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When this version was written.",
        ),
        sa.CheckConstraint("status <> 'on' OR tried_version = version", name=op.f("inbox_rules_tried_check")),
        sa.CheckConstraint("status IN ('draft','on','off')", name=op.f("inbox_rules_status_check")),
        sa.ForeignKeyConstraint(
            ["account_id", "changed_by"], ["users.account_id", "users.id"], name=op.f("inbox_rules_users_fk")
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "endpoint_id"],
            ["inbox_endpoints.account_id", "inbox_endpoints.id"],
            name=op.f("inbox_rules_inbox_endpoints_fk"),
        ),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("inbox_rules_pk")),
        sa.UniqueConstraint(
            "account_id", "endpoint_id", "name", name=op.f("inbox_rules_account_id_endpoint_id_name_key")
        ),
        comment="Which event asks for which message, by JSON paths.",
    )
    op.create_index(
        "inbox_rules_on_key",
        "inbox_rules",
        ["account_id", "endpoint_id", "event_type"],
        unique=True,
        postgresql_where=sa.text("status = 'on'"),
    )
    op.create_table(
        "inbox_queue",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("event_id", sa.BigInteger(), nullable=False, comment="The event's number."),
        sa.Column("reader", sa.Text(), nullable=False, comment="Who reads it: rules or reports."),
        sa.Column(
            "due_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="Not to be read before.",
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "event_id"],
            ["inbox_events.account_id", "inbox_events.id"],
            name=op.f("inbox_queue_inbox_events_fk"),
        ),
        sa.PrimaryKeyConstraint("account_id", "event_id", name=op.f("inbox_queue_pk")),
        comment="Events that wait to be read; locked while one is.",
    )
    op.create_index(
        op.f("inbox_queue_reader_due_at_event_id_idx"), "inbox_queue", ["reader", "due_at", "event_id"], unique=False
    )
    op.create_table(
        "inbox_redeliveries",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("event_id", sa.BigInteger(), nullable=False, comment="The event's number."),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False, comment="The redelivery's number."),
        sa.Column(
            "received_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it came.",
        ),
        sa.Column("request_id", sa.Text(), nullable=False, comment="The request that brought it."),
        sa.Column("correlation_id", sa.Text(), nullable=False, comment="The correlation id of that request."),
        sa.Column(
            "is_same_body", sa.Boolean(), nullable=False, comment="Whether its body was the first one's, byte for byte."
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "event_id"],
            ["inbox_events.account_id", "inbox_events.id"],
            name=op.f("inbox_redeliveries_inbox_events_fk"),
        ),
        sa.PrimaryKeyConstraint("account_id", "event_id", "id", name=op.f("inbox_redeliveries_pk")),
        comment="Further deliveries of events that were there already; they change nothing.",
    )


def downgrade() -> None:
    op.drop_table("inbox_redeliveries")
    op.drop_index(op.f("inbox_queue_reader_due_at_event_id_idx"), table_name="inbox_queue")
    op.drop_table("inbox_queue")
    op.drop_index("inbox_rules_on_key", table_name="inbox_rules", postgresql_where=sa.text("status = 'on'"))
    op.drop_table("inbox_rules")
    op.drop_table("inbox_refusals")
    op.drop_index("inbox_notices_open_key", table_name="inbox_notices", postgresql_where=sa.text("closed_at IS NULL"))
    op.drop_table("inbox_notices")
    op.drop_index("inbox_events_kept_idx", table_name="inbox_events", postgresql_where=sa.text("body IS NOT NULL"))
    op.drop_index(
        op.f("inbox_events_account_id_status_id_idx"),
        table_name="inbox_events",
        postgresql_where=sa.text("status IN ('no_rule','failed')"),
    )
    op.drop_index(op.f("inbox_events_account_id_event_id_idx"), table_name="inbox_events")
    op.drop_index(op.f("inbox_events_account_id_endpoint_id_id_idx"), table_name="inbox_events")
    op.drop_index(op.f("inbox_events_account_id_body_sha256_received_at_idx"), table_name="inbox_events")
    op.drop_table("inbox_events")
    op.drop_table("inbox_endpoints")
