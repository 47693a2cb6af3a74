"""Whether a request is from whom it says: Standard Webhooks, a plain HMAC in a header, Basic. Pure.

The standardwebhooks package signs in the tests, and does not verify here: it wants the body to be UTF-8, where a
signature covers bytes, and one odd entry in the header makes it raise before it comes to the good one.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from console.errors import InvalidInput

SCHEMES = ("none", "standard_webhooks", "hmac_sha256", "basic")
ENCODINGS = ("hex", "base64")
# Either way; what Standard Webhooks' own libraries allow.
TOLERANCE_S = 300
# Entries of a signature header that are looked at: more than anybody rotates, fewer than cost time.
_MOST_SIGNATURES = 20

MISSING = "the signature is missing"
WRONG = "the signature is wrong"
TOO_OLD = "signed more than 5 minutes ago"
TOO_NEW = "signed more than 5 minutes in the future"
NO_PASSWORD = "user name and password are missing"
WRONG_PASSWORD = "user name or password is wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How an endpoint's requests are signed; `secrets` are those in force, newest first (basic: USER:PASSWORD)."""

    kind: str
    secrets: Sequence[str] = ()
    header: str = ""
    prefix: str = ""
    encoding: str = "hex"


def refusal(scheme: Scheme, *, headers: Mapping[str, str], body: bytes, now: datetime) -> str | None:
    """Gives why the request is refused, in words that are the same for all such requests; None: it is good.

    Takes:  headers by their names in lower case; body, the bytes as they came.
    Source: the Standard Webhooks specification, "Verifying webhook authenticity"; RFC 7617 for Basic.
    """
    match scheme.kind:
        case "standard_webhooks":
            return _standard_webhooks(scheme, headers, body, now=now)
        case "hmac_sha256":
            return _hmac(scheme, headers, body)
        case "basic":
            return _basic(scheme, headers)
        case _:
            return None


def check_secret(kind: str, secret: str) -> str:
    """Gives the secret as it is kept.

    Raises: InvalidInput naming secret, when the scheme can't use it.
    """
    text = secret.strip()
    if not text:
        raise InvalidInput("Give the secret that the sender signs with.", field="secret")
    if kind == "standard_webhooks" and not _key_of(text):
        raise InvalidInput(
            "A Standard Webhooks secret is whsec_ and base64, as the sender shows it. Copy it whole.", field="secret"
        )
    if kind == "basic" and (":" not in text or text.startswith(":") or text.endswith(":")):
        raise InvalidInput("For Basic, give the user name and the password with a colon between.", field="secret")
    return text


def _standard_webhooks(scheme: Scheme, headers: Mapping[str, str], body: bytes, *, now: datetime) -> str | None:
    # Svix, who wrote the specification's first form, still names its headers svix-*.
    event_id, signed_at, signatures = (
        headers.get(f"webhook-{name}") or headers.get(f"svix-{name}") or "" for name in ("id", "timestamp", "signature")
    )
    if not (event_id and signed_at and signatures):
        return MISSING
    if not re.fullmatch(r"[0-9]{1,12}", signed_at):
        return WRONG
    content = b".".join((event_id.encode("latin-1", "replace"), signed_at.encode(), body))
    given = [_unbase64(entry[3:]) for entry in signatures.split()[:_MOST_SIGNATURES] if entry.startswith("v1,")]
    keys = filter(None, map(_key_of, scheme.secrets))
    if not _any_equal(given, [_digest(key, content) for key in keys]):
        return WRONG
    # After the signature: only its owner learns that the clock is off.
    age_s = now.timestamp() - int(signed_at)
    if age_s > TOLERANCE_S:
        return TOO_OLD
    return TOO_NEW if age_s < -TOLERANCE_S else None


def _hmac(scheme: Scheme, headers: Mapping[str, str], body: bytes) -> str | None:
    signature = headers.get(scheme.header.lower(), "").strip()
    if not signature:
        return MISSING
    if scheme.prefix and not signature.lower().startswith(scheme.prefix.lower()):
        return WRONG
    text = signature[len(scheme.prefix) :].strip()
    given = _unhex(text) if scheme.encoding == "hex" else _unbase64(text)
    is_right = _any_equal([given], [_digest(secret.encode(), body) for secret in scheme.secrets])
    return None if is_right else WRONG


def _basic(scheme: Scheme, headers: Mapping[str, str]) -> str | None:
    kind, _, credentials = headers.get("authorization", "").strip().partition(" ")
    if kind.lower() != "basic" or not credentials.strip():
        return NO_PASSWORD
    given = _unbase64(credentials.strip())
    # Both as digests: of equal length, so that the time tells nothing of the password's.
    wanted = [_digest(b"basic", secret.encode()) for secret in scheme.secrets]
    return None if _any_equal([_digest(b"basic", given)], wanted) else WRONG_PASSWORD


def _any_equal(given: Sequence[bytes], wanted: Sequence[bytes]) -> bool:
    """Compares each with each to the end, whichever fits."""
    is_equal = False
    for one in given:
        for other in wanted:
            is_equal |= hmac.compare_digest(one, other)
    return is_equal


def _digest(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")


def _key_of(secret: str) -> bytes:
    """Gives a Standard Webhooks secret's bytes; none when it is not one."""
    return _unbase64(secret.removeprefix("whsec_"))


def _unbase64(text: str) -> bytes:
    """Gives the bytes, with or without padding, of either alphabet; none when it is not base64."""
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _unhex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
