"""Screens of events: the list with its filters and notices, one event, reading events once more."""

import json

from flask import Blueprint, flash, request, url_for

from console.errors import InvalidInput
from console.inbox import endpoint_store, event_store, mailbox_store, paths, reading
from console.inbox.event_store import COUNT_LIMIT, STATUSES, EventDetail
from console.inbox.words import DECISIONS, EVENT_WORDS, ID_SOURCES, NOTICES
from console.web.database import transaction
from console.web.guards import account_id, person, role
from console.web.pages import after_post, page
from console.web.paging import PAGE_ROWS, asked_number, cut

inbox = Blueprint("inbox", __name__, url_prefix="/inbox")

SHOWN_CHARACTERS = 100_000


@inbox.get("/")
@role("operator", "support")
def index():
    """Lists applications' events, providers' reports or bounces, newest first, of one endpoint or state when asked."""
    status = request.args.get("status") or None
    if status is not None and status not in STATUSES:
        raise InvalidInput(f"{status[:40]!r} is no state of an event. Choose one from the list.", field="status")
    asked = request.args.get("reports") or ""
    reader = "bounces" if asked == "bounces" else "reports" if asked else "rules"
    endpoint_id, before = asked_number("of"), asked_number("before")
    with transaction() as session:
        rows = event_store.page(
            session,
            account_id(),
            reader=reader,
            endpoint_id=endpoint_id,
            status=status,
            before_id=before,
            limit=PAGE_ROWS + 1,
        )
        endpoints = endpoint_store.endpoints(session, account_id())
        counts = event_store.counts(session, account_id(), reader=reader)
        notices = event_store.notices(session, account_id())
        mailbox = mailbox_store.mailbox_of(session, account_id()) if reader == "bounces" else None
    return page(
        "inbox/index",
        shown=cut(rows, limit=PAGE_ROWS, cursor=lambda row: row.id),
        chosen=status,
        reports={"reports": 1, "bounces": "bounces"}.get(reader),
        mailbox=mailbox,
        endpoint_id=endpoint_id,
        endpoints=endpoints,
        counts=counts,
        count_limit=COUNT_LIMIT,
        notices=notices,
        notice_words=NOTICES,
        words=EVENT_WORDS,
        decisions=DECISIONS,
        is_first=before is None,
    )


@inbox.get("/<id:event_id>")
@role("operator", "support")
def show(event_id: int):
    """Shows one event as it came, each delivery of it, and what was done with it."""
    with transaction() as session:
        detail = event_store.show_event(session, account_id(), event_id)
    body, is_cut = readable(detail)
    return page(
        "inbox/show",
        detail=detail,
        event=detail.row,
        body=body,
        is_cut=is_cut,
        words=EVENT_WORDS,
        id_sources=ID_SOURCES,
        decisions=DECISIONS,
    )


@inbox.post("/replay")
@role("operator", "support")
def replay():
    """Queues the chosen events to be read once more."""
    chosen = [_number(typed) for typed in request.form.getlist("event_id")]
    with transaction() as session:
        queued = reading.replay(session, account_id(), user_id=person().user_id, event_ids=chosen)
    left = len(set(chosen)) - len(queued)
    words = f"Events that will be read again in a moment: {len(queued)}."
    if left:
        words += f" Events that wait already, or whose body is forgotten: {left}."
    flash(words)
    is_one = len(chosen) == 1
    return after_post(None, go_to=url_for(".show", event_id=chosen[0]) if is_one else url_for(".index"))


@inbox.post("/close-notice/<id:notice_id>")
@role("operator")
def close_notice(notice_id: int):
    """Takes a notice off the screen; it comes again when the same is noticed again."""
    with transaction() as session:
        event_store.close_notice(session, account_id(), notice_id, user_id=person().user_id)
    flash("The notice is closed. It comes again if the same is noticed again.")
    return after_post(None, go_to=url_for(".index"))


def readable(detail: EventDetail) -> tuple[str, bool]:
    """Gives the body as people read it, and whether it is longer than what is shown: JSON indented, else as it came."""
    if detail.body is None:
        return "", False
    try:
        text = json.dumps(paths.parse_body(detail.body), indent=2, ensure_ascii=False)
    except (InvalidInput, RecursionError):
        text = detail.body.decode("utf-8", "replace")
    text = text.replace("\x00", "\u2400").encode("utf-8", "replace").decode()
    return text[:SHOWN_CHARACTERS], len(text) > SHOWN_CHARACTERS


def _number(typed: str) -> int:
    if not (typed.isascii() and typed.isdigit() and len(typed) < 20 and 0 < int(typed) < 2**63):
        raise InvalidInput(f"{typed[:40]!r} is no event's number. Go back and choose again.", field="event_id")
    return int(typed)
