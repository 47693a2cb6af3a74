"""SQL of the door: one call of the function that decides."""

from typing import Any

import psycopg
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from console.errors import InvalidInput

# What the decision function raises for bad input; the field is in the error's column.
_BAD_INPUT = "SO001"

_DECIDE = text("SELECT accept_send(:account_id, CAST(:document AS jsonb), :is_quiet)")
_WAKE = text("SELECT set_config('synchronous_commit', 'off', true), pg_notify('sendonce_work', :lane)")


def decide(session: Session, account_id: int, document: str, *, is_quiet: bool = False) -> dict[str, Any]:
    """Gives the decision over the request in `document`, a JSON text. Raises: DBAPIError, see `refusal`."""
    values = {"account_id": account_id, "document": document, "is_quiet": is_quiet}
    return session.execute(_DECIDE, values).scalar_one()


def wake(work: Session | Connection, lane: str) -> None:
    """Wakes the workers of the lane when the transaction, which is about nothing else, is committed.

    Without waiting for the disk: PostgreSQL lets those who notify commit one after the other.
    """
    work.execute(_WAKE, {"lane": lane})


def refusal(error: DBAPIError) -> InvalidInput | None:
    """Gives the person's mistake that the database found; None when it is something else."""
    cause = error.orig
    if not isinstance(cause, psycopg.Error):
        return None
    if cause.sqlstate == _BAD_INPUT:
        hint = f" {cause.diag.message_hint}." if cause.diag.message_hint else ""
        return InvalidInput(f"{cause.diag.message_primary}{hint}", field=cause.diag.column_name)
    if isinstance(cause, psycopg.errors.NumericValueOutOfRange | psycopg.errors.InvalidTextRepresentation):
        return InvalidInput(f"PostgreSQL can't keep it: {cause.diag.message_primary}.", field="params")
    return None
