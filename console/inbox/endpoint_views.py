"""Screens of endpoints: the list, making and changing one, its address, its secrets, what was refused at it."""

from flask import current_app, flash, url_for

from console.config import Settings
from console.errors import Conflict, InvalidInput, NotFound
from console.inbox import endpoint_store, rule_store, service
from console.inbox.forms import ConfirmForm, EndpointForm, NewEndpointForm
from console.inbox.views import inbox
from console.inbox.words import RULE_WORDS, SCHEMES
from console.web.database import transaction
from console.web.guards import account_id, person, role
from console.web.pages import after_post, page, put_error

__all__ = ["inbox"]


@inbox.get("/endpoints")
@role("operator", "support")
def endpoints():
    """Lists the account's endpoints."""
    with transaction() as session:
        rows = endpoint_store.endpoint_rows(session, account_id())
    return page("inbox/endpoints", rows=rows, schemes=SCHEMES, refusal_days=endpoint_store.REFUSAL_DAYS)


@inbox.get("/endpoint/<id:endpoint_id>")
@role("operator", "support")
def endpoint(endpoint_id: int):
    """Shows one endpoint with its rules and what was refused at it."""
    with transaction() as session:
        shown = endpoint_store.show_endpoint(session, account_id(), endpoint_id)
        if shown.reader != "rules":
            raise NotFound("That is where a provider reports to. Look at the provider's page.")
        rules = rule_store.rules_of(session, account_id(), endpoint_id)
        refusals = endpoint_store.refusals(session, account_id(), endpoint_id)
    return page(
        "inbox/endpoint",
        endpoint=shown,
        rules=rules,
        refusals=refusals,
        refusal_days=endpoint_store.REFUSAL_DAYS,
        schemes=SCHEMES,
        rule_words=RULE_WORDS,
        base_url=_settings().base_url,
    )


@inbox.route("/new-endpoint", methods=["GET", "POST"])
@role("admin")
def new_endpoint():
    """Makes an endpoint and shows its address, this once: its secret part is kept as a hash alone."""
    form = NewEndpointForm()
    if form.validate_on_submit():
        try:
            with transaction() as session:
                made = service.add_endpoint(
                    session,
                    account_id(),
                    user_id=person().user_id,
                    name=form.name.data or "",
                    wanted=form.wanted(),
                    secret_key=_settings().secret_key,
                )
            return page("inbox/new_endpoint", form=form, made=made, url=made.url(_settings().base_url))
        except InvalidInput as error:
            put_error(form, error)
        except Conflict as error:
            put_error(form, InvalidInput(str(error), field="name"))
    return page("inbox/new_endpoint", form=form, made=None, status=422 if form.errors else 200)


@inbox.route("/edit-endpoint/<id:endpoint_id>", methods=["GET", "POST"])
@role("admin")
def edit_endpoint(endpoint_id: int):
    """Changes how an endpoint's events are verified and read."""
    with transaction() as session:
        shown = endpoint_store.show_endpoint(session, account_id(), endpoint_id)
    form = EndpointForm(obj=shown)
    if form.validate_on_submit():
        try:
            with transaction() as session:
                service.edit_endpoint(
                    session,
                    account_id(),
                    endpoint_id,
                    user_id=person().user_id,
                    wanted=form.wanted(),
                    secret_key=_settings().secret_key,
                )
            flash("The endpoint is changed. It is so for the next event.")
            return after_post(None, go_to=url_for(".endpoint", endpoint_id=endpoint_id))
        except InvalidInput as error:
            put_error(form, error)
    return page("inbox/edit_endpoint", form=form, endpoint=shown, status=422 if form.errors else 200)


@inbox.route("/renew/<id:endpoint_id>", methods=["GET", "POST"])
@role("admin")
def renew(endpoint_id: int):
    """Asks, then gives the endpoint a new address and shows it, this once."""
    form = ConfirmForm()
    with transaction() as session:
        shown = endpoint_store.show_endpoint(session, account_id(), endpoint_id)
        made = None
        if form.validate_on_submit():
            made = service.renew_token(session, account_id(), endpoint_id, user_id=person().user_id)
    url = made.url(_settings().base_url) if made else ""
    return page("inbox/renew", form=form, endpoint=shown, made=made, url=url)


@inbox.post("/drop-secrets/<id:endpoint_id>")
@role("admin")
def drop_secrets(endpoint_id: int):
    """Ends a change of secrets: only the newest is good."""
    with transaction() as session:
        service.drop_old_secrets(session, account_id(), endpoint_id, user_id=person().user_id)
    flash("Only the newest secret is good now.")
    return after_post(None, go_to=url_for(".endpoint", endpoint_id=endpoint_id))


@inbox.post("/close/<id:endpoint_id>")
@role("admin")
def close(endpoint_id: int):
    """Lets the endpoint take no more events."""
    with transaction() as session:
        service.open_or_close(session, account_id(), endpoint_id, user_id=person().user_id, is_active=False)
    flash("The endpoint takes no events now; its address is answered with 404.")
    return after_post(None, go_to=url_for(".endpoint", endpoint_id=endpoint_id))


@inbox.post("/reopen/<id:endpoint_id>")
@role("admin")
def reopen(endpoint_id: int):
    """Lets the endpoint take events again."""
    with transaction() as session:
        service.open_or_close(session, account_id(), endpoint_id, user_id=person().user_id, is_active=True)
    flash("The endpoint takes events again, at the same address.")
    return after_post(None, go_to=url_for(".endpoint", endpoint_id=endpoint_id))


def _settings() -> Settings:
    return current_app.config["SENDONCE_SETTINGS"]
