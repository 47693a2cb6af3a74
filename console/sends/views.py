"""Screens of the ledger: search by recipient, the rows of a campaign, one send with its attempts."""

from flask import Blueprint, request
from sqlalchemy.orm import Session

from console.accounts import store as accounts
from console.audience.address import parse
from console.errors import InvalidInput
from console.sends import look_up_store, search_store, settle_store, trigger_store
from console.sends.search_store import Found
from console.sends.words import CHANGES, DECISIONS, FOUND, OUTCOMES, PHASES, WORDS
from console.web.database import transaction
from console.web.guards import account_id, person
from console.web.pages import page

sends = Blueprint("sends", __name__, url_prefix="/sends")

# As much as the search box takes.
RECIPIENT_CHARS_LIMIT = 320


@sends.get("/")
def index():
    """Finds sends by the recipient's address; without one, the newest of the account."""
    typed = request.args.get("recipient", "")
    after = request.args.get("after")
    with transaction() as session:
        kind, found = _search(session, typed, kind=request.args.get("by"), after=after)
        if kind != "newest" and not after:
            _note_look_up(session, typed, kind=kind, found=found)
    return page("sends/index", typed=typed, kind=kind, found=found, words=WORDS, is_first=not after)


@sends.get("/campaign/<id:campaign_id>")
def campaign(campaign_id: int):
    """Lists the sends of one campaign, all or those in one state."""
    status = request.args.get("status") or None
    after = request.args.get("after")
    with transaction() as session:
        shown = search_store.show_campaign(session, account_id(), campaign_id)
        found = search_store.page_of_campaign(session, account_id(), campaign_id, status=status, after=after)
    return page("sends/campaign", campaign=shown, chosen=status, found=found, words=WORDS, is_first=not after)


@sends.get("/<id:send_id>")
def show(send_id: int):
    """Shows one send with every attempt and what the provider said."""
    with transaction() as session:
        detail = search_store.show_send(session, account_id(), send_id)
        decisions = settle_store.decisions(session, account_id(), send_id)
        triggers = trigger_store.of_send(session, account_id(), send_id)
        look_ups = look_up_store.look_ups_of(session, account_id(), send_id)
        next_step = look_up_store.next_step(session, account_id(), send_id)
    # What a person may decide about it now; nothing in most states.
    may = [change for change, source in settle_store.SOURCES.items() if detail.send.status == source]
    words = {"words": WORDS, "outcomes": OUTCOMES, "phases": PHASES, "changes": CHANGES}
    return page(
        "sends/show",
        detail=detail,
        send=detail.send,
        decisions=decisions,
        triggers=triggers,
        look_ups=look_ups,
        next_step=next_step,
        found_words=FOUND,
        trigger_words=DECISIONS,
        open_changes={change: CHANGES[change] for change in may if person().has_role("operator")},
        **words,
    )


def _search(session: Session, typed: str, *, kind: str | None, after: str | None) -> tuple[str, Found]:
    """Gives how the text was understood, and its hits: `newest`, `exact`, `prefix` or `part`.

    The first page tries the whole address, then its beginning, then any part of it; `kind` keeps the later pages to
    what the first one found. A star at the end asks for the beginning.
    """
    text = search_store.search_text(typed)
    if not text:
        return "newest", search_store.page_newest(session, account_id(), before=after)
    if text.endswith("*") and len(text) > 1:
        return "prefix", search_store.page_of_prefix(session, account_id(), text[:-1], after=after)
    exact, prefix, part = (
        lambda: search_store.page_of_recipient(session, account_id(), _address(text), after=after),
        lambda: search_store.page_of_prefix(session, account_id(), text, after=after),
        lambda: search_store.page_of_part(session, account_id(), text, after=after),
    )
    ways = {"exact": exact, "prefix": prefix, "part": part}
    if kind in ways:
        return kind, ways[kind]()
    for name in ("exact", "prefix"):
        found = ways[name]()
        if found.rows:
            return name, found
    return "part", part()


def _note_look_up(session: Session, typed: str, *, kind: str, found: Found) -> None:
    """Writes down who looked for whom: what stands in these lists is about people."""
    accounts.record(
        session,
        account_id(),
        user_id=person().user_id,
        action="send.search",
        object_id=search_store.search_text(typed)[:RECIPIENT_CHARS_LIMIT],
        details={"by": kind, "from": request.remote_addr, "has_hits": bool(found.rows)},
    )


def _address(text: str) -> str:
    """Gives the address as the ledger keeps it; what is no address is looked for as it was typed."""
    try:
        return parse(text).email_lower
    except InvalidInput:
        return text
