"""Messages in doubt that are settled without a person: what providers were asked, and who may have them again."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column(
        "workers",
        sa.Column(
            "provider", sa.Text(), nullable=True, comment="The provider that it sends by, by its name in our registry."
        ),
    )
    op.add_column(
        "workers",
        sa.Column(
            "may_settle",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="Whether a message that its provider did not answer can be settled without a person.",
        ),
    )
    op.add_column(
        "sends",
        sa.Column(
            "bound_to",
            sa.Text(),
            nullable=True,
            comment="The provider that alone may have it again: it may have been taken there. Empty: as its route says.",
        ),
    )
    op.add_column(
        "sends",
        sa.Column(
            "bound_until",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="Until when it may be handed over there again; later it is in doubt again. Empty: it is not bound.",
        ),
    )
    op.create_table(
        "doubts",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("send_id", sa.BigInteger(), nullable=False, comment="The send."),
        sa.Column(
            "attempt_no", sa.SmallInteger(), nullable=False, comment="The attempt that it is about, the send's last."
        ),
        sa.Column("provider", sa.Text(), nullable=False, comment="The provider's name in our registry."),
        sa.Column(
            "first_at",
            sa.TIMESTAMP(timezone=True),
            nullable=False,
            comment="When that provider first did not answer about the message.",
        ),
        sa.Column(
            "due_at",
            sa.TIMESTAMP(timezone=True),
            nullable=True,
            comment="When the next step is due; while one is under way, when another process may take it over."
            " Empty: there is none, a report or a person settles it.",
        ),
        sa.Column(
            "look_up_count",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="Look-ups since that attempt.",
        ),
        sa.Column(
            "was_absent",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="Whether the last look-up said that the message is not there.",
        ),
        sa.ForeignKeyConstraint(
            ["account_id", "send_id"], ["sends.account_id", "sends.id"], name=op.f("doubts_sends_fk")
        ),
        sa.PrimaryKeyConstraint("account_id", "send_id", name=op.f("doubts_pk")),
        comment="Messages in doubt that are settled without a person, as their providers allow, and when.",
    )
    op.create_index(
        "doubts_due_idx",
        "doubts",
        ["account_id", "due_at"],
        unique=False,
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_table(
        "look_ups",
        sa.Column("account_id", sa.BigInteger(), nullable=False, comment="The owner."),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False, comment="The look-up's number."),
        sa.Column(
            "at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the answer came.",
        ),
        sa.Column("send_id", sa.BigInteger(), nullable=False, comment="The send."),
        sa.Column("attempt_no", sa.SmallInteger(), nullable=False, comment="The attempt that got no answer."),
        sa.Column(
            "provider", sa.Text(), nullable=False, comment="The provider that was asked, by its name in our registry."
        ),
        sa.Column("asked", sa.Text(), nullable=False, comment="Our name for the message, by which it was asked for."),
        sa.Column(
            "answer",
            sa.Text(),
            nullable=False,
            comment="found, absent, or unknown: it could not be asked or said nothing.",
        ),
        sa.Column("words", sa.Text(), nullable=False, comment="The provider's words, or why there are none."),
        sa.Column(
            "provider_id", sa.Text(), nullable=True, comment="The provider's own id for the message, when found."
        ),
        sa.CheckConstraint("answer IN ('found','absent','unknown')", name=op.f("look_ups_answer_check")),
        sa.ForeignKeyConstraint(
            ["account_id", "send_id"], ["sends.account_id", "sends.id"], name=op.f("look_ups_sends_fk")
        ),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("look_ups_pk")),
        comment="What providers were asked about messages in doubt, and what they answered.",
    )
    op.create_index(op.f("look_ups_account_id_send_id_idx"), "look_ups", ["account_id", "send_id"], unique=False)


def downgrade() -> None:
    op.drop_table("look_ups")
    op.drop_table("doubts")
    op.drop_column("sends", "bound_until")
    op.drop_column("sends", "bound_to")
    op.drop_column("workers", "may_settle")
    op.drop_column("workers", "provider")
