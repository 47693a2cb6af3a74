"""Screens for operators: dead letters and messages in doubt. Each button first shows the exact set that it is for."""

from flask import request, url_for

from console.errors import InvalidInput
from console.sends import settle, settle_store, unsettled_store
from console.sends.forms import SettleForm
from console.sends.settle_store import SOURCES
from console.sends.states import Change, State
from console.sends.unsettled_store import COUNT_LIMIT, Chosen
from console.sends.views import sends
from console.sends.words import CHANGES, WORDS, class_words
from console.web.database import transaction
from console.web.guards import account_id, person, role
from console.web.pages import after_post, is_htmx, page, put_error
from console.web.paging import PAGE_ROWS, asked_number, cut


@sends.get("/dead-letters")
@role("operator")
def dead_letters():
    """Lists the account's dead letters, by error class; of one class or one campaign when asked."""
    return _listed("sends/dead_letters", State.DEAD)


@sends.get("/in-doubt")
@role("operator")
def in_doubt():
    """Lists the account's messages in doubt, each with its evidence; of one class or one campaign when asked."""
    return _listed("sends/in_doubt", State.IN_DOUBT)


@sends.post("/freeze")
@role("operator")
def freeze():
    """Fixes the set that a button is for, the ticked sends or the whole list, and leads to the page that shows it."""
    change = _change(request.form.get("change", ""))
    with transaction() as session:
        set_id = settle.freeze(
            session,
            account_id(),
            user_id=person().user_id,
            change=change,
            chosen=_chosen(SOURCES[change], request.form) if request.form.get("whole") else None,
            send_ids=[_number(typed) for typed in request.form.getlist("send_id")],
        )
    if set_id is None:
        raise InvalidInput("There is no such message any more. Go back and reload the list.")
    return after_post(None, go_to=url_for(".frozen", set_id=set_id))


@sends.route("/frozen/<id:set_id>", methods=["GET", "POST"])
@role("operator")
def frozen(set_id: int):
    """Shows a frozen set, runs it once with a reason, and shows what it did."""
    with transaction() as session:
        shown = settle_store.show_set(session, account_id(), set_id)
    form = SettleForm()
    if form.validate_on_submit():
        try:
            with transaction() as session:
                settle.run(session, account_id(), set_id, user_id=person().user_id, reason=form.reason.data or "")
            return after_post(None, go_to=url_for(".frozen", set_id=set_id))
        except InvalidInput as error:
            put_error(form, error)
    if form.errors and is_htmx():
        raise InvalidInput(" ".join(words for errors in form.errors.values() for words in errors))
    after_id, is_skipped = asked_number(), "skipped" in request.args
    with transaction() as session:
        rows = settle_store.page_of_set(
            session, account_id(), set_id, after_id=after_id or 0, is_skipped=is_skipped, limit=PAGE_ROWS + 1
        )
    return page(
        "sends/frozen",
        status=422 if form.errors else 200,
        shown=shown,
        word=CHANGES[shown.change],
        form=form,
        found=cut(rows, limit=PAGE_ROWS, cursor=lambda row: row.id),
        is_first=after_id is None,
        is_skipped=is_skipped,
        back=".dead_letters" if SOURCES[shown.change] is State.DEAD else ".in_doubt",
        words=WORDS,
        class_words=class_words,
    )


def _listed(template: str, status: State):
    chosen, after = _chosen(status, request.args), request.args.get("after")
    with transaction() as session:
        found = unsettled_store.page(session, account_id(), chosen, after=after, limit=PAGE_ROWS)
        classes = unsettled_store.classes(session, account_id(), status)
    return page(
        template,
        chosen=chosen,
        found=found,
        classes=classes,
        count_limit=COUNT_LIMIT,
        class_words=class_words,
        changes={change: CHANGES[change] for change, source in SOURCES.items() if source is status},
        words=WORDS,
        is_first=not after,
    )


def _chosen(status: State, fields) -> Chosen:
    campaign_id = fields.get("campaign", "")
    return Chosen(
        status=status,
        error_class=fields.get("class", "").replace("\x00", "") or None,
        campaign_id=_number(campaign_id) if campaign_id else None,
    )


def _change(typed: str) -> Change:
    if typed not in set(SOURCES):
        raise InvalidInput(f"{typed[:40]!r} is nothing that can be done. Use a button on the page.", field="change")
    return Change(typed)


def _number(typed: str) -> int:
    if not (typed.isascii() and typed.isdigit() and len(typed) < 20 and 0 < int(typed) < 2**63):
        raise InvalidInput(f"{typed[:40]!r} is no row's number. Go back and choose again.", field="send_id")
    return int(typed)
