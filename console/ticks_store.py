"""What is written down about the scheduler's ticks, so that any process can tell whether one runs anywhere."""

from sqlalchemy import text
from sqlalchemy.orm import Session


def record_run(session: Session, name: str) -> None:
    """Writes that the tick has just ended well."""
    session.execute(
        text("INSERT INTO ticks (name) VALUES (:name) ON CONFLICT (name) DO UPDATE SET ran_at = now()"),
        {"name": name},
    )


def record_failure(session: Session, name: str, *, error: str) -> None:
    """Writes that the tick has just failed; when it last ended well stays (the epoch: never)."""
    session.execute(
        text(
            "INSERT INTO ticks (name, ran_at, failed_at, error) VALUES (:name, to_timestamp(0), now(), :error)"
            " ON CONFLICT (name) DO UPDATE SET failed_at = now(), error = :error"
        ),
        {"name": name, "error": error},
    )


def newest_run_age_s(session: Session) -> float | None:
    """Gives how many seconds ago a tick last ended well, on any machine; None when none ever did."""
    statement = text("SELECT extract(epoch FROM now() - max(ran_at)) FROM ticks WHERE ran_at > to_timestamp(0)")
    age_s = session.execute(statement).scalar_one()
    return None if age_s is None else float(age_s)
