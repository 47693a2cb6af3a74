"""What is kept of a request that brought an event: its id, its type, its headers without secrets. Pure."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from console.errors import InvalidInput
from console.inbox import paths

LONGEST_ID = 255
LONGEST_TYPE = 200
LONGEST_HEADER = 2000
MOST_HEADERS = 100
MASK = "***"

# Signatures are no secrets: who has the key can make them, and they tell nothing of it.
_SECRET_HEADER = re.compile(r"authorization|cookie|token|secret|password|api-?key", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where an endpoint's events carry id and type: a header, looked at first, and a JSON path; empty: not there."""

    id_header: str
    id_path: str
    type_header: str
    type_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request with an event, ready to be stored."""

    event_id: str
    id_source: str
    event_type: str
    body: bytes
    body_sha256: str
    headers: Mapping[str, str]
    request_id: str
    correlation_id: str


def read_request(
    *, headers: Mapping[str, str], body: bytes, places: Places, request_id: str, correlation_id: str
) -> Arrival:
    """Gives what is stored of a request. Without an id the body's hash is one: the same body is the same event.

    Takes: headers by their names in lower case. Whatever the body is, it is kept; that it is no JSON shows later.
    """
    document: Any = paths.NOTHING
    if places.id_path or places.type_path:
        try:
            document = paths.parse_body(body)
        except InvalidInput:
            document = paths.NOTHING
    body_sha256 = hashlib.sha256(body).hexdigest()
    id_source, event_id = "header", _label(headers.get(places.id_header.lower()) if places.id_header else None)
    if not event_id:
        id_source, event_id = "body", _label(_at(document, places.id_path))
    if not event_id:
        id_source, event_id = "hash", f"sha256:{body_sha256}"
    if len(event_id) > LONGEST_ID:
        event_id = f"sha256:{hashlib.sha256(event_id.encode()).hexdigest()}"
    in_header = headers.get(places.type_header.lower()) if places.type_header else None
    event_type = _label(in_header) or _label(_at(document, places.type_path))
    return Arrival(
        event_id=event_id,
        id_source=id_source,
        event_type=event_type[:LONGEST_TYPE],
        body=body,
        body_sha256=body_sha256,
        headers=_kept(headers.items()),
        request_id=request_id,
        correlation_id=correlation_id,
    )


def _at(document: Any, path: str) -> Any:
    return paths.read(document, path) if path and document is not paths.NOTHING else None


def _label(value: Any) -> str:
    """Gives an id or type as text; empty when it is neither text nor a whole number."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    text = str(value).strip()
    if paths.is_plain(text):
        return text
    # Two that differ stay two, which a replacement character would make one.
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _kept(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    kept = {}
    for name, value in list(headers)[:MOST_HEADERS]:
        text = MASK if _SECRET_HEADER.search(name) else value[:LONGEST_HEADER]
        kept[_plain(name[:LONGEST_ID])] = _plain(text)
    return kept


def _plain(text: str) -> str:
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
