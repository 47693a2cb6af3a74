"""The first page: what is being sent, what waits for whom, and whether all is well."""

from flask import Blueprint, current_app

from console.campaigns import store as campaign_store
from console.campaigns.words import WORDS
from console.providers.trouble_store import troubles
from console.today import store
from console.web.database import transaction
from console.web.guards import account_id, person
from console.web.pages import fragment, page

today = Blueprint("today", __name__)

# More than this many at once would make the page hard to read; the lists by state have them all.
SHOWN = 20


@today.get("/")
def index():
    """Shows what is going on now, and what waits for the person who looks."""
    with transaction() as session:
        waiting = campaign_store.page(session, account_id(), status="submitted", limit=SHOWN)
        values = {
            "waiting": waiting,
            "needs_look": store.needs_look(session, account_id()),
            **_moving(session),
        }
    return page("today/index", words=WORDS, may_approve=person().has_role("approver"), **values)


@today.get("/today/progress")
def progress():
    """Gives the part of the first page that moves."""
    with transaction() as session:
        values = _moving(session)
    return fragment("today/progress", words=WORDS, **values)


def _moving(session) -> dict:
    return {
        "sending": campaign_store.page(session, account_id(), status="sending", limit=SHOWN),
        "paused": campaign_store.page(session, account_id(), status="paused", limit=SHOWN),
        "totals": store.totals(session, account_id()),
        "machinery": store.machinery(session, dead_after_s=current_app.config["SENDONCE_SETTINGS"].dead_after_s),
        "troubles": troubles(session, account_id()),
    }
