"""Screens for admins: the account's providers and routes. Secrets go in and never come out."""

from flask import Blueprint, current_app, flash, request, url_for

from console.errors import InvalidInput
from console.providers import service, store
from console.providers.forms import RouteForm, field_of, form_of
from console.providers.kinds import KINDS
from console.providers.registry import OWN, open_provider
from console.providers.service import Draft
from console.providers.trouble_store import troubles
from console.providers.words import abilities
from console.web.database import transaction
from console.web.guards import account_id, person, role
from console.web.pages import after_post, page, put_error

providers = Blueprint("providers", __name__, url_prefix="/providers")


@providers.get("/")
@role("admin")
def index():
    """Lists providers and routes, and which provider is in trouble."""
    with transaction() as session:
        rows = store.configured(session, account_id())
        routes = store.routes(session, account_id())
        known = {each.provider: each for each in troubles(session, account_id())}
    has_default = any(route.name == store.DEFAULT_ROUTE for route in routes)
    return page(
        "providers/index",
        rows=rows,
        routes=routes,
        has_default=has_default,
        troubles=known,
        kinds=KINDS,
        own=OWN,
        abilities=abilities,
    )


@providers.route("/new", methods=["GET", "POST"])
@role("admin")
def new():
    """First asks for the kind, then for what that kind wants to know."""
    name = request.args.get("kind", "")
    kind = KINDS.get(name)
    if kind is None:
        return page("providers/new", kind=None, kinds=KINDS, abilities=abilities)
    form = form_of(kind, is_new=True)
    if form.validate_on_submit():
        draft = Draft(name=form.name.data or "", kind=name, settings=form.given_settings(), secret=form.given_secret())
        try:
            with transaction() as session:
                service.add(
                    session, account_id(), user_id=person().user_id, draft=draft, secret_key=_settings().secret_key
                )
            flash(f"Added {draft.name}. Check it before you put it into a route.")
            return after_post(None, go_to=url_for(".index"))
        except InvalidInput as error:
            put_error(form, InvalidInput(str(error), field=field_of(error.field)))
    return page("providers/new", kind=kind, form=form, status=422 if form.errors else 200)


@providers.route("/<id:provider_id>/edit", methods=["GET", "POST"])
@role("admin")
def edit(provider_id: int):
    """Changes a provider's settings, and its secret when one is filled in."""
    with transaction() as session:
        row = store.provider_by_id(session, account_id(), provider_id)
    kind = KINDS[row.kind]
    form = form_of(kind, is_new=False, values=row.settings)
    if form.validate_on_submit():
        try:
            with transaction() as session:
                service.edit(
                    session,
                    account_id(),
                    provider_id,
                    user_id=person().user_id,
                    version=_version(request.form.get("version", "")),
                    settings=form.given_settings(),
                    secret=form.given_secret(),
                    secret_key=_settings().secret_key,
                )
            flash(f"Changed {row.name}.")
            return after_post(None, go_to=url_for(".index"))
        except InvalidInput as error:
            put_error(form, InvalidInput(str(error), field=field_of(error.field)))
    return page("providers/edit", row=row, kind=kind, form=form, status=422 if form.errors else 200)


@providers.post("/<id:provider_id>/check")
@role("admin")
def check(provider_id: int):
    """Asks the provider whether it would take messages, without sending one."""
    with transaction() as session:
        row = store.provider_by_id(session, account_id(), provider_id)
    trouble = open_provider(_settings(), row).check()
    if trouble is None:
        flash(f"{row.name} answers and knows us.")
    else:
        flash(f"{row.name} takes nothing: {trouble.reason}", "bad")
    return after_post(None, go_to=url_for(".index"))


@providers.route("/route", methods=["GET", "POST"])
@role("admin")
def route():
    """Makes a route, or changes the one that the address line names."""
    form = RouteForm()
    with transaction() as session:
        names = [OWN, *(row.name for row in store.configured(session, account_id()))]
        if request.method == "GET" and (asked := request.args.get("name")):
            form.name.data = asked
            form.providers.data = ", ".join(store.route(session, account_id(), asked) or ())
    if form.validate_on_submit():
        wanted = (form.providers.data or "").split(",")
        try:
            with transaction() as session:
                service.set_route(
                    session, account_id(), user_id=person().user_id, name=form.name.data or "", providers=wanted
                )
            flash(f"The route {form.name.data} is set.")
            return after_post(None, go_to=url_for(".index"))
        except InvalidInput as error:
            put_error(form, error)
    return page("providers/route", form=form, names=names, status=422 if form.errors else 200)


def _settings():
    return current_app.config["SENDONCE_SETTINGS"]


def _version(typed: str) -> int:
    """Gives the version that the page showed; one that can't be leads to the answer for a page that is out of date."""
    return int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 19 else 0
