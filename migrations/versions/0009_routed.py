"""By which route the messages of a type go."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column(
        "message_types",
        sa.Column("route", sa.Text(), nullable=True, comment="By which route they go; empty: the account's default."),
    )
    op.create_foreign_key(
        op.f("message_types_routes_fk"), "message_types", "routes", ["account_id", "route"], ["account_id", "name"]
    )


def downgrade() -> None:
    op.drop_constraint(op.f("message_types_routes_fk"), "message_types", type_="foreignkey")
    op.drop_column("message_types", "route")
