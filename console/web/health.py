"""/healthz and /readyz: what a load balancer or a supervisor asks. JSON that names what is wrong; no sign-in."""

import structlog
from flask import Blueprint, current_app, jsonify
from flask.typing import ResponseReturnValue
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from console import schema, ticks_store
from console.config import Settings
from console.db import transaction
from console.errors import DatabaseError
from console.web.database import bound_engine
from console.web.guards import public

log = structlog.get_logger(__name__)
health = Blueprint("health", __name__)

LEAST_FRESH_S = 30.0
FRESH_TICKS = 3


@health.get("/healthz")
@public
def alive() -> ResponseReturnValue:
    """Answers as long as the process can; asks nothing of the database, whose absence a restart would not mend."""
    return jsonify(status="alive")


@health.get("/readyz")
@public
def ready() -> ResponseReturnValue:
    """Tells whether mail can be sent from here: 200, or 503 with a sentence for each thing that is wrong."""
    settings: Settings = current_app.config["SENDONCE_SETTINGS"]
    wrong = problems(bound_engine(), settings)
    document = {"status": "ready" if not wrong else "not ready", "problems": wrong}
    return jsonify(document), 200 if not wrong else 503


def problems(engine: Engine, settings: Settings) -> dict[str, str]:
    """Gives what is wrong, by name (database, migrations, scheduler), each in a sentence; empty when all is well."""
    try:
        schema.check_server(engine)
    except DatabaseError as error:
        log.warning("health.no_database", reason=str(error))
        return {"database": "The database can't be used: it does not answer, or is too old; the log says which."}
    try:
        schema.check_revision(engine)
        with transaction(engine) as session:
            age_s = ticks_store.newest_run_age_s(session)
    except DatabaseError as error:
        return {"migrations": str(error)}
    except SQLAlchemyError as error:
        return {"database": f"The database went away while it was asked ({type(error).__name__})."}
    limit_s = max(FRESH_TICKS * settings.tick_s, LEAST_FRESH_S)
    if age_s is None:
        return {"scheduler": "No tick has run yet: start `sendonce serve` or `sendonce worker`."}
    if age_s > limit_s:
        return {
            "scheduler": f"The last tick ended {age_s:.0f} seconds ago (limit {limit_s:g}):"
            " start `sendonce serve` or `sendonce worker`, or see why its ticks fail in its log."
        }
    return {}
