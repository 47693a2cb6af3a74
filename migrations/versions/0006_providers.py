"""The ways out that accounts configure, and the order in which they are tried."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "providers",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False, comment="The provider's number."),
        sa.Column(
            "name",
            sa.Text(),
            nullable=False,
            comment="Its name in routes and on sends; never changed. a-z, 0-9, -, _.",
        ),
        sa.Column(
            "kind",
            sa.Text(),
            nullable=False,
            comment="smtp, resend, brevo, postmark, mailjet, ses or file (kinds.py).",
        ),
        sa.Column(
            "settings",
            postgresql.JSONB(),
            server_default=sa.text("'{}'"),
            nullable=False,
            comment="What its kind wants to know, as texts by name; nothing secret.",
        ),
        sa.Column(
            "sealed_secret",
            sa.Text(),
            server_default=sa.text("''"),
            nullable=False,
            comment="The API key or password, sealed (console/secrets.py). Empty: none.",
        ),
        sa.Column(
            "version", sa.BigInteger(), server_default=sa.text("1"), nullable=False, comment="Counts its changes."
        ),
        sa.Column(
            "changed_by",
            sa.BigInteger(),
            nullable=True,
            comment="Who changed it last; empty for the command line.",
        ),
        sa.Column(
            "changed_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was changed last.",
        ),
        sa.CheckConstraint(
            "kind IN ('smtp','resend','brevo','postmark','mailjet','ses','file')", name=op.f("providers_kind_check")
        ),
        sa.CheckConstraint("name <> 'smtp'", name=op.f("providers_name_check")),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("providers_accounts_fk")),
        sa.ForeignKeyConstraint(
            ["account_id", "changed_by"], ["users.account_id", "users.id"], name=op.f("providers_users_fk")
        ),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("providers_pk")),
        sa.UniqueConstraint("account_id", "name", name=op.f("providers_account_id_name_key")),
        comment="Ways out that accounts have configured, beside the installation's own SMTP server.",
    )
    op.create_table(
        "routes",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column(
            "name",
            sa.Text(),
            nullable=False,
            comment="Its name; the one named default is used where none is named.",
        ),
        sa.Column(
            "providers",
            postgresql.ARRAY(sa.Text()),
            nullable=False,
            comment="Names of providers, the first choice first; smtp is the installation's own.",
        ),
        sa.Column(
            "changed_by",
            sa.BigInteger(),
            nullable=True,
            comment="Who changed it last; empty for the command line.",
        ),
        sa.Column(
            "changed_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was changed last.",
        ),
        sa.CheckConstraint("cardinality(providers) > 0", name=op.f("routes_providers_check")),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("routes_accounts_fk")),
        sa.ForeignKeyConstraint(
            ["account_id", "changed_by"], ["users.account_id", "users.id"], name=op.f("routes_users_fk")
        ),
        sa.PrimaryKeyConstraint("account_id", "name", name=op.f("routes_pk")),
        comment="Ordered lists of providers; an account without a route named default uses smtp.",
    )


def downgrade() -> None:
    op.drop_table("routes")
    op.drop_table("providers")
