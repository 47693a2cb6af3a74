"""Passwords: hashes (argon2id), checks of equal effort, and generated ones. Pure but for the random source."""

import secrets
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from console.errors import InvalidInput

SHORTEST = 10
LONGEST = 1000  # hashing costs by length too: an endless password must not keep the server busy

# The second of the settings that OWASP's Password Storage Cheat Sheet calls equal: little memory, 2 rounds.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


def hash_password(password: str) -> str:
    """Gives the argon2id hash, with its parameters and salt in it.

    Raises: InvalidInput when the password is too short, too long, or holds what has no encoding (lone surrogates).
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidInput(f"The password must have {SHORTEST} to {LONGEST} characters.", field="password")
    try:
        return _HASHER.hash(password)
    except UnicodeEncodeError:
        raise InvalidInput("The password is not encoded in UTF-8.", field="password") from None


def is_right(password: str, password_hash: str | None) -> bool:
    """Tells whether the password fits the hash; takes as long when there is no hash (no such user)."""
    try:
        return _HASHER.verify(password_hash or _nobodys_hash(), password[:LONGEST]) and password_hash is not None
    except (VerificationError, InvalidHashError):
        return False


def renewed(password: str, password_hash: str) -> str:
    """Gives the hash itself, or one made anew when the cost has been raised since it was made."""
    return _HASHER.hash(password) if _HASHER.check_needs_rehash(password_hash) else password_hash


def generate() -> str:
    """Gives a password of 20 characters (120 bits)."""
    return secrets.token_urlsafe(15)


@lru_cache(maxsize=1)
def _nobodys_hash() -> str:
    return _HASHER.hash(secrets.token_urlsafe(15))
