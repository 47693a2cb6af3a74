"""The ids by which a request is found again: its own, and the one that follows it to the provider."""

import re
import uuid

from flask import Request

_ID = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")


def request_id(request: Request) -> str:
    """Gives the id that the caller, or a proxy in front, put in X-Request-ID; else a new one."""
    given = request.headers.get("X-Request-ID", "").strip()
    return given if _ID.fullmatch(given) else uuid.uuid4().hex


def correlation_id(request: Request) -> str:
    """Gives the id of X-Correlation-ID, else the trace's of `traceparent`, else a new one.

    Source: W3C Trace Context, 3.2.2.3 (a trace id of zeros is none).
    """
    given = request.headers.get("X-Correlation-ID", "").strip()
    if _ID.fullmatch(given):
        return given
    trace = _TRACEPARENT.fullmatch(request.headers.get("traceparent", "").strip())
    if trace is not None and trace[1] != "0" * 32:
        return trace[1]
    return uuid.uuid4().hex
