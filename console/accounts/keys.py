"""API keys: what they look like, how they are made, known again and revoked. SQL is in key_store.py.

A key is so_<number>_<256 random bits>. The prefix so_<number>_ may be shown; the bits are shown once and kept as a
hash. They need no salt and no slow hash: nobody guesses 256 bits.
"""

import hashlib
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from console.accounts import key_store, store
from console.accounts.key_store import KeyHolder
from console.accounts.models import SCOPES
from console.errors import Conflict, InvalidInput, NotFound

CALLS_PER_MINUTE = 6000
MOST_CALLS_PER_MINUTE = 1_000_000
LONGEST_NAME = 100

_KEY = re.compile(r"so_([1-9][0-9]{0,17})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class NewKey:
    """A key that has just been made; the only moment at which its text is known."""

    id: int
    text: str

    def __repr__(self) -> str:
        return f"NewKey(id={self.id})"


def add_key(
    session: Session,
    account_id: int,
    *,
    scopes: Collection[str],
    name: str = "",
    calls_per_minute: int = CALLS_PER_MINUTE,
    user_id: int | None = None,
) -> NewKey:
    """Makes a key for the account's programs.

    Takes:  scopes, one or more of accounts.models.SCOPES; name, what it is for.
    Raises: InvalidInput naming scopes, name or calls_per_minute.
    """
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise InvalidInput(
            f"Scopes are {', '.join(SCOPES)}"
            + (f"; {', '.join(unknown)} is none of them." if unknown else "; give one."),
            field="scopes",
        )
    if not 1 <= calls_per_minute <= MOST_CALLS_PER_MINUTE:
        raise InvalidInput(f"Calls per minute are 1 to {MOST_CALLS_PER_MINUTE:,}.", field="calls_per_minute")
    cleaned = name.strip()
    if len(cleaned) > LONGEST_NAME or "\x00" in cleaned:
        raise InvalidInput(f"The name has at most {LONGEST_NAME} characters, without NUL.", field="name")
    secret = secrets.token_urlsafe(32)
    granted = [scope for scope in SCOPES if scope in scopes]
    key_id = key_store.insert_key(
        session,
        account_id,
        name=cleaned,
        secret_hash=_hash(secret),
        scopes=granted,
        calls_per_minute=calls_per_minute,
        created_by=user_id,
    )
    store.record(
        session,
        account_id,
        user_id=user_id,
        action="api_key.add",
        object_id=key_id,
        details={"name": cleaned, "scopes": granted, "calls_per_minute": calls_per_minute},
    )
    return NewKey(id=key_id, text=f"so_{key_id}_{secret}")


def revoke_key(session: Session, account_id: int, key_id: int, *, user_id: int | None = None) -> None:
    """Ends a key: from the next call on it is refused.

    Raises: NotFound, Conflict when it is revoked already.
    """
    if key_store.revoke(session, account_id, key_id=key_id, revoked_by=user_id):
        store.record(session, account_id, user_id=user_id, action="api_key.revoke", object_id=key_id)
        return
    if key_store.find_key(session, account_id, key_id) is None:
        raise NotFound(f"There is no API key {key_id} in this account.")
    raise Conflict(f"The API key {key_id} is revoked already.")


def key_holder(work: Session | Connection, presented: str) -> KeyHolder | None:
    """Gives whose key was presented, None when it is none that works."""
    match = _KEY.fullmatch(presented)
    return key_store.holder(work, key_id=int(match[1]), secret_hash=_hash(match[2])) if match else None


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
