"""The OpenAPI 3.1 document, made from the table of operations and the schemas that are checked against. Pure."""

import re
from functools import cache
from typing import Any

from console.api import answer_schemas, schemas
from console.api.operations import OPERATIONS, Answer, Operation
from console.api.schemas import CORRELATION, ID, Schema, ref

PREFIX = "/api/v1"
PROBLEM = "application/problem+json"

_REFUSALS = {
    400: "What was sent does not follow its schema; `errors` names the fields.",
    401: "No API key came with the call, or none that works.",
    403: "The key lacks the scope.",
    404: "The account has no such thing, or no message type of this name.",
    409: "It stands against what is there: see the problem's `type`.",
    413: "The body is too large.",
    415: "The body's Content-Type is not application/json.",
    422: "A value is well formed, but can't be used; `field` names it.",
    429: "The key has made its calls; Retry-After says when it may go on.",
    503: "The database does not answer, or went away meanwhile. Trying again with the same dedupe key is safe.",
}
_OF_ALL = (400, 401, 403, 429, 503)
_OF_BODIES = (413, 415)
_HEADERS: dict[str, Schema] = {
    "Location": {"type": "string", "description": "Where it can be read."},
    "Idempotent-Replayed": {"type": "string", "const": "true"},
    "Retry-After": {"type": "integer", "minimum": 1, "description": "Seconds."},
    "WWW-Authenticate": {"type": "string"},
    "X-Request-ID": {"type": "string", "description": "Finds the request in our logs."},
    "X-Correlation-ID": {"type": "string"},
}
_HEADERS_OF_REFUSALS = {401: ("WWW-Authenticate",), 429: ("Retry-After",), 503: ("Retry-After",)}
_OF_EVERY_ANSWER = ("X-Request-ID", "X-Correlation-ID")
_ABOUT = (
    "Hand messages in, once each: the same dedupe key never makes a second message. Errors are problem documents"
    " (RFC 9457). Keys are made on the page API keys, or by `sendonce api-key add`."
)


@cache
def document() -> dict[str, Any]:
    """Gives the document, ready to be written as JSON."""
    paths: dict[str, dict[str, Any]] = {}
    for name, operation in OPERATIONS.items():
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(name, operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sendonce", "version": "1", "description": _ABOUT},
        "servers": [{"url": PREFIX}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": schemas.COMPONENTS | answer_schemas.COMPONENTS,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "An API key."}},
        },
    }


def _operation(name: str, operation: Operation) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": name,
        "summary": operation.summary,
        "description": f"Takes a key with the scope `{operation.scope}`.",
        "tags": [operation.area],
        "parameters": _parameters(operation),
        "responses": {str(status): _success(answer) for status, answer in operation.answers.items()},
    }
    statuses = [*_OF_ALL, *operation.refusals, *(_OF_BODIES if operation.body else ())]
    made["responses"] |= {str(status): _refusal(status) for status in sorted(statuses)}
    if operation.body:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": ref(operation.body)}}}
    return made


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    found = [
        {"name": name, "in": "path", "required": True, "schema": ID} for name in re.findall(r"{(\w+)}", operation.path)
    ]
    found += [{"name": name, "in": "query", "schema": schema} for name, schema in operation.query.items()]
    found += [{"name": name, "in": "header", "schema": schema} for name, schema in operation.headers.items()]
    # Any text is taken: one that can't be used as an id is passed over.
    correlation = {"type": "string", "description": CORRELATION["description"]}
    return [*found, {"name": "X-Correlation-ID", "in": "header", "schema": correlation}]


def _success(answer: Answer) -> dict[str, Any]:
    made: dict[str, Any] = {"description": answer.words, "headers": _headers(answer.headers)}
    if answer.component:
        made["content"] = {"application/json": {"schema": ref(answer.component)}}
    return made


def _refusal(status: int) -> dict[str, Any]:
    return {
        "description": _REFUSALS[status],
        "headers": _headers(_HEADERS_OF_REFUSALS.get(status, ())),
        "content": {PROBLEM: {"schema": ref("Problem")}},
    }


def _headers(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: {"required": True, "schema": _HEADERS[name]} for name in (*names, *_OF_EVERY_ANSWER)}
