"""Read queries for programs: pages of sends by what they ask for, one send, and the triggers of a send.

Every page is read by keyset, the newest first, and looks at no more than SCAN_ROWS rows.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from console.errors import NotFound
from console.sends.search_store import SCAN_ROWS


@dataclass(frozen=True)
class ListedSend:
    """A send as programs see it: all but the parameters, which may hold codes and links meant for one person."""

    id: int
    status: str
    email: str
    message_type: str | None
    campaign_id: int | None
    lane: str
    dedupe_key: str
    message_id: str
    correlation_id: str
    attempt_no: int
    created_at: datetime
    due_at: datetime
    expires_at: datetime | None
    finished_at: datetime | None
    provider_id: str | None
    provider_reply: str | None
    metadata: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a page is to hold; None: any. `correlation_id`: of the request that made it, or of one that repeated it."""

    email_lower: str | None = None
    status: str | None = None
    message_type: str | None = None
    correlation_id: str | None = None


@dataclass(frozen=True)
class Listed:
    """Sends, and one more if there is one; `looked_back_to` when the page ended before it was full."""

    rows: list[ListedSend]
    looked_back_to: int | None = None


@dataclass(frozen=True)
class TriggerRow:
    """One request that made a send, or met it."""

    at: datetime
    source: str
    decision: str
    code_path: str
    correlation_id: str


_COLUMNS = (
    "s.id, s.status, s.email, s.message_type, s.campaign_id, s.lane, s.dedupe_key, s.message_id, s.correlation_id,"
    " s.attempt_no, s.created_at, s.due_at, s.expires_at, s.finished_at, s.provider_id, s.provider_reply, s.metadata"
)
_CONDITIONS = {
    "email_lower": "s.email_lower = :email_lower",
    "status": "s.status = :status",
    "message_type": "s.message_type = :message_type",
    "correlation_id": "s.id = ANY(ARRAY(SELECT t.send_id FROM triggers t WHERE t.account_id = :account_id"
    " AND t.correlation_id = :correlation_id AND t.send_id IS NOT NULL))",
}
# An index leads to these; the others are looked for among the newest rows.
_FOUND_BY_INDEX = frozenset({"email_lower", "correlation_id"})
_OLDEST_LOOKED_AT = text(
    "SELECT id FROM sends WHERE account_id = :account_id AND (CAST(:before_id AS bigint) IS NULL OR id < :before_id)"
    " ORDER BY id DESC OFFSET :scan_rows - 1 LIMIT 1"
)


def page(session: Session, account_id: int, wanted: Wanted, *, before_id: int | None = None, limit: int = 50) -> Listed:
    """Gives up to `limit` + 1 sends, the newest first, from before `before_id`."""
    asked = {name: value for name, value in vars(wanted).items() if value is not None}
    values: dict[str, Any] = {"account_id": account_id, "before_id": before_id, "limit": limit + 1, **asked}
    conditions = ["s.account_id = :account_id", *(_CONDITIONS[name] for name in asked)]
    if before_id is not None:
        conditions.append("s.id < :before_id")
    oldest = None
    if asked and not asked.keys() & _FOUND_BY_INDEX:
        oldest = session.execute(_OLDEST_LOOKED_AT, {**values, "scan_rows": SCAN_ROWS}).scalar_one_or_none()
    if oldest is not None:
        conditions.append("s.id >= :oldest")
        values["oldest"] = oldest
    statement = f"SELECT {_COLUMNS} FROM sends s WHERE {' AND '.join(conditions)} ORDER BY s.id DESC LIMIT :limit"
    rows = [ListedSend(**row._mapping) for row in session.execute(text(statement), values)]
    return Listed(rows, looked_back_to=oldest if len(rows) <= limit else None)


def show(session: Session, account_id: int, send_id: int) -> ListedSend:
    """Gives one send.

    Raises: NotFound.
    """
    row = session.execute(
        text(f"SELECT {_COLUMNS} FROM sends s WHERE s.account_id = :account_id AND s.id = :send_id"),
        {"account_id": account_id, "send_id": send_id},
    ).one_or_none()
    if row is None:
        raise NotFound(f"There is no message {send_id} in this account.")
    return ListedSend(**row._mapping)


def triggers_of(session: Session, account_id: int, send_id: int, *, limit: int = 100) -> list[TriggerRow]:
    """Gives the first requests that made or met a send, in order."""
    rows = session.execute(
        text(
            "SELECT at, source, decision, code_path, correlation_id FROM triggers"
            " WHERE account_id = :account_id AND send_id = :send_id ORDER BY id LIMIT :limit"
        ),
        {"account_id": account_id, "send_id": send_id, "limit": limit},
    )
    return [TriggerRow(**row._mapping) for row in rows]
