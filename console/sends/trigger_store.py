"""SQL that reads triggers: who asked for a message, and what was odd about the keys of a message type."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session


@dataclass(frozen=True)
class TriggerRow:
    """One request to send."""

    id: int
    at: datetime
    source: str
    code_path: str
    event: str | None
    entities: dict[str, Any]
    decision: str
    dedupe_key: str | None
    request_id: str | None
    correlation_id: str
    send_id: int | None
    email_lower: str | None
    differs: list[str] | None
    warnings: list[str] | None


_COLUMNS = (
    "id, at, source, code_path, event, entities, decision, dedupe_key, request_id, correlation_id, send_id,"
    " email_lower, differs, warnings"
)
# The index triggers_odd_idx says the same.
_ODD = "(decision IN ('refused','duplicate_observed') OR warnings IS NOT NULL)"


def of_send(session: Session, account_id: int, send_id: int, *, limit: int = 50) -> list[TriggerRow]:
    """Gives who asked for the message: the first request, and the repeats that met it, up to `limit`."""
    return _rows(
        session,
        "send_id = :send_id ORDER BY id LIMIT :limit",
        account_id=account_id,
        send_id=send_id,
        limit=limit,
    )


def odd_of_type(session: Session, account_id: int, message_type: str, *, limit: int = 20) -> list[TriggerRow]:
    """Gives the newest requests of a type that were refused, would have been stopped, or had an odd key."""
    return _rows(
        session,
        f"message_type = :message_type AND {_ODD} ORDER BY id DESC LIMIT :limit",
        account_id=account_id,
        message_type=message_type,
        limit=limit,
    )


def _rows(session: Session, where: str, **values: Any) -> list[TriggerRow]:
    rows = session.execute(text(f"SELECT {_COLUMNS} FROM triggers WHERE account_id = :account_id AND {where}"), values)
    return [TriggerRow(**row._mapping) for row in rows]
