"""The address that applications send events to: verify, store, commit, answer; what comes of it happens in a tick."""

from collections.abc import Mapping

import structlog
from flask import Response, abort, current_app, jsonify, request
from flask.typing import ResponseReturnValue
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import RequestEntityTooLarge

from console import clock
from console.errors import ConfigError
from console.inbox import service, signatures, store
from console.inbox.arrival import read_request
from console.inbox.models import Endpoint
from console.inbox.rule_views import inbox
from console.inbox.store import Stored
from console.web.correlation import correlation_id, request_id
from console.web.database import transaction
from console.web.guards import public

__all__ = ["inbox"]

log = structlog.get_logger(__name__)

LARGEST_BODY_BYTES = 1024 * 1024
RETRY_AFTER_S = 30
TOO_LARGE = "the body is over 1 MB"


@inbox.post("/<endpoint>/<token:token>")
@public
def receive(endpoint: str, token: str) -> ResponseReturnValue:
    """Takes one event. 2xx: it is stored, and says whether it was there already; 503: send it again."""
    its_id, its_correlation_id = request_id(), correlation_id()
    try:
        return _receive(endpoint, token, its_id=its_id, its_correlation_id=its_correlation_id)
    except (SQLAlchemyError, ConfigError) as error:
        # The second: a secret that was sealed with another key. Either is ours to mend, and the event comes again.
        log.error("inbox.not_stored", endpoint=endpoint, error=type(error).__name__)
        answer = problem(503, "The event could not be stored; send it again later.", its_id)
        answer.headers["Retry-After"] = str(RETRY_AFTER_S)
        return answer


def _receive(name: str, token: str, *, its_id: str, its_correlation_id: str) -> ResponseReturnValue:
    with transaction() as session:
        endpoint = store.endpoint_by_token(session, name=name, token_hash=service.hash_of(token))
    # Providers' reports have an address of their own, where they are verified as each vendor signs.
    if endpoint is None or endpoint.reader != "rules":
        # As for any address that there is not.
        abort(404)
    request.max_content_length = LARGEST_BODY_BYTES
    try:
        # No transaction is open while the body comes in.
        body = request.get_data(cache=False)
    except RequestEntityTooLarge:
        return refused(endpoint, 413, TOO_LARGE, its_id)
    headers = asked_headers()
    scheme = service.scheme_of(endpoint, secret_key=current_app.config["SENDONCE_SETTINGS"].secret_key)
    refusal = signatures.refusal(scheme, headers=headers, body=body, now=clock.now())
    if refusal is not None:
        answer = refused(endpoint, 401, refusal, its_id)
        if scheme.kind == "basic":
            answer.headers["WWW-Authenticate"] = 'Basic realm="inbox"'
        return answer
    arrival = read_request(
        headers=headers,
        body=body,
        places=service.places_of(endpoint),
        request_id=its_id,
        correlation_id=its_correlation_id,
    )
    with transaction() as session:
        stored = store.store_first(session, endpoint.account_id, endpoint.id, arrival=arrival, reader=endpoint.reader)
    log.info("inbox.stored" if stored.is_new else "inbox.redelivered", endpoint=name, inbox_event_id=stored.id)
    return taken(stored, event_id=arrival.event_id, its_id=its_id)


def asked_headers() -> Mapping[str, str]:
    """Gives the request's headers by their names in lower case."""
    return {name.lower(): value for name, value in request.headers.items()}


def taken(stored: Stored, *, event_id: str, its_id: str) -> Response:
    """Gives the answer to an event that is stored."""
    answer = jsonify(
        status="stored" if stored.is_new else "duplicate",
        id=stored.id,
        event_id=event_id,
        delivery_count=stored.delivery_count,
    )
    answer.headers["X-Request-ID"] = its_id
    return answer


def refused(endpoint: Endpoint, status: int, reason: str, its_id: str) -> Response:
    """Counts a request that is refused, and gives the answer to it."""
    with transaction() as session:
        store.count_refusal(session, endpoint.account_id, endpoint.id, reason=reason, request_id=its_id)
    log.warning("inbox.refused", endpoint=endpoint.name, account_id=endpoint.account_id, reason=reason)
    return problem(status, f"Not taken: {reason}.", its_id)


def problem(status: int, detail: str, its_id: str) -> Response:
    """Gives a problem document (RFC 9457)."""
    answer = jsonify(status=status, title="The event was not taken", detail=detail)
    answer.status_code = status
    answer.mimetype = "application/problem+json"
    answer.headers["X-Request-ID"] = its_id
    return answer
