"""The signed tokens in unsubscribe links. Pure: who may leave what is in the token, nobody needs to sign in.

A token names a subscriber's place on a list and the send that carried it, 32 bytes, and a seal of 16 bytes over them:
keyed BLAKE2b (RFC 7693, 2.9), which costs a fifth of an HMAC. It never ends: a link in an old mail must work.
"""

import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b, sha512

from console.errors import InvalidInput

_IDS = struct.Struct(">qqqq")
_SEAL_BYTES = 16
_TOKEN_LENGTH = 64  # (32 + 16) bytes in base64, without padding
# Keeps the seals apart from everything else that is signed with the same key.
_PURPOSE = b"unsubscribe.1"


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a token entitles to: leave this list as this subscriber."""

    account_id: int
    list_id: int
    subscriber_id: int
    send_id: int


def make_token(secret_key: str, *, account_id: int, list_id: int, subscriber_id: int, send_id: int) -> str:
    """Gives the token: 64 characters of A-Z, a-z, 0-9, - and _. It is made for every message."""
    ids = _IDS.pack(account_id, list_id, subscriber_id, send_id)
    return urlsafe_b64encode(ids + _seal(secret_key, ids)).decode("ascii")


def read_token(secret_key: str, token: str) -> Ticket:
    """Gives what the token says.

    Raises: InvalidInput (field token) when we did not make it, or made it with another key.
    """
    wrong = InvalidInput("This unsubscribe link is not complete or not ours.", field="token")
    if len(token) != _TOKEN_LENGTH or not token.isascii():
        raise wrong
    try:
        content = urlsafe_b64decode(token)
    except ValueError:
        raise wrong from None
    ids, seal = content[: _IDS.size], content[_IDS.size :]
    if not hmac.compare_digest(seal, _seal(secret_key, ids)):
        raise wrong
    return Ticket(*_IDS.unpack(ids))


def _seal(secret_key: str, ids: bytes) -> bytes:
    seal = _keyed(secret_key).copy()
    seal.update(ids)
    return seal.digest()


@lru_cache(maxsize=4)
def _keyed(secret_key: str) -> "blake2b":
    """Gives the hash that has taken in the key, to be copied: that is half of the work."""
    return blake2b(key=sha512(secret_key.encode()).digest(), person=_PURPOSE, digest_size=_SEAL_BYTES)
