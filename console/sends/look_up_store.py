"""SQL of what providers were asked about messages in doubt, as screens and timelines show it. dispatch/ writes it."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class LookUp:
    """One question to a provider, and the answer: found, absent or unknown."""

    at: datetime
    attempt_no: int
    provider: str
    asked: str
    answer: str
    words: str
    provider_id: str | None


@dataclass(frozen=True, slots=True)
class NextStep:
    """What is done about a message in doubt without a person: `due_at` None: nothing more."""

    provider: str
    due_at: datetime | None


def look_ups_of(session: Session, account_id: int, send_id: int) -> list[LookUp]:
    """Gives what providers were asked about a send, first to last."""
    rows = session.execute(
        text(
            "SELECT at, attempt_no, provider, asked, answer, words, provider_id FROM look_ups"
            " WHERE account_id = :account_id AND send_id = :send_id ORDER BY at, id"
        ),
        {"account_id": account_id, "send_id": send_id},
    )
    return [LookUp(**row._mapping) for row in rows]


def next_step(session: Session, account_id: int, send_id: int) -> NextStep | None:
    """Gives what is done next about a send in doubt; None when its provider allows nothing, or it is in no doubt."""
    row = session.execute(
        text(
            "SELECT d.provider, d.due_at FROM doubts d"
            "  JOIN sends s ON s.account_id = d.account_id AND s.id = d.send_id AND s.attempt_no = d.attempt_no"
            " WHERE d.account_id = :account_id AND d.send_id = :send_id AND s.status = 'in_doubt'"
        ),
        {"account_id": account_id, "send_id": send_id},
    ).one_or_none()
    return None if row is None else NextStep(**row._mapping)
