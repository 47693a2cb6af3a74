"""Rules of endpoints: who may make them, what they take, their tokens and secrets. SQL is in endpoint_store.py."""

import hashlib
import re
import secrets
from dataclasses import dataclass

from sqlalchemy.orm import Session

from console.accounts import service as accounts
from console.accounts import store as accounts_store
from console.errors import Conflict, InvalidInput
from console.inbox import endpoint_store, paths, signatures
from console.inbox.arrival import Places
from console.inbox.models import Endpoint
from console.inbox.signatures import Scheme
from console.secrets import seal, unseal

# While the sender changes from one secret to the next, both are good; more are leftovers.
MOST_SECRETS = 3
TOKEN_BYTES = 32
NAME_HINT = "1 to 63 of the characters a-z, 0-9, - and _, with a letter or digit first"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
# A header field's name (RFC 9110, 5.6.2), of a sensible length.
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How an endpoint is to be; `secret` None: as before."""

    scheme: str = "none"
    secret: str | None = None
    signature_header: str = ""
    signature_prefix: str = ""
    signature_encoding: str = "hex"
    event_id_header: str = "webhook-id"
    event_id_path: str = "$.id"
    event_type_header: str = ""
    event_type_path: str = "$.type"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A new address: the token is known now, and never again."""

    endpoint_id: int
    name: str
    token: str

    def url(self, base_url: str) -> str:
        return f"{base_url}/inbox/{self.name}/{self.token}"


def hash_of(token: str) -> str:
    """Gives what is kept of a token: 256 random bits need no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def check_name(name: str, *, what: str) -> str:
    """Gives the name of an endpoint or a rule as it is kept.

    Raises: InvalidInput naming name.
    """
    text = name.strip()
    if not _NAME.fullmatch(text):
        raise InvalidInput(f"{what} has {NAME_HINT}; {name[:80]!r} has not.", field="name")
    return text


def add_endpoint(
    session: Session, account_id: int, *, user_id: int | None, name: str, wanted: Wanted, secret_key: str
) -> Made:
    """Makes an endpoint and its address.

    Takes:  user_id, None for the command line.
    Raises: InvalidInput naming a field of Wanted, or name; Conflict when the name is taken; Forbidden.
    """
    _require_admin(session, account_id, user_id, doing="make endpoints")
    name = check_name(name, what="An endpoint's name")
    columns = _checked(wanted)
    if wanted.scheme != "none":
        sealed = seal(secret_key, signatures.check_secret(wanted.scheme, wanted.secret or ""))
        columns["sealed_secrets"] = [sealed]
    token = secrets.token_urlsafe(TOKEN_BYTES)
    columns |= {"name": name, "token_hash": hash_of(token), "created_by": user_id}
    endpoint_id = endpoint_store.insert_endpoint(session, account_id, columns=columns)
    if endpoint_id is None:
        raise Conflict(f"The account has an endpoint {name!r} already; choose another name.")
    _record(session, account_id, user_id, "inbox.endpoint.add", endpoint_id, name=name, scheme=wanted.scheme)
    return Made(endpoint_id=endpoint_id, name=name, token=token)


def edit_endpoint(
    session: Session, account_id: int, endpoint_id: int, *, user_id: int | None, wanted: Wanted, secret_key: str
) -> None:
    """Changes how an endpoint's events are verified and read. A new secret is good beside the ones before it.

    Raises: InvalidInput, Forbidden, NotFound.
    """
    _require_admin(session, account_id, user_id, doing="change endpoints")
    endpoint = endpoint_store.show_endpoint(session, account_id, endpoint_id)
    columns = _checked(wanted)
    # Another scheme reads secrets in another way; those of the old one go.
    kept = list(endpoint.sealed_secrets) if wanted.scheme == endpoint.scheme else []
    if wanted.scheme != "none" and (wanted.secret or not kept):
        kept = [seal(secret_key, signatures.check_secret(wanted.scheme, wanted.secret or "")), *kept]
    columns["sealed_secrets"] = kept[:MOST_SECRETS] if wanted.scheme != "none" else []
    endpoint_store.update_endpoint(session, account_id, endpoint_id, columns=columns)
    has_new = bool(wanted.secret)
    _record(session, account_id, user_id, "inbox.endpoint.edit", endpoint_id, scheme=wanted.scheme, new_secret=has_new)


def drop_old_secrets(session: Session, account_id: int, endpoint_id: int, *, user_id: int | None) -> None:
    """Ends a change of secrets: only the newest one is good from now on.

    Raises: Forbidden, NotFound.
    """
    _require_admin(session, account_id, user_id, doing="change endpoints")
    endpoint = endpoint_store.show_endpoint(session, account_id, endpoint_id)
    columns = {"sealed_secrets": list(endpoint.sealed_secrets[:1])}
    endpoint_store.update_endpoint(session, account_id, endpoint_id, columns=columns)
    _record(session, account_id, user_id, "inbox.endpoint.drop_secrets", endpoint_id)


def renew_token(session: Session, account_id: int, endpoint_id: int, *, user_id: int | None) -> Made:
    """Gives the endpoint a new address; the old one is unknown from then on.

    Raises: Forbidden, NotFound.
    """
    _require_admin(session, account_id, user_id, doing="change endpoints")
    endpoint = endpoint_store.show_endpoint(session, account_id, endpoint_id)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    endpoint_store.update_endpoint(session, account_id, endpoint_id, columns={"token_hash": hash_of(token)})
    _record(session, account_id, user_id, "inbox.endpoint.renew", endpoint_id)
    return Made(endpoint_id=endpoint_id, name=endpoint.name, token=token)


def open_or_close(session: Session, account_id: int, endpoint_id: int, *, user_id: int | None, is_active: bool) -> None:
    """Lets an endpoint take events, or take none: then its address is as unknown as a wrong one.

    Raises: Forbidden, NotFound.
    """
    _require_admin(session, account_id, user_id, doing="change endpoints")
    endpoint_store.show_endpoint(session, account_id, endpoint_id)
    endpoint_store.update_endpoint(session, account_id, endpoint_id, columns={"is_active": is_active})
    _record(session, account_id, user_id, "inbox.endpoint.open" if is_active else "inbox.endpoint.close", endpoint_id)


def scheme_of(endpoint: Endpoint, *, secret_key: str) -> Scheme:
    """Gives how the endpoint's requests are signed, secrets and all.

    Raises: ConfigError when they were sealed with another key.
    """
    return Scheme(
        kind=endpoint.scheme,
        secrets=[unseal(secret_key, sealed) for sealed in endpoint.sealed_secrets],
        header=endpoint.signature_header,
        prefix=endpoint.signature_prefix,
        encoding=endpoint.signature_encoding,
    )


def places_of(endpoint: Endpoint) -> Places:
    """Gives where the endpoint's events carry their id and type."""
    return Places(
        id_header=endpoint.event_id_header,
        id_path=endpoint.event_id_path,
        type_header=endpoint.event_type_header,
        type_path=endpoint.event_type_path,
    )


