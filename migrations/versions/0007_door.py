"""The door for applications' mail: templates, message types, reservations with windows, and the one decision.

`accept_send` decides, whoever asks: the HTTP API, webhooks, the command line, and SQL through `sendonce.send`.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"

_SQL = Path(__file__).parents[1] / "sql"
_FINGERPRINTS = (
    ("send_contents_template_idx", True, "NOT is_rendered"),
    ("send_contents_rendered_idx", False, "is_rendered"),
)
_ODD = sa.text("decision IN ('refused','duplicate_observed') OR warnings IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "send_contents",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False, comment="The content's number."),
        sa.Column(
            "fingerprint", sa.Text(), nullable=False, comment="SHA-256 of all that follows; equal content is one row."
        ),
        sa.Column("subject", sa.Text(), nullable=False, comment="The subject."),
        sa.Column("sender", sa.Text(), nullable=False, comment="The From field."),
        sa.Column("sender_domain", sa.Text(), nullable=False, comment="The domain of Message-IDs, in A-labels."),
        sa.Column("html", sa.Text(), nullable=False, comment="The HTML part."),
        sa.Column(
            "is_rendered",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="Finished parts from the caller, in which no template language is read.",
        ),
        sa.Column("template", sa.Text(), nullable=True, comment="The template that it is from."),
        sa.Column("template_version", sa.BigInteger(), nullable=True, comment="The version of that."),
        sa.Column(
            "required_fields",
            postgresql.ARRAY(sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
            comment="Parameters without which no message can be made.",
        ),
        sa.Column(
            "created_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was first used.",
        ),
        sa.Column("text", sa.Text(), nullable=False, comment="The text part; empty: made from the HTML part."),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("send_contents_accounts_fk")),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("send_contents_pk")),
        comment="What messages outside campaigns are made from; a row is never changed.",
    )
    for name, is_unique, where in _FINGERPRINTS:
        op.create_index(
            name, "send_contents", ["account_id", "fingerprint"], unique=is_unique, postgresql_where=sa.text(where)
        )
    op.create_table(
        "sql_grants",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("role_name", sa.Text(), nullable=False, comment="The role, as pg_roles names it."),
        sa.Column(
            "created_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="Since when.",
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("sql_grants_accounts_fk")),
        sa.PrimaryKeyConstraint("account_id", "role_name", name=op.f("sql_grants_pk")),
        comment="Database roles of applications, and the account each hands messages over for.",
    )
    op.create_table(
        "templates",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("name", sa.Text(), nullable=False, comment="The template's name."),
        sa.Column("version", sa.BigInteger(), nullable=False, comment="Its newest version."),
        sa.Column(
            "updated_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When that was made.",
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("templates_accounts_fk")),
        sa.PrimaryKeyConstraint("account_id", "name", name=op.f("templates_pk")),
        comment="Templates by name; message types use their newest version.",
    )
    op.create_table(
        "template_versions",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("name", sa.Text(), nullable=False, comment="The template."),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False, comment="From 1."),
        sa.Column("subject", sa.Text(), nullable=False, comment="The subject, with merge fields."),
        sa.Column("html", sa.Text(), nullable=False, comment="The HTML part, with merge fields."),
        sa.Column("text", sa.Text(), nullable=False, comment="The text part; empty: made from the HTML part."),
        sa.Column("author_id", sa.BigInteger(), nullable=True, comment="Who wrote it; empty: the command line."),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False, comment="When."
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "author_id"], ["users.account_id", "users.id"], name=op.f("template_versions_users_fk")
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "name"],
            ["templates.account_id", "templates.name"],
            name=op.f("template_versions_templates_fk"),
        ),
        sa.PrimaryKeyConstraint("account_id", "name", "version", name=op.f("template_versions_pk")),
        comment="Templates as they were written; a version is never changed.",
    )
    op.add_column(
        "message_types",
        sa.Column(
            "template", sa.Text(), nullable=True, comment="The template of its messages; empty: callers give the parts."
        ),
    )
    op.add_column(
        "message_types", sa.Column("sender", sa.Text(), nullable=True, comment="The From field of its messages.")
    )
    op.add_column(
        "message_types",
        sa.Column(
            "content_id",
            sa.BigInteger(),
            nullable=True,
            comment="The template's newest version with the sender, as sent.",
        ),
    )
    op.add_column(
        "message_types",
        sa.Column(
            "window_s",
            sa.BigInteger(),
            nullable=True,
            comment="Seconds for which a dedupe key is taken; empty: for ever.",
        ),
    )
    op.add_column(
        "message_types",
        sa.Column(
            "mode",
            sa.Text(),
            server_default=sa.text("'enforce'"),
            nullable=False,
            comment="enforce: a taken key makes no second message; observe: it does, and the trigger says so.",
        ),
    )
    op.add_column(
        "message_types",
        sa.Column(
            "on_conflict",
            sa.Text(),
            server_default=sa.text("'refuse'"),
            nullable=False,
            comment="A taken key with other content: refuse it, or answer with the first message.",
        ),
    )
    op.add_column(
        "message_types",
        sa.Column(
            "key_pattern",
            sa.Text(),
            nullable=True,
            comment="Makes the dedupe key: order_receipt:{order_id}:{email_type}; empty: callers give it.",
        ),
    )
    op.create_foreign_key(
        op.f("message_types_send_contents_fk"),
        "message_types",
        "send_contents",
        ["account_id", "content_id"],
        ["account_id", "id"],
    )
    op.create_foreign_key(
        op.f("message_types_templates_fk"),
        "message_types",
        "templates",
        ["account_id", "template"],
        ["account_id", "name"],
    )
    op.add_column(
        "sends",
        sa.Column(
            "holds_key",
            sa.Boolean(),
            server_default=sa.text("true"),
            nullable=False,
            comment="Whether the key is taken by this row; not after its window, or if observed.",
        ),
    )
    op.add_column(
        "sends",
        sa.Column(
            "key_until",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="When the key may be used again; empty: never.",
        ),
    )
    op.add_column(
        "sends",
        sa.Column("message_type", sa.Text(), nullable=True, comment="Its type, when it did not come from a campaign."),
    )
    op.add_column(
        "sends",
        sa.Column(
            "content_id", sa.BigInteger(), nullable=True, comment="Its content, when it did not come from a campaign."
        ),
    )
    op.add_column(
        "sends",
        sa.Column(
            "expires_at",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="After this it is of no use and is not sent.",
        ),
    )
    op.add_column(
        "sends",
        sa.Column(
            "metadata",
            postgresql.JSONB(),
            server_default=sa.text("'{}'"),
            nullable=False,
            comment="What the caller wants to find with it again.",
        ),
    )
    op.drop_constraint(op.f("sends_account_id_dedupe_key_key"), "sends", type_="unique")
    op.create_index(
        "sends_key_idx", "sends", ["account_id", "dedupe_key"], unique=True, postgresql_where=sa.text("holds_key")
    )
    op.create_index(
        "sends_lane_idx",
        "sends",
        ["account_id", "lane", "due_at", "id"],
        unique=False,
        postgresql_where=sa.text("is_queued AND campaign_id IS NULL"),
    )
    op.create_index(
        "sends_past_key_idx",
        "sends",
        ["account_id", "dedupe_key"],
        unique=False,
        postgresql_where=sa.text("NOT holds_key"),
    )
    op.create_foreign_key(
        op.f("sends_send_contents_fk"), "sends", "send_contents", ["account_id", "content_id"], ["account_id", "id"]
    )
    op.create_foreign_key(
        op.f("sends_message_types_fk"), "sends", "message_types", ["account_id", "message_type"], ["account_id", "name"]
    )
    op.add_column(
        "triggers",
        sa.Column("message_type", sa.Text(), nullable=True, comment="The type of message that was asked for."),
    )
    op.add_column(
        "triggers",
        sa.Column("email_lower", sa.Text(collation="C"), nullable=True, comment="The recipient, normalised."),
    )
    op.add_column(
        "triggers",
        sa.Column(
            "template", sa.Text(), nullable=True, comment="The template that was asked for; empty: finished parts."
        ),
    )
    op.add_column(
        "triggers", sa.Column("dedupe_key", sa.Text(), nullable=True, comment="The key that was given or made.")
    )
    op.add_column("triggers", sa.Column("request_id", sa.Text(), nullable=True, comment="The caller's request."))
    op.add_column(
        "triggers", sa.Column("event", sa.Text(), nullable=True, comment="The business event, such as invoice.paid.")
    )
    op.add_column(
        "triggers",
        sa.Column(
            "entities",
            postgresql.JSONB(),
            server_default=sa.text("'{}'"),
            nullable=False,
            comment="What the event is about, by name: order_id and the like.",
        ),
    )
    op.add_column(
        "triggers",
        sa.Column(
            "differs",
            postgresql.ARRAY(sa.Text()),
            nullable=True,
            comment="What was not as in the message that holds the key.",
        ),
    )
    op.add_column(
        "triggers",
        sa.Column(
            "warnings",
            postgresql.ARRAY(sa.Text()),
            nullable=True,
            comment="What is odd about its key: key_looks_random, key_too_broad.",
        ),
    )
    op.create_index(
        "triggers_odd_idx", "triggers", ["account_id", "message_type", "id"], unique=False, postgresql_where=_ODD
    )
    op.create_index(
        op.f("triggers_account_id_correlation_id_idx"), "triggers", ["account_id", "correlation_id"], unique=False
    )
    op.create_index(
        op.f("triggers_account_id_email_lower_at_idx"),
        "triggers",
        ["account_id", "email_lower", "at"],
        unique=False,
        postgresql_where=sa.text("email_lower IS NOT NULL"),
    )
    op.create_index(
        op.f("triggers_account_id_send_id_idx"),
        "triggers",
        ["account_id", "send_id"],
        unique=False,
        postgresql_where=sa.text("send_id IS NOT NULL"),
    )
    op.execute("CREATE SCHEMA sendonce")
    _execute_file("0007_accept_send.sql")
    op.execute("REVOKE ALL ON FUNCTION accept_send(bigint, jsonb, boolean) FROM PUBLIC")
    _execute_file("0007_send.sql")
    # Only who is granted it; and its tables are where the others are.
    op.execute("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA sendonce FROM PUBLIC")
    op.execute(
        "DO $$ BEGIN EXECUTE format("
        "'ALTER FUNCTION sendonce.send SET search_path = pg_catalog, %I, pg_temp', current_schema()); END $$"
    )


def _execute_file(name: str) -> None:
    # By the driver itself: what looks like a bound parameter is not one.
    op.get_bind().exec_driver_sql((_SQL / name).read_text(encoding="utf-8").replace("%", "%%"))


def downgrade() -> None:
    op.execute("DROP FUNCTION accept_send(bigint, jsonb, boolean)")
    op.execute("DROP SCHEMA sendonce CASCADE")
    op.drop_index(
        op.f("triggers_account_id_send_id_idx"), table_name="triggers", postgresql_where=sa.text("send_id IS NOT NULL")
    )
    op.drop_index(
        op.f("triggers_account_id_email_lower_at_idx"),
        table_name="triggers",
        postgresql_where=sa.text("email_lower IS NOT NULL"),
    )
    op.drop_index(op.f("triggers_account_id_correlation_id_idx"), table_name="triggers")
    op.drop_index("triggers_odd_idx", table_name="triggers", postgresql_where=_ODD)
    op.drop_column("triggers", "warnings")
    op.drop_column("triggers", "differs")
    op.drop_column("triggers", "entities")
    op.drop_column("triggers", "event")
    op.drop_column("triggers", "request_id")
    op.drop_column("triggers", "dedupe_key")
    op.drop_column("triggers", "template")
    op.drop_column("triggers", "email_lower")
    op.drop_column("triggers", "message_type")
    op.drop_constraint(op.f("sends_message_types_fk"), "sends", type_="foreignkey")
    op.drop_constraint(op.f("sends_send_contents_fk"), "sends", type_="foreignkey")
    op.drop_index("sends_past_key_idx", table_name="sends", postgresql_where=sa.text("NOT holds_key"))
    op.drop_index("sends_lane_idx", table_name="sends", postgresql_where=sa.text("is_queued AND campaign_id IS NULL"))
    op.drop_index("sends_key_idx", table_name="sends", postgresql_where=sa.text("holds_key"))
    # Keys were unique; what was observed, or came after a window, gets a name of its own.
    op.execute("UPDATE sends SET dedupe_key = dedupe_key || ' #' || id WHERE NOT holds_key")
    op.create_unique_constraint(
        op.f("sends_account_id_dedupe_key_key"),
        "sends",
        ["account_id", "dedupe_key"],
        postgresql_nulls_not_distinct=False,
    )
    op.drop_column("sends", "metadata")
    op.drop_column("sends", "expires_at")
    op.drop_column("sends", "content_id")
    op.drop_column("sends", "message_type")
    op.drop_column("sends", "key_until")
    op.drop_column("sends", "holds_key")
    op.drop_constraint(op.f("message_types_templates_fk"), "message_types", type_="foreignkey")
    op.drop_constraint(op.f("message_types_send_contents_fk"), "message_types", type_="foreignkey")
    op.drop_column("message_types", "key_pattern")
    op.drop_column("message_types", "on_conflict")
    op.drop_column("message_types", "mode")
    op.drop_column("message_types", "window_s")
    op.drop_column("message_types", "content_id")
    op.drop_column("message_types", "sender")
    op.drop_column("message_types", "template")
    op.drop_table("template_versions")
    op.drop_table("templates")
    op.drop_table("sql_grants")
    op.drop_table("send_contents")
