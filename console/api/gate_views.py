"""What every call passes before its operation runs: key, scope, allowance, and the shape of what it sends."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from flask import Blueprint, Flask, Response, current_app, request
from sqlalchemy import Engine
from werkzeug.exceptions import RequestEntityTooLarge

from console.accounts.key_store import KeyHolder
from console.accounts.keys import key_holder
from console.api import document
from console.api.allowance import Allowances
from console.api.operations import OPERATIONS, Operation
from console.api.reading import Checker, Malformed, parse, parse_words
from console.api.schemas import COMPONENTS
from console.errors import SendonceError
from console.web import problem_documents
from console.web.database import statements
from console.web.guards import public

log = structlog.get_logger(__name__)
api = Blueprint("api", __name__, url_prefix=document.PREFIX)

_KEY = "sendonce.allowances"


@dataclass(frozen=True, slots=True)
class Call:
    """A call that may go on: whose it is, and what it brought, held against the operation's schemas."""

    holder: KeyHolder
    body: Any
    query: Mapping[str, Any]
    headers: Mapping[str, str]


class Refusal(SendonceError):
    """A call is not served; the answer is this problem."""

    def __init__(self, status: int, detail: str | None = None, *, headers: Mapping[str, str] | None = None, **members):
        self.document = problem_documents.members(status, detail, **members)
        self.headers = headers
        super().__init__(self.document["detail"])


class _Reader:
    """Reads the calls of one operation; its schemas are compiled once."""

    def __init__(self, operation: Operation):
        self._operation = operation
        self._body = Checker(COMPONENTS[operation.body]) if operation.body else None
        self._query = Checker(_closed(operation.query))
        self._headers = Checker(_closed(operation.headers))

    def body(self) -> Any:
        """Raises: Refusal, Malformed."""
        if self._body is None:
            return None
        if request.mimetype != "application/json":
            raise Refusal(415, "The body must have the Content-Type application/json.")
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Refusal(415, "The body must not be compressed: send it without Content-Encoding.")
        request.max_content_length = self._operation.largest_body_bytes
        try:
            raw = request.get_data(cache=False)
        except RequestEntityTooLarge:
            raise Refusal(
                413, f"The body is larger than {self._operation.largest_body_bytes // 1024} kB, which is the most here."
            ) from None
        document = parse(raw)
        self._body.check(document)
        return document

    def query(self) -> dict[str, Any]:
        """Raises: Malformed."""
        given = parse_words(dict(request.args.lists()), self._operation.query)
        self._query.check(given)
        return given

    def headers(self) -> dict[str, str]:
        """Raises: Malformed."""
        given = {name: request.headers.getlist(name) for name in self._operation.headers if name in request.headers}
        words = parse_words(given, self._operation.headers)
        self._headers.check(words)
        return words


def init_app(app: Flask, engine: Engine) -> None:
    """Gives the app the allowances of its process."""
    app.extensions[_KEY] = Allowances(engine)


def serves(name: str) -> Callable[[Callable[..., Response]], Callable[..., Response]]:
    """Makes a function `(call, **ids) -> Response` serve the operation of this name in OPERATIONS."""
    operation = OPERATIONS[name]
    reader = _Reader(operation)

    def wrap(view: Callable[..., Response]) -> Callable[..., Response]:
        @public
        def served(**ids: int) -> Response:
            holder = _holder()
            if operation.scope not in holder.scopes:
                raise _beyond(holder, operation.scope)
            charge(holder)
            call = Call(holder=holder, query=reader.query(), headers=reader.headers(), body=reader.body())
            return view(call, **ids)

        rule = re.sub(r"{(\w+)}", r"<id:\1>", operation.path)
        api.add_url_rule(rule, name, served, methods=[operation.method], provide_automatic_options=False)
        return served

    return wrap


def charge(holder: KeyHolder, *, calls: int = 1) -> None:
    """Raises: Refusal when the key has made its calls for now."""
    wait_s = current_app.extensions[_KEY].spend(holder, calls=calls)
    if wait_s is not None:
        raise Refusal(
            429,
            f"This key may make {holder.calls_per_minute} calls a minute. Try again in {wait_s} s.",
            headers={"Retry-After": str(wait_s)},
        )


def reply(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Gives the answer with this JSON body."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return Response(text, status=status, mimetype="application/json", headers=dict(headers or {}))


def location(path: str, number: int) -> str:
    """Gives the address of one of the API's things."""
    return f"{document.PREFIX}/{path}/{number}"


@api.errorhandler(Refusal)
def _of_refusal(error: Refusal) -> Response:
    log.info("api.refused", status=error.document["status"], path=request.path, reason=error.document["type"])
    return problem_documents.answer(error.document, error.headers)


@api.errorhandler(Malformed)
def _of_malformed(error: Malformed) -> Response:
    log.info("api.malformed", path=request.path, fields=[one.field for one in error.errors])
    return problem_documents.answer(problem_documents.members(400, str(error), kind="malformed", errors=error.errors))


def _holder() -> KeyHolder:
    scheme, _, presented = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise Refusal(
            401,
            "Send an API key in the header Authorization: Bearer so_...",
            headers={"WWW-Authenticate": 'Bearer realm="sendonce"'},
        )
    with statements() as connection:
        holder = key_holder(connection, presented.strip())
    if holder is None:
        raise Refusal(
            401,
            "This is no API key that works: it was mistyped or revoked.",
            headers={"WWW-Authenticate": 'Bearer realm="sendonce", error="invalid_token"'},
        )
    return holder


def _beyond(holder: KeyHolder, scope: str) -> Refusal:
    return Refusal(
        403,
        f"This takes a key with the scope {scope}; this one has {', '.join(sorted(holder.scopes))}.",
        headers={"WWW-Authenticate": f'Bearer realm="sendonce", error="insufficient_scope", scope="{scope}"'},
    )


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is no JSON")
