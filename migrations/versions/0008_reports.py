"""What providers report about messages, and where their reports come in."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column(
        "providers",
        sa.Column(
            "endpoint_id",
            sa.BigInteger(),
            nullable=True,
            comment="Where its reports come in; empty: nowhere yet.",
        ),
    )
    op.create_unique_constraint(
        op.f("providers_account_id_endpoint_id_key"), "providers", ["account_id", "endpoint_id"]
    )
    op.create_foreign_key(
        op.f("providers_inbox_endpoints_fk"),
        "providers",
        "inbox_endpoints",
        ["account_id", "endpoint_id"],
        ["account_id", "id"],
    )
    op.create_table(
        "provider_events",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False, comment="The fact's number."),
        sa.Column("provider", sa.Text(), nullable=False, comment="The provider's name in the account."),
        sa.Column("event_key", sa.Text(), nullable=False, comment="Which report it is, and its place in it."),
        sa.Column(
            "fact",
            sa.Text(),
            nullable=False,
            comment="accepted, deferred, delivered, bounced, complained, opened, dropped.",
        ),
        sa.Column(
            "bounce",
            sa.Text(),
            nullable=True,
            comment="hard (no such address), soft, policy or other; of a bounce.",
        ),
        sa.Column("send_id", sa.BigInteger(), nullable=True, comment="The send; empty when it is about none of ours."),
        sa.Column("tag", sa.Text(), nullable=False, comment="Our tag in the report, by which the send was found."),
        sa.Column("provider_id", sa.Text(), nullable=False, comment="The provider's own id for the message."),
        sa.Column("email", sa.Text(), nullable=False, comment="The recipient, as the report names it."),
        sa.Column("words", sa.Text(), nullable=False, comment="The provider's and the remote server's words."),
        sa.Column(
            "happened_at",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="When it happened, by the provider's clock.",
        ),
        sa.Column(
            "received_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was read here.",
        ),
        sa.Column("inbox_event_id", sa.BigInteger(), nullable=True, comment="The report as it came (inbox_events)."),
        sa.Column(
            "is_open",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="Whether the send was on its way still, so that it has yet to be settled.",
        ),
        sa.CheckConstraint(
            "fact IN ('accepted','deferred','delivered','bounced','complained','opened','dropped')",
            name=op.f("provider_events_fact_check"),
        ),
        sa.CheckConstraint("bounce IN ('hard','soft','policy','other')", name=op.f("provider_events_bounce_check")),
        sa.CheckConstraint("NOT is_open OR send_id IS NOT NULL", name=op.f("provider_events_open_check")),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("provider_events_accounts_fk")),
        sa.ForeignKeyConstraint(
            ["account_id", "send_id"], ["sends.account_id", "sends.id"], name=op.f("provider_events_sends_fk")
        ),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("provider_events_pk")),
        sa.UniqueConstraint(
            "account_id", "provider", "event_key", name=op.f("provider_events_account_id_provider_event_key_key")
        ),
        comment="What providers reported about messages: facts beside the state, in whatever order they came.",
    )
    op.create_index(
        op.f("provider_events_account_id_send_id_idx"), "provider_events", ["account_id", "send_id"], unique=False
    )
    op.create_index(
        "provider_events_open_idx",
        "provider_events",
        ["account_id", "id"],
        unique=False,
        postgresql_where=sa.text("is_open"),
    )


def downgrade() -> None:
    op.drop_table("provider_events")
    op.drop_constraint(op.f("providers_inbox_endpoints_fk"), "providers", type_="foreignkey")
    op.drop_constraint(op.f("providers_account_id_endpoint_id_key"), "providers", type_="unique")
    op.drop_column("providers", "endpoint_id")
