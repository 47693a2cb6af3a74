"""Reads what the workers know together about providers that are in trouble, for screens and the command line."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session


@dataclass(frozen=True)
class Trouble:
    """A provider that could not be reached; `is_open`: no message is claimed before `next_try_at`."""

    provider: str
    is_open: bool
    failure_count: int
    error: str | None
    error_at: datetime | None
    next_try_at: datetime | None


def troubles(session: Session) -> list[Trouble]:
    """Gives the providers whose last contact failed; empty when all is well."""
    rows = session.execute(
        text(
            "SELECT name AS provider, breaker = 'open' AS is_open, failure_count, error, error_at, next_try_at"
            " FROM provider_states WHERE breaker = 'open' OR failure_count > 0 ORDER BY name"
        )
    )
    return [Trouble(**row._mapping) for row in rows]
