"""Runs the migrations on the connection that console/schema.py hands over, which has set its lock timeout."""

from alembic import context

import console.accounts.models
import console.api.models
import console.audience.models
import console.campaigns.models
import console.content.models
import console.dispatch.models
import console.inbox.models
import console.providers.models
import console.sends.models
import console.sends.settle_models  # noqa: F401 - each import declares its tables
from console.db import Base


def run() -> None:
    connection = context.config.attributes["connection"]
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        compare_type=True,
        compare_server_default=True,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run()
