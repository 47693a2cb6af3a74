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


def troubles(session: Session, account_id: int) -> list[Trouble]:
    """Gives the providers whose last contact failed, the installation's and the account's; empty when all is well.

    Shape: `provider` is the name as the account knows it; in the table an account's has its number in front.
    """
    rows = session.execute(
        text(
            "SELECT CASE WHEN strpos(name, '/') > 0 THEN split_part(name, '/', 2) ELSE name END AS provider,"
            "       breaker = 'open' AS is_open, failure_count, error, error_at, next_try_at"
            "  FROM provider_states"
            " WHERE (breaker = 'open' OR failure_count > 0) AND (strpos(name, '/') = 0 OR starts_with(name, :own))"
            " ORDER BY name"
        ),
        {"own": f"{account_id}/"},
    )
    return [Trouble(**row._mapping) for row in rows]