def _checked(wanted: Wanted) -> dict[str, object]:
    if wanted.scheme not in signatures.SCHEMES:
        raise InvalidInput(f"The scheme is one of {', '.join(signatures.SCHEMES)}.", field="scheme")
    if wanted.signature_encoding not in signatures.ENCODINGS:
        raise InvalidInput("The signature is written in hex or base64.", field="signature_encoding")
    is_hmac = wanted.scheme == "hmac_sha256"
    if is_hmac and not wanted.signature_header.strip():
        raise InvalidInput("Name the header that carries the signature.", field="signature_header")
    prefix = wanted.signature_prefix.strip() if is_hmac else ""
    if len(prefix) > 50 or not prefix.isascii() or not paths.is_plain(prefix):
        raise InvalidInput("The prefix has at most 50 characters of ASCII, such as sha256=.", field="signature_prefix")
    return {
        "scheme": wanted.scheme,
        "signature_header": _header(wanted.signature_header, "signature_header") if is_hmac else "",
        "signature_prefix": prefix,
        "signature_encoding": wanted.signature_encoding if is_hmac else "hex",
        "event_id_header": _header(wanted.event_id_header, "event_id_header"),
        "event_id_path": paths.check_path(wanted.event_id_path, field="event_id_path"),
        "event_type_header": _header(wanted.event_type_header, "event_type_header"),
        "event_type_path": paths.check_path(wanted.event_type_path, field="event_type_path"),
    }


def _header(name: str, field: str) -> str:
    text = name.strip().lower()
    if text and not _HEADER.fullmatch(text):
        raise InvalidInput(f"{name[:80]!r} is no header's name.", field=field)
    return text


def _require_admin(session: Session, account_id: int, user_id: int | None, *, doing: str) -> None:
    """The command line acts without a user: who may run it has the database anyway."""
    if user_id is not None:
        accounts.acting_user(session, account_id, user_id, "admin", doing=doing)


def _record(
    session: Session, account_id: int, user_id: int | None, action: str, object_id: int, **details: object
) -> None:
    accounts_store.record(
        session, account_id, user_id=user_id, action=action, object_id=object_id, details=dict(details)
    )
