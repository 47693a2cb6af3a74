"""SQL that reads the audit log. What is written into it, store.record writes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from console.accounts.models import AuditEntry, User


@dataclass(frozen=True)
class EntryRow:
    """One thing that was done; `user_name` is None where no person of the account did it in the console."""

    id: int
    at: datetime
    user_name: str | None
    action: str
    object_id: str
    details: dict[str, Any]


def newest(session: Session, account_id: int, *, before: int | None, limit: int) -> list[EntryRow]:
    """Gives the account's entries, newest first, those before the number `before`."""
    query = (
        select(
            AuditEntry.id,
            AuditEntry.at,
            User.name.label("user_name"),
            AuditEntry.action,
            AuditEntry.object_id,
            AuditEntry.details,
        )
        .outerjoin(User, and_(User.account_id == AuditEntry.account_id, User.id == AuditEntry.user_id))
        .where(AuditEntry.account_id == account_id)
    )
    if before is not None:
        query = query.where(AuditEntry.id < before)
    rows = session.execute(query.order_by(AuditEntry.id.desc()).limit(limit))
    return [EntryRow(**row._mapping) for row in rows]
