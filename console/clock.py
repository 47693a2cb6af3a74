"""The one place that asks the machine for the time. Deadlines between machines use the database's now() instead."""

from datetime import UTC, datetime


def now() -> datetime:
    """Gives the present moment, aware, in UTC."""
    return datetime.now(UTC)
