"""Screens of rules: one rule, writing it, trying it out on a stored event, switching it on and off."""

from flask import flash, url_for
from sqlalchemy.orm import Session

from console.errors import Conflict, InvalidInput
from console.inbox import endpoint_store, event_store, reading, rule_store, rules
from console.inbox.endpoint_views import inbox
from console.inbox.forms import EditRuleForm, NewRuleForm, RuleForm, TryForm, VersionForm
from console.inbox.reading import Trial
from console.inbox.rule_store import RuleRow
from console.inbox.rules import Draft
from console.inbox.words import RULE_WORDS, TRIALS, WARNINGS
from console.sends import type_store
from console.web.database import transaction
from console.web.forms import SelectChoice
from console.web.guards import account_id, person, role
from console.web.pages import after_post, page, put_error

__all__ = ["inbox"]

EVENTS_OFFERED = 10


@inbox.get("/rule/<id:rule_id>")
@role("operator", "support")
def rule(rule_id: int):
    """Shows one rule, and to admins how to try it out and to switch it."""
    with transaction() as session:
        return _show(session, rule_store.show_rule(session, account_id(), rule_id), TryForm(formdata=None))


@inbox.route("/new-rule/<id:endpoint_id>", methods=["GET", "POST"])
@role("admin")
def new_rule(endpoint_id: int):
    """Writes a rule, a draft."""
    form = NewRuleForm()
    with transaction() as session:
        endpoint = endpoint_store.show_endpoint(session, account_id(), endpoint_id)
        _offer_types(session, form)
    if form.validate_on_submit():
        try:
            draft = _draft(form, name=form.name.data or "")
            with transaction() as session:
                rule_id = rules.add_rule(session, account_id(), endpoint_id, user_id=person().user_id, draft=draft)
            return after_post(None, go_to=url_for(".rule", rule_id=rule_id))
        except InvalidInput as error:
            put_error(form, error)
        except Conflict as error:
            put_error(form, InvalidInput(str(error), field="name"))
    return page("inbox/new_rule", form=form, endpoint=endpoint, status=422 if form.errors else 200)


@inbox.route("/edit-rule/<id:rule_id>", methods=["GET", "POST"])
@role("admin")
def edit_rule(rule_id: int):
    """Writes the next version of a rule; it is a draft then."""
    with transaction() as session:
        shown = rule_store.show_rule(session, account_id(), rule_id)
        form = EditRuleForm(data=_filled(shown))
        _offer_types(session, form)
    if form.validate_on_submit():
        try:
            draft = _draft(form, name=shown.name)
            with transaction() as session:
                rules.edit_rule(
                    session,
                    account_id(),
                    rule_id,
                    user_id=person().user_id,
                    draft=draft,
                    seen_version=_seen(form),
                )
            return after_post(None, go_to=url_for(".rule", rule_id=rule_id))
        except InvalidInput as error:
            put_error(form, error)
    return page("inbox/edit_rule", form=form, rule=shown, status=422 if form.errors else 200)


@inbox.post("/rule/<id:rule_id>/try-out")
@role("admin")
def try_out(rule_id: int):
    """Shows what the rule would do with a stored event; sends nothing."""
    form, trial = TryForm(), None
    with transaction() as session:
        if form.validate():
            trial = reading.try_out(
                session, account_id(), rule_id, user_id=person().user_id, event_id=form.event_id.data or 0
            )
        shown = rule_store.show_rule(session, account_id(), rule_id)
        return _show(session, shown, form, trial=trial)


@inbox.post("/rule/<id:rule_id>/switch-on")
@role("admin")
def switch_on(rule_id: int):
    """Switches on the version that the person saw."""
    with transaction() as session:
        replaced = rules.switch_on(
            session, account_id(), rule_id, user_id=person().user_id, seen_version=_seen(VersionForm())
        )
    words = "The rule is on: it is run on every event of its type from now on."
    flash(words + "".join(f" The rule {name}, which was on for the same type, is off." for name in replaced))
    return after_post(None, go_to=url_for(".rule", rule_id=rule_id))


@inbox.post("/rule/<id:rule_id>/switch-off")
@role("admin")
def switch_off(rule_id: int):
    """Switches the rule off."""
    with transaction() as session:
        rules.switch_off(session, account_id(), rule_id, user_id=person().user_id)
    flash("The rule is off. Events of its type are stored, and wait as without a rule.")
    return after_post(None, go_to=url_for(".rule", rule_id=rule_id))


def _show(session: Session, shown: RuleRow, form: TryForm, *, trial: Trial | None = None):
    recent = event_store.page(session, account_id(), endpoint_id=shown.endpoint_id, limit=100)
    offered = [event for event in recent if shown.is_for(event.event_type) and event.has_body][:EVENTS_OFFERED]
    return page(
        "inbox/rule",
        status=422 if form.errors else 200,
        rule=shown,
        form=form,
        trial=trial,
        offered=offered,
        words=RULE_WORDS,
        warning_words=WARNINGS,
        trials=TRIALS,
        code_path=reading.code_path(shown.endpoint_name, shown.name),
    )


def _offer_types(session: Session, form: RuleForm) -> None:
    names = [row.name for row in type_store.all_types(session, account_id()) if row.name != "campaign"]
    form.message_type.choices = [SelectChoice(name, name) for name in names]


def _draft(form: RuleForm, *, name: str) -> Draft:
    return Draft(
        name=name,
        event_type=form.event_type.data or "",
        message_type=form.message_type.data or "",
        recipient_path=form.recipient_path.data or "",
        params=rules.pairs(form.params.data or "", field="params"),
        dedupe_pattern=form.dedupe_pattern.data or "",
        entities=rules.pairs(form.entities.data or "", field="entities"),
    )


def _filled(shown: RuleRow) -> dict[str, object]:
    return {
        "event_type": shown.event_type,
        "message_type": shown.message_type,
        "recipient_path": shown.recipient_path,
        "params": rules.lines(shown.params),
        "dedupe_pattern": shown.dedupe_pattern,
        "entities": rules.lines(shown.entities),
        "version": shown.version,
    }


def _seen(form: EditRuleForm | VersionForm) -> int:
    """Gives the version that the page showed."""
    text = str(form.version.data or "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidInput("The form lacks the rule's version. Open the rule's page again.", field="version")
    return int(text)
