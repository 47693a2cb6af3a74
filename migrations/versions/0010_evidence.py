"""Ids that lead to a message: the Message-ID of one outside campaigns, the correlation id of an inbound event."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_index(
        "sends_message_id_idx",
        "sends",
        ["account_id", "message_id"],
        unique=False,
        postgresql_where=sa.text("campaign_id IS NULL"),
    )
    op.create_index("inbox_events_correlation_idx", "inbox_events", ["account_id", "correlation_id"], unique=False)


def downgrade() -> None:
    op.drop_index("inbox_events_correlation_idx", table_name="inbox_events")
    op.drop_index("sends_message_id_idx", table_name="sends", postgresql_where=sa.text("campaign_id IS NULL"))
