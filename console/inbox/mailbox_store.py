"""SQL of bounce mailboxes: whose turn it is, how far each is read, what stood in the way."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from console.inbox.models import BounceMailbox

# Moved on before the visit: a process that dies in one leaves the mailbox to the next after the lease.
_TAKE_DUE = text(
    """
    UPDATE bounce_mailboxes m
       SET next_visit_at = now() + make_interval(secs => :lease_s)
     WHERE (m.account_id) = (SELECT account_id FROM bounce_mailboxes WHERE next_visit_at <= now()
                              ORDER BY next_visit_at, account_id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING m.account_id, m.endpoint_id, m.url, m.sealed_password, m.uid_validity, m.last_uid
    """
)

# A slower process that reads the same mailbox must not move it back.
_ADVANCE = text(
    """
    UPDATE bounce_mailboxes
       SET last_uid = CASE WHEN uid_validity = :uid_validity THEN greatest(last_uid, :uid) ELSE :uid END,
           uid_validity = :uid_validity
     WHERE account_id = :account_id
    """
)

_END_VISIT = text(
    """
    UPDATE bounce_mailboxes
       SET next_visit_at = now() + make_interval(secs => :wait_s), visited_at = now(), error = :error
     WHERE account_id = :account_id
    """
)


@dataclass(frozen=True, slots=True)
class Due:
    """A mailbox to be visited now."""

    account_id: int
    endpoint_id: int
    url: str
    sealed_password: str
    uid_validity: int
    last_uid: int


@dataclass(frozen=True, slots=True)
class MailboxRow:
    """A mailbox as people see it."""

    url: str
    endpoint_id: int
    visited_at: datetime | None
    error: str


def take_due(session: Session, *, lease_s: float) -> Due | None:
    """Takes a mailbox that is due, of whichever account; nobody else does within the lease. None: none is due."""
    row = session.execute(_TAKE_DUE, {"lease_s": lease_s}).one_or_none()
    return None if row is None else Due(**row._mapping)


def advance(session: Session, account_id: int, *, uid_validity: int, uid: int) -> None:
    """Notes that the mail with this UID, and all before it, are stored."""
    session.execute(_ADVANCE, {"account_id": account_id, "uid_validity": uid_validity, "uid": uid})


def end_visit(session: Session, account_id: int, *, error: str, wait_s: float) -> None:
    """Notes how a visit ended, and when the next one is due."""
    session.execute(_END_VISIT, {"account_id": account_id, "error": error, "wait_s": wait_s})


def mailbox_of(session: Session, account_id: int) -> MailboxRow | None:
    """Gives the account's mailbox, None when it has none."""
    columns = (BounceMailbox.url, BounceMailbox.endpoint_id, BounceMailbox.visited_at, BounceMailbox.error)
    row = session.execute(select(*columns).where(BounceMailbox.account_id == account_id)).one_or_none()
    return None if row is None else MailboxRow(**row._mapping)


def put_mailbox(session: Session, account_id: int, *, endpoint_id: int, url: str, sealed_password: str) -> None:
    """Sets the account's mailbox; it is read from its beginning, at once."""
    values = {
        "endpoint_id": endpoint_id,
        "url": url,
        "sealed_password": sealed_password,
        "uid_validity": 0,
        "last_uid": 0,
        "next_visit_at": func.now(),
        "visited_at": None,
        "error": "",
    }
    statement = insert(BounceMailbox).values(account_id=account_id, **values)
    session.execute(statement.on_conflict_do_update(index_elements=["account_id"], set_=values))


def delete_mailbox(session: Session, account_id: int) -> bool:
    """Forgets the account's mailbox, not what was stored from it; tells whether there was one."""
    statement = delete(BounceMailbox).where(BounceMailbox.account_id == account_id)
    return session.execute(statement.returning(BounceMailbox.account_id)).one_or_none() is not None
