"""SQL of API keys. What a key looks like and who may make one belongs to keys.py."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, insert, select, text, update
from sqlalchemy.orm import Session

from console.accounts.models import ApiKey, User


@dataclass(frozen=True)
class KeyRow:
    """A key as screens and commands show it."""

    id: int
    name: str
    scopes: list[str]
    calls_per_minute: int
    created_at: datetime
    created_by_name: str | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    @property
    def prefix(self) -> str:
        """How the key begins, by which its owner knows it again."""
        return f"so_{self.id}_"


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Who calls: a key that works, and its account."""

    account_id: int
    key_id: int
    scopes: frozenset[str]
    calls_per_minute: int


def insert_key(
    session: Session,
    account_id: int,
    *,
    name: str,
    secret_hash: str,
    scopes: list[str],
    calls_per_minute: int,
    created_by: int | None,
) -> int:
    """Adds a key; gives its number."""
    statement = insert(ApiKey).values(
        account_id=account_id,
        name=name,
        secret_hash=secret_hash,
        scopes=scopes,
        calls_per_minute=calls_per_minute,
        created_by=created_by,
    )
    return session.execute(statement.returning(ApiKey.id)).scalar_one()


def keys(session: Session, account_id: int) -> list[KeyRow]:
    """Gives the account's keys, those that work first, then the newest first."""
    columns = (
        ApiKey.id,
        ApiKey.name,
        ApiKey.scopes,
        ApiKey.calls_per_minute,
        ApiKey.created_at,
        User.name.label("created_by_name"),
        ApiKey.last_used_at,
        ApiKey.revoked_at,
    )
    rows = session.execute(
        select(*columns)
        .outerjoin(User, (User.account_id == ApiKey.account_id) & (User.id == ApiKey.created_by))
        .where(ApiKey.account_id == account_id)
        .order_by(ApiKey.revoked_at.is_not(None), ApiKey.id.desc())
    )
    return [KeyRow(**row._mapping) for row in rows]


def find_key(session: Session, account_id: int, key_id: int) -> KeyRow | None:
    """Gives one of the account's keys, None when there is none with this number."""
    return next((key for key in keys(session, account_id) if key.id == key_id), None)


def revoke(session: Session, account_id: int, *, key_id: int, revoked_by: int | None) -> bool:
    """Ends a key that works; gives whether there was one."""
    statement = (
        update(ApiKey)
        .where(ApiKey.account_id == account_id, ApiKey.id == key_id, ApiKey.revoked_at.is_(None))
        .values(revoked_at=func.now(), revoked_by=revoked_by)
        .returning(ApiKey.id)
    )
    return session.execute(statement).one_or_none() is not None


# The account is what is looked for here: the 256 random bits alone say which it is.
_HOLDER = text(
    "SELECT account_id, id, scopes, calls_per_minute,"
    "       COALESCE(last_used_at < now() - interval '1 minute', true) AS is_use_news"
    "  FROM api_keys WHERE secret_hash = :secret_hash AND id = :key_id AND revoked_at IS NULL"
)
_NOTE_USE = text(
    "UPDATE api_keys SET last_used_at = now() WHERE account_id = :account_id AND id = :key_id"
    "   AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')"
)


def holder(work: Session | Connection, *, key_id: int, secret_hash: str) -> KeyHolder | None:
    """Gives whose key it is, None when there is none that works; notes its use, at most once a minute."""
    row = work.execute(_HOLDER, {"key_id": key_id, "secret_hash": secret_hash}).one_or_none()
    if row is None:
        return None
    if row.is_use_news:
        work.execute(_NOTE_USE, {"account_id": row.account_id, "key_id": key_id})
    return KeyHolder(
        account_id=row.account_id,
        key_id=row.id,
        scopes=frozenset(row.scopes),
        calls_per_minute=row.calls_per_minute,
    )
