"""Screens of message types: the list, one with what is odd about its keys, making one and setting one."""

import hashlib
import json
from dataclasses import asdict

from flask import current_app, flash, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from console.content import template_store
from console.errors import Conflict, InvalidInput, NotFound
from console.providers import store as provider_store
from console.sends import trigger_store, type_store
from console.sends.forms import CampaignTypeForm, MessageTypeForm
from console.sends.message_types import CAMPAIGN, duration, put_type
from console.sends.template_views import sends
from console.sends.type_store import TypeRow
from console.sends.words import CONFLICTS, DECISIONS, DOUBTS, MODES, ODDITIES
from console.web.database import transaction
from console.web.guards import account_id, person, role
from console.web.pages import after_post, page, put_error

__all__ = ["sends"]

_WORDS = {
    "modes": MODES,
    "conflicts": CONFLICTS,
    "doubts": DOUBTS,
    "decisions": DECISIONS,
    "oddities": ODDITIES,
    "duration": duration,
}


@sends.get("/message-types")
def message_types():
    """Lists the account's message types."""
    with transaction() as session:
        rows = type_store.all_types(session, account_id())
    return page("sends/message_types", rows=rows, **_WORDS)


@sends.get("/message-type/<type_name>")
def message_type(type_name: str):
    """Shows how messages of a type are treated, and which requests had keys that somebody should look at."""
    with transaction() as session:
        row = type_store.show(session, account_id(), type_name)
        odd = trigger_store.odd_of_type(session, account_id(), type_name)
    return page("sends/message_type", row=row, odd=odd, **_WORDS)


@sends.route("/new-message-type", methods=["GET", "POST"])
@role("admin")
def new_message_type():
    """Makes a message type."""
    form = MessageTypeForm()
    with transaction() as session:
        _offer(session, form)
    if not form.is_submitted():
        form.sender.data = current_app.config["SENDONCE_SETTINGS"].default_sender
    if form.validate_on_submit():
        try:
            row = form.row(form.name.data or "")
            with transaction() as session:
                _require_free(session, row.name)
                put_type(session, account_id(), row, user_id=person().user_id)
            return _gone_on(row, "Made")
        except InvalidInput as error:
            put_error(form, error)
    return page("sends/new_message_type", form=form, status=422 if form.errors else 200)


@sends.route("/edit-message-type/<type_name>", methods=["GET", "POST"])
@role("admin")
def edit_message_type(type_name: str):
    """Sets a message type; of the campaigns' own only what is not said by each campaign."""
    with transaction() as session:
        row = type_store.show(session, account_id(), type_name)
        shown = {"window": _window(row), "max_age": duration(row.age_cap_s), "seen": _print_of(row)}
        form = (CampaignTypeForm if row.name == CAMPAIGN else MessageTypeForm)(obj=row, data=shown)
        _offer(session, form)
    if isinstance(form, MessageTypeForm):
        del form.name
    if form.validate_on_submit():
        try:
            wanted = form.row(row.name, before=row)
            if form.seen.data != _print_of(row):
                raise Conflict(f"The message type {row.name} was set by somebody else meanwhile. Look at it again.")
            with transaction() as session:
                put_type(session, account_id(), wanted, user_id=person().user_id, seen=row)
            return _gone_on(wanted, "Set")
        except InvalidInput as error:
            put_error(form, error)
    return page("sends/edit_message_type", form=form, row=row, status=422 if form.errors else 200)


def _offer(session: Session, form: MessageTypeForm | CampaignTypeForm) -> None:
    """Lets the form choose among the account's templates and routes."""
    if isinstance(form, MessageTypeForm):
        form.offer(
            templates=[row.name for row in template_store.all_newest(session, account_id())],
            routes=[row.name for row in provider_store.routes(session, account_id())],
        )


def _require_free(session: Session, name: str) -> None:
    """Raises: InvalidInput when there is such a type; making one must not set another."""
    try:
        type_store.show(session, account_id(), name)
    except NotFound:
        return
    raise InvalidInput(f"There is already a message type {name!r}; choose another name, or set that one.", field="name")


def _gone_on(row: TypeRow, done: str) -> Response:
    flash(f"{done} the message type {row.name}; its next message is treated so.")
    return after_post(None, go_to=url_for(".message_type", type_name=row.name))


def _window(row: TypeRow) -> str:
    return "forever" if row.window_s is None else duration(row.window_s)


def _print_of(row: TypeRow) -> str:
    """Gives what tells whether the type stands as it stood on the page."""
    return hashlib.sha256(json.dumps(asdict(row)).encode()).hexdigest()
