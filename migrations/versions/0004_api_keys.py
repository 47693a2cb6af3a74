"""API keys, and how many calls each may still make."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The account that it works in, and no other."),
        sa.Column(
            "id",
            sa.BigInteger(),
            sa.Identity(always=False),
            nullable=False,
            comment="The key's number; stands in its prefix.",
        ),
        sa.Column("name", sa.Text(), nullable=False, comment="What it is for, in words for people; may be empty."),
        sa.Column(
            "secret_hash",
            sa.Text(),
            nullable=False,
            comment="SHA-256 in hex of the 256 random bits in the key; they are kept nowhere.",
        ),
        sa.Column(
            "scopes", postgresql.ARRAY(sa.Text()), nullable=False, comment="What it may do: send, read, suppress."
        ),
        sa.Column(
            "calls_per_minute",
            sa.Integer(),
            nullable=False,
            comment="Calls that it may make in a minute on average, from all processes; a message of a batch is one.",
        ),
        sa.Column(
            "created_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was made.",
        ),
        sa.Column("created_by", sa.BigInteger(), nullable=True, comment="Who made it; empty for the command line."),
        sa.Column(
            "last_used_at",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="The last call, to the minute: written when the one before is a minute old.",
        ),
        sa.Column(
            "revoked_at",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="Since when it is refused; empty while it works.",
        ),
        sa.Column("revoked_by", sa.BigInteger(), nullable=True, comment="Who revoked it; empty for the command line."),
        sa.CheckConstraint(
            "scopes <@ ARRAY['send','read','suppress'] AND cardinality(scopes) > 0",
            name=op.f("api_keys_scopes_check"),
        ),
        sa.CheckConstraint("calls_per_minute > 0", name=op.f("api_keys_calls_per_minute_check")),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("api_keys_accounts_fk")),
        sa.ForeignKeyConstraint(
            ["account_id", "created_by"], ["users.account_id", "users.id"], name="api_keys_maker_fk"
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "revoked_by"], ["users.account_id", "users.id"], name="api_keys_revoker_fk"
        ),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("api_keys_pk")),
        sa.UniqueConstraint("secret_hash", name=op.f("api_keys_secret_hash_key")),
        comment="Keys of programs that call the API; hashed, bound to one account.",
    )
    op.create_table(
        "api_allowances",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("key_id", sa.BigInteger(), nullable=False, comment="The key."),
        sa.Column(
            "calls",
            sa.Double(),
            nullable=False,
            comment="Calls that were left at filled_at; it grows with time, and is below zero after a large batch.",
        ),
        sa.Column("filled_at", sa.TIMESTAMP(timezone=True), nullable=False, comment="When calls was true."),
        sa.ForeignKeyConstraint(
            ["account_id", "key_id"], ["api_keys.account_id", "api_keys.id"], name=op.f("api_allowances_api_keys_fk")
        ),
        sa.PrimaryKeyConstraint("account_id", "key_id", name=op.f("api_allowances_pk")),
        comment="How many calls each API key may still make now; shared by all processes.",
        prefixes=["UNLOGGED"],
    )


def downgrade() -> None:
    op.drop_table("api_allowances")
    op.drop_table("api_keys")
