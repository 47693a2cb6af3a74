"""The ids by which a request is found again: one of its own, and the correlation id that follows what comes of it.

Both are bound to all that is logged while it is answered, and stand in the headers of the answer.
"""

import re
import uuid

import structlog
from flask import Flask, Response, g, request

REQUEST_HEADER = "X-Request-ID"
CORRELATION_HEADER = "X-Correlation-ID"

# No @: an id is logged as it is, and must not be somebody's address.
_USABLE = re.compile(r"[A-Za-z0-9._:/+=~-]{1,128}")
_TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


def init_app(app: Flask) -> None:
    """Gives every request its ids. Call it before anything else that looks at requests, so that all logs have them."""
    app.before_request(_bind)
    app.after_request(_answer)
    app.teardown_request(_unbind)


def request_id() -> str:
    """Gives the id of the present request: from X-Request-ID, which a proxy in front may have set, else a new one."""
    return g.request_id


def correlation_id() -> str:
    """Gives the correlation id of the present request."""
    return g.correlation_id


def given_correlation_id(correlation: str | None, traceparent: str | None) -> str | None:
    """Gives the correlation id that a caller sent, None when there is none that can be used.

    Takes:  the values of the headers X-Correlation-ID, which wins, and traceparent, of which the trace id counts.
    Source: W3C Trace Context, 3.2.2: a traceparent that can't be read is passed over.
    """
    if correlation and _USABLE.fullmatch(correlation):
        return correlation
    match = _TRACEPARENT.fullmatch(traceparent or "")
    # Version 00 ends with the flags; later ones may go on.
    if match is None or (match[1] == "00" and match[3]):
        return None
    return match[2]


def _bind() -> None:
    given = given_correlation_id(request.headers.get(CORRELATION_HEADER), request.headers.get("traceparent"))
    proxys = request.headers.get(REQUEST_HEADER, "")
    g.request_id = proxys if _USABLE.fullmatch(proxys) else uuid.uuid4().hex
    g.correlation_id = given or uuid.uuid4().hex
    structlog.contextvars.bind_contextvars(request_id=g.request_id, correlation_id=g.correlation_id)


def _answer(response: Response) -> Response:
    response.headers[REQUEST_HEADER] = g.request_id
    response.headers[CORRELATION_HEADER] = g.correlation_id
    return response


def _unbind(_error: BaseException | None) -> None:
    structlog.contextvars.unbind_contextvars("request_id", "correlation_id")
