"""Mailboxes that bounces come back to."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_WORDS = {
    "inbox_endpoints": "Who reads its events: rules, or reports (of a provider).",
    "inbox_queue": "Who reads it: rules or reports.",
}
_NEW_WORDS = {
    "inbox_endpoints": "Who reads its events: rules, reports (of a provider), or bounces (a mailbox).",
    "inbox_queue": "Who reads it: rules, reports or bounces.",
}


def upgrade() -> None:
    _allow("'rules','reports','bounces'")
    for table, words in _NEW_WORDS.items():
        op.alter_column(table, "reader", comment=words, existing_comment=_WORDS[table])
    op.create_table(
        "bounce_mailboxes",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column(
            "endpoint_id", sa.BigInteger(), nullable=False, comment="Under which its mails are stored (inbox_events)."
        ),
        sa.Column(
            "url",
            sa.Text(),
            nullable=False,
            comment="imaps:// or imap://USER@HOST:PORT/FOLDER, without the password.",
        ),
        sa.Column("sealed_password", sa.Text(), nullable=False, comment="The password, sealed (console/secrets.py)."),
        sa.Column(
            "uid_validity",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="The server's UIDVALIDITY that last_uid belongs to; 0 before the first visit.",
        ),
        sa.Column(
            "last_uid",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="The UID of the last mail that is stored.",
        ),
        sa.Column(
            "next_visit_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="Not to be visited before; whoever visits it moves it on first.",
        ),
        sa.Column(
            "visited_at",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="When a visit last came to its end, whatever that was.",
        ),
        sa.Column(
            "error",
            sa.Text(),
            server_default=sa.text("''"),
            nullable=False,
            comment="What stood in the way at the last visit; empty: nothing.",
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("bounce_mailboxes_accounts_fk")),
        sa.ForeignKeyConstraint(
            ["account_id", "endpoint_id"],
            ["inbox_endpoints.account_id", "inbox_endpoints.id"],
            name=op.f("bounce_mailboxes_inbox_endpoints_fk"),
        ),
        sa.PrimaryKeyConstraint("account_id", name=op.f("bounce_mailboxes_pkey")),
        comment="Mailboxes that bounces come back to, one an account, and how far each is read.",
    )
    op.create_index(op.f("bounce_mailboxes_next_visit_at_idx"), "bounce_mailboxes", ["next_visit_at"])


def downgrade() -> None:
    op.drop_table("bounce_mailboxes")
    # What came from mailboxes stays on record, as reports whose provider is not known.
    op.execute("DELETE FROM inbox_queue WHERE reader = 'bounces'")
    op.execute("UPDATE inbox_endpoints SET reader = 'reports' WHERE reader = 'bounces'")
    for table, words in _WORDS.items():
        op.alter_column(table, "reader", comment=words, existing_comment=_NEW_WORDS[table])
    _allow("'rules','reports'")


def _allow(readers: str) -> None:
    op.drop_constraint(op.f("inbox_endpoints_reader_check"), "inbox_endpoints", type_="check")
    op.create_check_constraint(op.f("inbox_endpoints_reader_check"), "inbox_endpoints", f"reader IN ({readers})")
