"""Marks and outcomes that touch no index: the state leaves the indexes, and claims say which sends are held."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"

_EXCEPTIONS = "'failed','in_doubt','dead','suppressed','cancelled','expired'"


def upgrade() -> None:
    op.drop_index("sends_exception_idx", table_name="sends")
    op.drop_index("sends_unsettled_idx", table_name="sends")
    op.drop_index("sends_sending_idx", table_name="sends")
    op.drop_index("sends_queued_idx", table_name="sends")
    op.add_column(
        "sends",
        sa.Column(
            "is_queued",
            sa.Boolean(),
            sa.Computed("status = 'queued'", persisted=True),
            nullable=False,
            comment="Whether the state is queued; for the queue's index.",
        ),
    )
    op.add_column(
        "sends",
        sa.Column(
            "exception",
            sa.Text(),
            sa.Computed(f"CASE WHEN status IN ({_EXCEPTIONS}) THEN status END", persisted=True),
            nullable=True,
            comment="The state, when it is one that few sends are in; for the indexes over those.",
        ),
    )
    op.create_index(
        "sends_queued_idx",
        "sends",
        ["account_id", "campaign_id", "due_at", "id"],
        postgresql_where=sa.text("is_queued"),
    )
    op.create_index(
        "sends_unsettled_idx",
        "sends",
        ["account_id", "exception", "error_class", "id"],
        postgresql_where=sa.text("exception IN ('dead','in_doubt')"),
    )
    op.create_index(
        "sends_exception_idx",
        "sends",
        ["account_id", "campaign_id", "exception", "id"],
        postgresql_where=sa.text("exception IS NOT NULL"),
    )
    _make_claims()


def _make_claims() -> None:
    op.create_table(
        "claims",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False, comment="The claim's number."),
        sa.Column("worker_id", sa.BigInteger(), nullable=False, comment="The worker that made it."),
        sa.Column("campaign_id", sa.BigInteger(), nullable=True, comment="The campaign that the sends are of."),
        sa.Column(
            "send_ids",
            postgresql.ARRAY(sa.BigInteger()),
            nullable=False,
            comment="The sends, sending when it was made.",
        ),
        sa.Column(
            "claimed_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was made.",
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="claims_account_id_fkey"),
        sa.PrimaryKeyConstraint("account_id", "id", name="claims_pkey"),
        comment="Which sends each worker holds, one row a claim: how recovery finds those of a dead one.",
    )
    op.create_index("claims_worker_id_idx", "claims", ["worker_id"])
    # What is under way while this runs.
    op.execute(
        "INSERT INTO claims (account_id, worker_id, campaign_id, send_ids)"
        " SELECT account_id, claimed_by, campaign_id, array_agg(id) FROM sends WHERE status = 'sending'"
        "  GROUP BY account_id, claimed_by, campaign_id"
    )


def downgrade() -> None:
    op.drop_table("claims")
    op.drop_index("sends_exception_idx", table_name="sends")
    op.drop_index("sends_unsettled_idx", table_name="sends")
    op.drop_index("sends_queued_idx", table_name="sends")
    op.drop_column("sends", "exception")
    op.drop_column("sends", "is_queued")
    op.create_index(
        "sends_queued_idx",
        "sends",
        ["account_id", "campaign_id", "due_at", "id"],
        postgresql_where=sa.text("status = 'queued'"),
    )
    op.create_index("sends_sending_idx", "sends", ["claimed_by"], postgresql_where=sa.text("lower(status) = 'sending'"))
    op.create_index(
        "sends_unsettled_idx",
        "sends",
        ["account_id", "status", "error_class", "id"],
        postgresql_where=sa.text("status IN ('dead','in_doubt')"),
    )
    op.create_index(
        "sends_exception_idx",
        "sends",
        ["account_id", "campaign_id", "status", "id"],
        postgresql_where=sa.text(f"status IN ({_EXCEPTIONS})"),
    )
