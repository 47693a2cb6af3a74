"""Errors as pages: what happened and what to do next. The one place that knows which error is which status.

What programs call (problem_documents.is_machine_path) gets a problem document instead of a page.
"""

from http import HTTPStatus

import structlog
from flask import Flask, Response, make_response, render_template, request
from flask_wtf.csrf import CSRFError
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException

from console.errors import Conflict, DatabaseError, FieldError, Forbidden, InvalidInput, NotFound, SendonceError
from console.web import problem_documents

_log = structlog.get_logger(__name__)

STATUS_OF: dict[type[SendonceError], int] = {
    NotFound: 404,
    Conflict: 409,
    Forbidden: 403,
    InvalidInput: 422,
    DatabaseError: 503,
}

HEADINGS = {
    400: "That could not be read",
    403: "You may not do this",
    404: "There is nothing here",
    405: "That does not work this way",
    409: "Somebody was faster",
    413: "That is too large",
    422: "A value was refused",
    429: "Too many attempts",
    500: "Something broke on our side",
    503: "The database does not answer",
}

WORDS = {
    400: "The request was not understood. Go back, reload the page and try again.",
    404: "The page was moved, never existed, or belongs to another account. Check the address, or start from Today.",
    405: "This address takes another kind of request. Go back and use the button on the page.",
    413: "What you sent is larger than 4 MB. Make it smaller; link pictures instead of including them.",
    500: "It has been written to the log with its details. Try again; if it stays, tell whoever runs this server.",
    503: "It may be restarting. Nothing is lost; wait a moment and reload the page.",
}


def init_app(app: Flask) -> None:
    """Makes every error of the app a page."""
    app.register_error_handler(SendonceError, _of_sendonce)
    app.register_error_handler(CSRFError, _of_csrf)
    app.register_error_handler(HTTPException, _of_http)
    for lost in (OperationalError, InterfaceError, PoolTimeout):
        app.register_error_handler(lost, _of_database)


def problem(status: int, words: str | None = None) -> Response:
    """Gives the problem's page; with htmx a fragment for its place for problems, so that nothing else is lost."""
    is_htmx = request.headers.get("HX-Request") == "true"
    heading = HEADINGS.get(status) or HTTPStatus(status).phrase
    text = words or WORDS.get(status) or "Go back and try again."
    template = "problems/_problem.html" if is_htmx else "problems/problem.html"
    answer = make_response(render_template(template, status=status, heading=heading, words=text), status)
    if is_htmx:
        # What is polled says itself when it works again (#stale); what a person did stays until they do the next thing.
        answer.headers["HX-Retarget"] = "#stale" if request.method == "GET" else "#problem-slot"
        answer.headers["HX-Reswap"] = "innerHTML"
    return answer


def document(status: int, words: str | None = None, *, field: str | None = None) -> Response:
    """Gives the problem as a document for programs; `field` names what was refused."""
    errors = [FieldError(field, words or "")] if field else []
    kind = "refused" if errors else None
    return problem_documents.answer(problem_documents.members(status, words, kind=kind, errors=errors))


def _of_sendonce(error: SendonceError) -> Response:
    status = next((code for kind, code in STATUS_OF.items() if isinstance(error, kind)), 500)
    if problem_documents.is_machine_path(request.path):
        return document(status, str(error), field=error.field if isinstance(error, InvalidInput) else None)
    return problem(status, str(error))


def _of_csrf(error: CSRFError) -> Response:
    return problem(
        400,
        "This form is not (or no longer) yours: you signed out or in again since you opened it, or your browser"
        " keeps no cookies. Nothing was changed. Reload the page and send it again.",
    )


def _of_http(error: HTTPException) -> Response:
    # Redirects that the router itself makes are answers, not problems.
    if error.code is None or error.code < 400:
        return error.get_response()  # type: ignore[return-value]
    is_for_machines = problem_documents.is_machine_path(request.path)
    answer = document(error.code) if is_for_machines else problem(error.code, _words_of(error))
    for name, value in error.get_headers():
        if name.lower() in {"retry-after", "allow"}:
            answer.headers[name] = value
    return answer


def _words_of(error: HTTPException) -> str | None:
    return error.description if error.code == 429 else None


def _of_database(error: OperationalError | InterfaceError | PoolTimeout) -> Response:
    _log.error("database_unavailable", path=request.path, error=str(getattr(error, "orig", error)))
    return document(503) if problem_documents.is_machine_path(request.path) else problem(503)
