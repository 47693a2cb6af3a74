"""The reaper: declares silent workers dead and moves on what they held. Any process may run it, any number at once."""

import psycopg
import structlog
from sqlalchemy import Engine

from console.config import Settings
from console.dispatch import store
from console.dispatch.timing import INTERRUPTION_CAP
from console.providers.registry import provider_name

log = structlog.get_logger(__name__)


def reap(engine: Engine, settings: Settings) -> int:
    """Gives how many workers were declared dead and rows moved on; 0 when there is nothing more to do."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as pooled:
        connection = pooled.connection.driver_connection
        assert isinstance(connection, psycopg.Connection)
        dead = store.declare_dead(connection, dead_after_s=settings.dead_after_s)
        moved, in_doubt, buried = store.recover(
            connection,
            provider=provider_name(settings),
            interruption_cap=INTERRUPTION_CAP,
            spread_s=settings.tick_s,
        )
        store.forget_claims(connection)
    if dead or moved:
        log.warning("worker.reaped", workers=dead, rows=moved, in_doubt=in_doubt, dead_letters=buried)
    return len(dead) + moved
