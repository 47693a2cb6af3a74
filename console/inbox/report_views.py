"""The address that providers report to, and the screen that makes it. Verified, stored, answered; read in a tick."""

import httpx
import structlog
from flask import abort, current_app, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import RequestEntityTooLarge

from console import clock
from console.errors import ConfigError, InvalidInput
from console.inbox import endpoint_store, paths, service, signatures, store
from console.inbox import report_address as addresses
from console.inbox.arrival import read_request
from console.inbox.forms import ReportSecretForm
from console.inbox.models import Endpoint
from console.inbox.receive_views import (
    LARGEST_BODY_BYTES,
    RETRY_AFTER_S,
    TOO_LARGE,
    asked_headers,
    inbox,
    problem,
    refused,
    taken,
)
from console.inbox.report_kinds import REPORTS
from console.providers import sns
from console.providers import store as provider_store
from console.providers.kinds import KINDS
from console.providers.reports import fields_of, text_of
from console.providers.store import Configured
from console.web.correlation import correlation_id, request_id
from console.web.database import transaction
from console.web.guards import account_id, person, public, role
from console.web.pages import after_post, page, put_error

__all__ = ["inbox"]

log = structlog.get_logger(__name__)

OTHER_TOPIC = "it comes from another topic than the one that is set"


@inbox.post("/reports/<kind>/<token:token>")
@public
def reports(kind: str, token: str) -> ResponseReturnValue:
    """Takes one report of a provider. 2xx: it is stored; the vendor's own status for "later": send it again."""
    if kind not in REPORTS:
        abort(404)
    its_id = request_id()
    try:
        return _take(kind, token, its_id=its_id)
    except (SQLAlchemyError, ConfigError, httpx.HTTPError) as error:
        # The last: Amazon's certificate could not be had, so nobody knows whose the report is.
        log.error("inbox.report_not_stored", kind=kind, error=type(error).__name__)
        answer = problem(REPORTS[kind].busy_status, "The report could not be stored; send it again later.", its_id)
        answer.headers["Retry-After"] = str(RETRY_AFTER_S)
        return answer


@inbox.route("/report-address/<id:provider_id>", methods=["GET", "POST"])
@role("admin")
def report_address(provider_id: int):
    """Shows whether a provider's reports come in, makes their address (shown this once), takes their secret."""
    form = ReportSecretForm()
    made = None
    if request.method == "POST" and form.validate():
        try:
            with transaction() as session:
                if form.make.data:
                    made = addresses.make(session, account_id(), provider_id, user_id=person().user_id)
                else:
                    addresses.set_secret(
                        session,
                        account_id(),
                        provider_id,
                        user_id=person().user_id,
                        secret=form.secret.data or "",
                        secret_key=_settings().secret_key,
                    )
            if made is None:
                return after_post(None, go_to=url_for(".report_address", provider_id=provider_id))
        except InvalidInput as error:
            put_error(form, error)
    with transaction() as session:
        row = provider_store.provider_by_id(session, account_id(), provider_id)
        endpoint = endpoint_store.show_endpoint(session, account_id(), row.endpoint_id) if row.endpoint_id else None
    return page(
        "inbox/report_address",
        status=422 if form.errors else 200,
        row=row,
        kind=REPORTS.get(row.kind),
        label=KINDS[row.kind].label,
        endpoint=endpoint,
        form=form,
        url=made.url(_settings().base_url) if made else None,
    )


def _take(kind: str, token: str, *, its_id: str) -> ResponseReturnValue:
    with transaction() as session:
        endpoint = store.report_endpoint(session, token_hash=service.hash_of(token))
        row = provider_store.provider_by_endpoint(session, endpoint.account_id, endpoint.id) if endpoint else None
    if endpoint is None or row is None or row.kind != kind:
        # As for any address that there is not.
        abort(404)
    request.max_content_length = LARGEST_BODY_BYTES
    try:
        # No transaction is open while the body comes in, or a certificate is fetched.
        body = request.get_data(cache=False)
    except RequestEntityTooLarge:
        return refused(endpoint, 413, TOO_LARGE, its_id)
    refusal = _refusal(endpoint, row, body)
    if refusal is not None:
        return refused(endpoint, 401, refusal, its_id)
    arrival = read_request(
        headers=asked_headers(),
        body=body,
        places=service.places_of(endpoint),
        request_id=its_id,
        correlation_id=correlation_id(),
    )
    with transaction() as session:
        stored = store.store_first(session, endpoint.account_id, endpoint.id, arrival=arrival, reader="reports")
    if REPORTS[kind].is_amazons:
        _confirm(row, body)
    return taken(stored, event_id=arrival.event_id, its_id=its_id)


def _refusal(endpoint: Endpoint, row: Configured, body: bytes) -> str | None:
    scheme = service.scheme_of(endpoint, secret_key=_settings().secret_key)
    refusal = signatures.refusal(scheme, headers=asked_headers(), body=body, now=clock.now())
    if refusal is not None or not REPORTS[row.kind].is_amazons:
        return refusal
    envelope = _envelope(body)
    topic = row.settings.get("topic_arn")
    if topic and envelope.get("TopicArn") != topic:
        return OTHER_TOPIC
    return sns.refusal(envelope, _certificates())


def _confirm(row: Configured, body: bytes) -> None:
    """Confirms a subscription of the topic that is set, once more when it comes again; any other waits for a person."""
    envelope = _envelope(body)
    url = text_of(envelope.get("SubscribeURL"))
    is_ours = bool(row.settings.get("topic_arn")) and envelope.get("Type") == "SubscriptionConfirmation"
    if is_ours and sns.is_amazons(url):
        _certificates().visit(url)
        log.info("inbox.subscription_confirmed", account_id=row.account_id, provider=row.name)


def _envelope(body: bytes) -> dict:
    try:
        return fields_of(paths.parse_body(body))
    except InvalidInput:
        return {}


def _certificates() -> sns.Certificates:
    return current_app.extensions.setdefault("sns_certificates", sns.Certificates())


def _settings():
    return current_app.config["SENDONCE_SETTINGS"]
