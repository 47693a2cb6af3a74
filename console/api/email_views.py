"""Messages by the API: handing them in, alone or in batches, finding them again, cancelling them."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from flask import Response
from sqlalchemy.orm import Session

from console.api.gate_views import Call, Refusal, charge, location, reply, serves
from console.api.paging import page_of, room
from console.api.reading import Checker, Malformed, moment
from console.api.schemas import COMPONENTS
from console.audience.address import parse
from console.errors import FieldError, InvalidInput, NotFound
from console.sends import listing_store, search_store, type_store
from console.sends.cancelling import OtherState, cancel
from console.sends.intake import KeyConflict, Receipt, Request, accept, wake
from console.sends.listing_store import ListedSend, Wanted
from console.web import problem_documents
from console.web.correlation import correlation_id, request_id
from console.web.database import statements, transaction

_EMAIL_REQUEST = Checker(COMPONENTS["EmailRequest"])
# A string of structured fields (RFC 9651, 3.3.3), which draft-ietf-httpapi-idempotency-key-header asks for.
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])+)"')


@dataclass(frozen=True, slots=True)
class _Result:
    """What became of one message: a receipt, or a problem document, with its status."""

    status: int
    receipt: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None


@serves("send_email")
def send_email(call: Call) -> Response:
    """Hands a message in: 202 for a new one, 200 for one that was there, 409 when its key is another's."""
    result = _hand_in(call, call.body, header_key=_key_of(call.headers.get("Idempotency-Key")))
    if result.receipt is None:
        assert result.problem is not None
        return problem_documents.answer(result.problem)
    headers = {"Location": location("emails", result.receipt["id"])}
    if result.status == 200:
        headers["Idempotent-Replayed"] = "true"
    return reply(result.receipt, status=result.status, headers=headers)


@serves("send_emails")
def send_emails(call: Call) -> Response:
    """Hands up to 500 messages in, each by a transaction of its own, so that none undoes or holds up another."""
    bodies = call.body["emails"]
    charge(call.holder, calls=len(bodies) - 1)
    results = []
    for body in bodies:
        result = _checked(call, body)
        told = {"email": result.receipt} if result.receipt else {"problem": result.problem}
        results.append({"status": result.status, **told})
    return reply({"results": results})


@serves("list_emails")
def list_emails(call: Call) -> Response:
    """Gives messages, the newest first; what is no address has none."""
    query, (limit, before_id) = call.query, room(call.query)
    try:
        email_lower = parse(query["recipient"]).email_lower if "recipient" in query else None
    except InvalidInput:
        return reply(page_of([], limit=limit))
    wanted = Wanted(
        email_lower=email_lower,
        status=query.get("state"),
        message_type=query.get("message_type"),
        correlation_id=query.get("correlation_id"),
    )
    with transaction() as session:
        found = listing_store.page(session, call.holder.account_id, wanted, before_id=before_id, limit=limit)
    return reply(page_of([_document(row) for row in found.rows], limit=limit, reads_on_at=found.looked_back_to))


@serves("show_email")
def show_email(call: Call, email_id: int) -> Response:
    """Gives a message with its attempts and triggers."""
    account_id = call.holder.account_id
    with transaction() as session:
        send = listing_store.show(session, account_id, email_id)
        attempts = search_store.show_send(session, account_id, email_id).attempts
        triggers = listing_store.triggers_of(session, account_id, email_id)
    shown = ("attempt_no", "outcome", "provider", "phase", "code", "reply", "handed_over_at", "ended_at")
    return reply(
        _document(send)
        | {
            "attempt_list": [{name: getattr(attempt, name) for name in shown} for attempt in attempts],
            "triggers": [asdict(trigger) for trigger in triggers],
        }
    )


@serves("cancel_email")
def cancel_email(call: Call, email_id: int) -> Response:
    """Cancels a message that waits; 409 with its state when it does not any more."""
    try:
        with transaction() as session:
            return reply(_document(cancel(session, call.holder.account_id, email_id, api_key_id=call.holder.key_id)))
    except OtherState as error:
        raise Refusal(409, str(error), kind="other-state", id=email_id, state=error.send.status) from None


