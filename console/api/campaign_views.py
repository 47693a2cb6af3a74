"""Campaigns by the API: read only. They are written, approved and started by people."""

from typing import Any

from flask import Response

from console.api.gate_views import Call, reply, serves
from console.api.paging import page_of, room
from console.campaigns import store
from console.campaigns.store import CampaignRow
from console.web.database import transaction

_SHOWN = (
    "id", "name", "status", "subject", "sender", "list_id", "list_name", "version", "scheduled_for", "started_at",
    "finished_at", "created_at", "correlation_id", "counts",
)  # fmt: skip


@serves("list_campaigns")
def list_campaigns(call: Call) -> Response:
    """Gives campaigns, all or those in one state."""
    limit, before_id = room(call.query)
    with transaction() as session:
        rows = store.page(
            session, call.holder.account_id, status=call.query.get("status"), before_id=before_id, limit=limit + 1
        )
    return reply(page_of([_document(row) for row in rows], limit=limit))


@serves("show_campaign")
def show_campaign(call: Call, campaign_id: int) -> Response:
    """Gives one campaign with its figures."""
    with transaction() as session:
        return reply(_document(store.show(session, call.holder.account_id, campaign_id)))


def _document(row: CampaignRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _SHOWN}
