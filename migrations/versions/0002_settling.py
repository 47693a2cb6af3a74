"""What people do with dead letters and messages in doubt: why a send is one, and the frozen sets they moved on."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_FIRST_DUE = "When it was first due; the age cap counts from here."
_FIRST_DUE_NOW = "When it was first due, or put back by a person; the age cap counts from here."
_UNSETTLED = sa.text("status IN ('dead','in_doubt')")


def upgrade() -> None:
    op.add_column(
        "sends",
        sa.Column(
            "attempt_base",
            sa.SmallInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="Attempts before a person put it back last; the attempt cap and the waits count from here.",
        ),
    )
    op.add_column(
        "sends",
        sa.Column(
            "error_class",
            sa.Text(),
            server_default=sa.text("''"),
            nullable=False,
            comment="Why it is dead or in doubt, for grouping: 451-4.7.1-rcpt, no-answer-end, too-old; else empty.",
        ),
    )
    _say_of_first_due(_FIRST_DUE_NOW, instead_of=_FIRST_DUE)
    # Rows that wait already, by what their last attempt and their own words say.
    op.execute(
        """
        UPDATE sends s
           SET error_class = CASE WHEN s.provider_reply LIKE 'gave up: too old%' THEN 'too-old'
                                  WHEN s.status = 'dead' AND s.provider_reply LIKE 'the worker died % times%'
                                  THEN 'worker-died'
                                  ELSE COALESCE((SELECT concat_ws('-', COALESCE(t.code::text, 'no-answer'), t.enhanced,
                                                                  t.phase)
                                                   FROM attempts t
                                                  WHERE t.account_id = s.account_id AND t.send_id = s.id
                                                    AND t.attempt_no = s.attempt_no), 'unknown') END
         WHERE s.status IN ('dead','in_doubt')
        """
    )
    op.create_index(
        "sends_unsettled_idx",
        "sends",
        ["account_id", "status", "error_class", "id"],
        unique=False,
        postgresql_where=_UNSETTLED,
    )
    _make_frozen_sets()
    _make_frozen_rows()


def downgrade() -> None:
    op.drop_index(op.f("frozen_rows_account_id_send_id_idx"), table_name="frozen_rows")
    op.drop_table("frozen_rows")
    op.drop_table("frozen_sets")
    op.drop_index("sends_unsettled_idx", table_name="sends", postgresql_where=_UNSETTLED)
    _say_of_first_due(_FIRST_DUE, instead_of=_FIRST_DUE_NOW)
    op.drop_column("sends", "error_class")
    op.drop_column("sends", "attempt_base")


def _say_of_first_due(comment: str, *, instead_of: str) -> None:
    op.alter_column(
        "sends",
        "first_due_at",
        existing_type=sa.TIMESTAMP(timezone=True),
        existing_nullable=False,
        existing_server_default=sa.text("now()"),
        existing_comment=instead_of,
        comment=comment,
    )


def _make_frozen_sets() -> None:
    op.create_table(
        "frozen_sets",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False, comment="The set's number."),
        sa.Column(
            "change",
            sa.Text(),
            nullable=False,
            comment="revive, settle_sent, settle_resend or settle_failed (sends/states.py).",
        ),
        sa.Column(
            "status",
            sa.Text(),
            server_default=sa.text("'shown'"),
            nullable=False,
            comment="shown: nothing has happened yet; run: it can't be run again.",
        ),
        sa.Column(
            "row_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False, comment="Sends in the set."
        ),
        sa.Column(
            "has_more",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="Whether more sends fitted than one set holds.",
        ),
        sa.Column("shown_to", sa.BigInteger(), nullable=False, comment="Who was shown the set."),
        sa.Column(
            "shown_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was frozen.",
        ),
        sa.Column("run_by", sa.BigInteger(), nullable=True, comment="Who had it run."),
        sa.Column("ran_at", sa.TIMESTAMP(timezone=True), nullable=True, comment="When it was run."),
        sa.Column("reason", sa.Text(), nullable=True, comment="Why, in that person's words."),
        sa.Column(
            "moved_count",
            sa.BigInteger(),
            nullable=True,
            comment="Sends that moved; the others had changed meanwhile.",
        ),
        sa.CheckConstraint(
            "change IN ('revive','settle_sent','settle_resend','settle_failed')",
            name=op.f("frozen_sets_change_check"),
        ),
        sa.CheckConstraint("status IN ('shown','run')", name=op.f("frozen_sets_status_check")),
        sa.CheckConstraint(
            "status = 'shown' OR (run_by IS NOT NULL AND ran_at IS NOT NULL AND reason IS NOT NULL)",
            name=op.f("frozen_sets_run_check"),
        ),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("frozen_sets_accounts_fk")),
        sa.ForeignKeyConstraint(
            ["account_id", "shown_to"], ["users.account_id", "users.id"], name="frozen_sets_shown_fk"
        ),
        sa.ForeignKeyConstraint(["account_id", "run_by"], ["users.account_id", "users.id"], name="frozen_sets_run_fk"),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("frozen_sets_pk")),
        comment="What people did with dead letters and messages in doubt: over which rows, who, when and why.",
    )


def _make_frozen_rows() -> None:
    op.create_table(
        "frozen_rows",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("set_id", sa.BigInteger(), nullable=False, comment="The set."),
        sa.Column("send_id", sa.BigInteger(), nullable=False, comment="The send."),
        sa.Column("attempt_no", sa.SmallInteger(), nullable=False, comment="Its attempts when it was shown."),
        sa.Column(
            "claimed_at",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="Its last claim when it was shown; another: changed.",
        ),
        sa.Column("outcome", sa.Text(), nullable=True, comment="moved or skipped; empty until the set is run."),
        sa.Column("skip_reason", sa.Text(), nullable=True, comment="Why it was skipped, in words."),
        sa.CheckConstraint("outcome IN ('moved','skipped')", name=op.f("frozen_rows_outcome_check")),
        sa.ForeignKeyConstraint(
            ["account_id", "set_id"],
            ["frozen_sets.account_id", "frozen_sets.id"],
            name=op.f("frozen_rows_frozen_sets_fk"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "send_id"], ["sends.account_id", "sends.id"], name=op.f("frozen_rows_sends_fk")
        ),
        sa.PrimaryKeyConstraint("account_id", "set_id", "send_id", name=op.f("frozen_rows_pk")),
        comment="The sends of each frozen set, as they stood when they were shown, and what became of them.",
    )
    op.create_index(op.f("frozen_rows_account_id_send_id_idx"), "frozen_rows", ["account_id", "send_id"], unique=False)