def _checked(call: Call, body: Any) -> _Result:
    try:
        _EMAIL_REQUEST.check(body)
    except Malformed as error:
        return _refused(400, str(error), kind="malformed", errors=error.errors)
    return _hand_in(call, body)


def _hand_in(call: Call, body: Mapping[str, Any], *, header_key: str | None = None) -> _Result:
    """Hands one message in by a transaction of its own."""
    try:
        with transaction() as session:
            if header_key is not None:
                body = _with_key(session, call, body, header_key=header_key)
            # Not raised through the block: the trigger of a refused request is to be committed.
            try:
                receipt = accept(session, call.holder.account_id, _request(call, body), is_quiet=True, is_alone=True)
            except KeyConflict as error:
                return _refused(
                    409, str(error), kind="key-conflict", id=error.first_id, differs=list(error.differs),
                    errors=[FieldError("dedupe_key", "belongs to a message with other content")],
                )  # fmt: skip
    except InvalidInput as error:
        is_unknown = error.field == "message_type"
        return _refused(
            404 if is_unknown else 422,
            str(error),
            kind="unknown-message-type" if is_unknown else "refused",
            errors=[FieldError(error.field or "body", str(error))],
        )
    if receipt.wakes is not None:
        with statements() as connection:
            wake(connection, receipt)
    return _Result(status=200 if receipt.is_duplicate else 202, receipt=_receipt(receipt))


def _refused(status: int, detail: str, **members: Any) -> _Result:
    return _Result(status=status, problem=problem_documents.members(status, detail, **members))


def _request(call: Call, body: Mapping[str, Any]) -> Request:
    return Request(
        to=body["to"],
        message_type=body["message_type"],
        params=body.get("params", {}),
        dedupe_key=body.get("dedupe_key"),
        correlation_id=body.get("correlation_id") or correlation_id(),
        request_id=request_id(),
        trigger_source=body.get("trigger_source", "api"),
        code_path=body.get("code_path") or f"api key so_{call.holder.key_id}_",
        event=body.get("event", ""),
        entities={name: str(_whole(value)) for name, value in body.get("entities", {}).items()},
        metadata=body.get("metadata", {}),
        send_after=_moment(body, "send_after"),
        expires_after=_moment(body, "expires_after"),
    )


def _key_of(header: str | None) -> str | None:
    """Gives the key in the header, which may stand in quotes."""
    quoted = _QUOTED.fullmatch(header or "")
    return re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else header


def _with_key(session: Session, call: Call, body: Mapping[str, Any], *, header_key: str) -> Mapping[str, Any]:
    """Gives the body with the key of the header.

    Raises: InvalidInput when it contradicts the body's, after a message type that there is not.
    """
    if body.get("dedupe_key") in (None, header_key):
        return {**body, "dedupe_key": header_key}
    try:
        type_store.show(session, call.holder.account_id, body["message_type"])
    except NotFound as error:
        raise InvalidInput(str(error), field="message_type") from None
    raise InvalidInput(
        "The header Idempotency-Key and the body's dedupe_key are the same thing, but differ here: give one of them.",
        field="Idempotency-Key",
    )


def _moment(body: Mapping[str, Any], name: str) -> datetime | None:
    given = body.get(name)
    return moment(given) if given else None


def _whole(value: str | float) -> str | int:
    # 987.0 is a whole number in JSON Schema, and the same one as 987.
    return int(value) if isinstance(value, float) else value


def _receipt(receipt: Receipt) -> dict[str, Any]:
    document = {
        "id": receipt.id,
        "status": receipt.status,
        "duplicate": receipt.is_duplicate,
        "message_id": receipt.message_id,
        "dedupe_key": receipt.dedupe_key,
        "correlation_id": receipt.correlation_id,
    }
    return document | ({"warnings": list(receipt.warnings)} if receipt.warnings else {})


def _document(row: ListedSend) -> dict[str, Any]:
    document = asdict(row)
    document["to"] = document.pop("email")
    document["attempts"] = document.pop("attempt_no")
    return document
