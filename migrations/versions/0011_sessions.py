"""Which sessions of a person still count: a sign-out ends all that were begun before."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column(
        "users",
        sa.Column(
            "session_version",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="Grows with each sign-out, which ends the sessions begun before.",
        ),
    )


def downgrade() -> None:
    op.drop_column("users", "session_version")
