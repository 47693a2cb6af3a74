"""The one door in: a request to send becomes a row of the ledger, or is told which row it repeats.

The database decides, in one function that SQL callers reach as well (migrations/sql/0007_accept_send.sql). Here
requests are checked for what only Python can: addresses, sizes, characters that PostgreSQL can't hold.
"""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from console.audience.address import parse
from console.errors import Conflict, InvalidInput
from console.sends import intake_store

PARAMS_BYTES_LIMIT = 100_000
PARTS_CHARS_LIMIT = 500_000
WORD_CHARS_LIMIT = 200
KEY_CHARS_LIMIT = 500
SOURCES = ("web_request", "webhook", "cron", "background_job", "manual_admin", "api", "sql", "import")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Finished parts; no template language is read in them. An empty text is made from the HTML."""

    subject: str
    html: str
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to send one message. Times are aware; without a dedupe key the message type's pattern makes it."""

    to: str
    message_type: str
    params: Mapping[str, Any] = field(default_factory=dict)
    rendered: Rendered | None = None
    template: str | None = None
    dedupe_key: str | None = None
    correlation_id: str | None = None
    request_id: str | None = None
    trigger_source: str = "api"
    code_path: str = ""
    event: str = ""
    entities: Mapping[str, str] = field(default_factory=dict)
    lane: str | None = None
    send_after: datetime | None = None
    expires_after: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of a request. `decision` as in the triggers table; `warnings`: key_looks_random, key_too_broad.

    `wakes` is the lane that a quiet caller still has to wake.
    """

    id: int
    status: str
    is_duplicate: bool
    decision: str
    message_id: str
    dedupe_key: str
    correlation_id: str
    warnings: tuple[str, ...] = ()
    wakes: str | None = None


class KeyConflict(Conflict):
    """The key is taken by a message with other content; `differs` names what: to, message_type, params, rendered."""

    def __init__(self, *, dedupe_key: str, first_id: int, differs: tuple[str, ...]):
        super().__init__(
            f"The dedupe key {dedupe_key!r} is taken by message {first_id}, which differs in {', '.join(differs)}."
            " Name the event more exactly in the key, or send what you sent before."
        )
        self.first_id = first_id
        self.differs = differs


def accept(
    session: Session, account_id: int, request: Request, *, is_quiet: bool = False, is_alone: bool = False
) -> Receipt:
    """Takes the request: makes its message, or gives the one that holds its key; the trigger is on record either way.

    Takes:  is_quiet, when the caller will wake the lane in the receipt's `wakes` after its commit (see `wake`).
            is_alone, when the transaction has nothing else to keep and is rolled back after InvalidInput: spares a
            savepoint, which is two ways to the database and back.
    Raises: InvalidInput naming the field, with nothing written; KeyConflict, after which the caller commits, since the
            trigger of the refused request is written.
    """
    found = _decide(session, account_id, request, is_quiet=is_quiet, is_alone=is_alone)
    if found["decision"] == "refused":
        raise KeyConflict(dedupe_key=found["dedupe_key"], first_id=found["first_id"], differs=tuple(found["differs"]))
    return Receipt(
        id=found["id"],
        status=found["status"],
        is_duplicate=found["is_duplicate"],
        decision=found["decision"],
        message_id=found["message_id"],
        dedupe_key=found["dedupe_key"],
        correlation_id=found["correlation_id"],
        warnings=tuple(found["warnings"]),
        wakes=found["wakes"],
    )


def check(session: Session, account_id: int, request: Request) -> Receipt:
    """Gives what `accept` would give now, and writes nothing. Raises as `accept` does."""
    trial = session.begin_nested()
    try:
        return accept(session, account_id, request)
    finally:
        trial.rollback()


def wake(work: Session | Connection, receipt: Receipt) -> None:
    """Wakes the workers for a message that was taken quietly; in a transaction of its own, which waits for no disk.

    Who notifies commits behind all others who do. When this one waits for no disk, that costs nobody anything.
    """
    if receipt.wakes is not None:
        intake_store.wake(work, receipt.wakes)


def _decide(session: Session, account_id: int, request: Request, *, is_quiet: bool, is_alone: bool) -> dict[str, Any]:
    document = _document(request)
    try:
        with nullcontext() if is_alone else session.begin_nested():
            return intake_store.decide(session, account_id, document, is_quiet=is_quiet)
    except DBAPIError as error:
        refused = intake_store.refusal(error)
        if refused is None:
            raise
        raise refused from None


def _document(request: Request) -> str:
    """Gives the request as the database function reads it."""
    try:
        address = parse(request.to)
    except InvalidInput as error:
        raise InvalidInput(str(error), field="to") from None
    if request.trigger_source not in SOURCES:
        raise InvalidInput(f"The trigger source must be one of {', '.join(SOURCES)}.", field="trigger_source")
    words = {
        "message_type": request.message_type,
        "template": request.template,
        "correlation_id": request.correlation_id,
        "request_id": request.request_id,
        "code_path": request.code_path,
        "event": request.event,
        "lane": request.lane,
    }
    for name, value in words.items():
        _require_length(name, value or "", most=WORD_CHARS_LIMIT)
    _require_length("dedupe_key", request.dedupe_key or "", most=KEY_CHARS_LIMIT)
    for name in ("entities", "metadata"):
        _require_length(name, json.dumps(dict(getattr(request, name))), most=10 * WORD_CHARS_LIMIT)
    for name in ("send_after", "expires_after"):
        moment = getattr(request, name)
        if moment is not None and moment.tzinfo is None:
            raise InvalidInput("The time needs a zone, such as 2026-12-01T10:00:00Z.", field=name)
    document = words | {
        "email": address.email,
        "email_lower": address.email_lower,
        "params": dict(request.params),
        "rendered": _parts(request.rendered),
        "dedupe_key": request.dedupe_key,
        "trigger_source": request.trigger_source,
        "entities": dict(request.entities),
        "metadata": dict(request.metadata),
        "send_after": request.send_after and request.send_after.isoformat(),
        "expires_after": request.expires_after and request.expires_after.isoformat(),
    }
    return _kept(document)


def _parts(rendered: Rendered | None) -> dict[str, str] | None:
    if rendered is None:
        return None
    parts = {"subject": rendered.subject, "html": rendered.html, "text": rendered.text or ""}
    for name, value in parts.items():
        _require_length(f"rendered.{name}", value, most=PARTS_CHARS_LIMIT)
    for name in ("subject", "html"):
        if not parts[name].strip():
            raise InvalidInput(f"The {name} is empty.", field=f"rendered.{name}")
    if any(character in rendered.subject for character in "\r\n"):
        raise InvalidInput("The subject holds a line break; take it out.", field="rendered.subject")
    return parts


def _kept(document: dict[str, Any]) -> str:
    """Gives the document as JSON that PostgreSQL can hold."""
    for name, value in document.items():
        try:
            written = json.dumps(value, allow_nan=False, ensure_ascii=False)
            written.encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"The value can't be written as JSON: {error}.", field=name) from None
        if "\\u0000" in written:
            raise InvalidInput("There is a NUL character in it; take it out.", field=name)
        if name == "params" and len(written) > PARAMS_BYTES_LIMIT:
            raise InvalidInput(f"The parameters may have {PARAMS_BYTES_LIMIT:,} bytes.", field=name)
    return json.dumps({name: value for name, value in document.items() if value is not None}, allow_nan=False)


def _require_length(name: str, value: str, *, most: int) -> None:
    if len(value) > most:
        raise InvalidInput(f"It has {len(value):,} characters; it may have {most:,}.", field=name)
