"""Errors as problem documents (RFC 9457), for what programs call; pages for people are in problems.py."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from flask import Response

from console.errors import FieldError
from console.web.correlation import request_id

MEDIA_TYPE = "application/problem+json"
# What is called by programs alone: there an error is never a page.
MACHINE_PATHS = ("/api/",)

DETAILS = {
    400: "The request could not be read.",
    404: "There is nothing at this address. The document at /api/v1/openapi.json lists what there is.",
    405: "This address takes another method; the header Allow lists them.",
    413: "The body is too large.",
    500: "Something broke on our side; it is in the log with this request's id. Try again with the same dedupe key.",
    503: "The database does not answer; it may be restarting. Try again in a few seconds, with the same dedupe key.",
}
# What there is more to tell about than a status does: the last word of a problem's type, and its title.
TITLES = {
    "malformed": "The request does not follow its schema",
    "refused": "A value was refused",
    "key-conflict": "The dedupe key belongs to another message",
    "unknown-message-type": "The account has no such message type",
    "other-state": "It has moved on to another state",
}
RETRY_S = 5


def is_machine_path(path: str) -> bool:
    """Tells whether programs are meant to call the path."""
    return path.startswith(MACHINE_PATHS)


def members(
    status: int, detail: str | None = None, *, kind: str | None = None, errors: Sequence[FieldError] = (), **more: Any
) -> dict[str, Any]:
    """Gives the members of a problem document.

    Takes:  kind, one of TITLES; errors, of which the first also stands in `field`; more, further members.
    Source: RFC 9457, 3.1 and 4.2.1.
    """
    document = {
        "type": f"urn:sendonce:problem:{kind}" if kind else "about:blank",
        "title": TITLES[kind] if kind else HTTPStatus(status).phrase,
        "status": status,
        "detail": detail or DETAILS.get(status) or HTTPStatus(status).description,
        "request_id": request_id(),
    }
    if errors:
        document["field"] = errors[0].field
        document["errors"] = [{"field": error.field, "detail": error.detail} for error in errors]
    return document | more


def answer(document: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Gives the problem document as an answer with its status; a 503 says when to come again."""
    status = document["status"]
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    response = Response(body, status=status, mimetype=MEDIA_TYPE, headers=dict(headers or {}))
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers.setdefault("Retry-After", str(RETRY_S))
    return response
