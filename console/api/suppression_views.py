"""Suppressions by the API: reading them, stopping mail to an address, allowing it again."""

from typing import Any

from flask import Response

from console.api.gate_views import Call, location, reply, serves
from console.api.paging import page_of, room
from console.audience import service, store
from console.audience.address import parse
from console.audience.models import Suppression
from console.errors import InvalidInput
from console.web.database import transaction


@serves("list_suppressions")
def list_suppressions(call: Call) -> Response:
    """Gives the account's suppressions, or those of one address; what is no address has none."""
    email, limit, before_id = call.query.get("email"), *room(call.query)
    try:
        email_lower = None if email is None else parse(email).email_lower
    except InvalidInput:
        return reply(page_of([], limit=limit))
    with transaction() as session:
        rows = store.page_of_suppressions(
            session, call.holder.account_id, email_lower=email_lower, before_id=before_id, limit=limit + 1
        )
    return reply(page_of([_document(row) for row in rows], limit=limit))


@serves("show_suppression")
def show_suppression(call: Call, suppression_id: int) -> Response:
    """Gives one suppression."""
    with transaction() as session:
        return reply(_document(store.suppression_by_id(session, call.holder.account_id, suppression_id)))


@serves("add_suppression")
def add_suppression(call: Call) -> Response:
    """Stops all mail of the account to an address; 200 when it was stopped before, with what stopped it."""
    account_id, email = call.holder.account_id, call.body["email"]
    with transaction() as session:
        is_new = service.suppress(
            session, account_id, email=email, reason=call.body["reason"], api_key_id=call.holder.key_id
        )
        stops = store.suppressions_of(session, account_id, parse(email).email_lower)
        document = _document(next(stop for stop in stops if stop.list_id is None))
    if not is_new:
        return reply(document)
    return reply(document, status=201, headers={"Location": location("suppressions", document["id"])})


@serves("remove_suppression")
def remove_suppression(call: Call, suppression_id: int) -> Response:
    """Allows mail again; 409 for what the person themselves decided."""
    with transaction() as session:
        service.allow_again(session, call.holder.account_id, suppression_id, api_key_id=call.holder.key_id)
    return Response(status=204)


def _document(row: Suppression) -> dict[str, Any]:
    return {
        "id": row.id,
        "email": row.email_lower,
        "list_id": row.list_id,
        "kind": row.kind,
        "reason": row.reason,
        "send_id": row.send_id,
        "created_at": row.created_at,
    }
