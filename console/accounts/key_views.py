"""Screens of API keys, for admins: the list, making one (shown once), revoking one."""

from flask import url_for

from console.accounts import key_store, keys
from console.accounts.forms import ApiKeyForm, RevokeForm
from console.accounts.views import accounts
from console.errors import InvalidInput, NotFound
from console.web.database import transaction
from console.web.guards import account_id, person, role
from console.web.pages import after_post, page, put_error

__all__ = ["accounts"]


@accounts.get("/api-keys")
@role("admin")
def api_keys():
    """Lists the account's keys, those that work first."""
    with transaction() as session:
        found = key_store.keys(session, account_id())
    return page("accounts/api_keys", keys=found)


@accounts.route("/new-api-key", methods=["GET", "POST"])
@role("admin")
def new_api_key():
    """Makes a key and shows it, this once.

    The answer to the POST is the page itself and no redirect: the key would have to wait somewhere for the next
    request, and it is kept nowhere.
    """
    form = ApiKeyForm()
    if not form.validate_on_submit():
        return page("accounts/new_api_key", form=form, made=None, status=422 if form.errors else 200)
    try:
        with transaction() as session:
            made = keys.add_key(
                session,
                account_id(),
                scopes=form.scopes.data or [],
                name=form.name.data or "",
                calls_per_minute=form.calls_per_minute.data or 0,
                user_id=person().user_id,
            )
    except InvalidInput as error:
        put_error(form, error)
        return page("accounts/new_api_key", form=form, made=None, status=422)
    return page("accounts/new_api_key", form=form, made=made)


@accounts.route("/api-keys/<id:key_id>/revoke", methods=["GET", "POST"])
@role("admin")
def revoke(key_id: int):
    """Asks, then ends a key."""
    form = RevokeForm()
    with transaction() as session:
        key = key_store.find_key(session, account_id(), key_id)
        if key is None:
            raise NotFound(f"There is no API key {key_id} in this account.")
        if form.validate_on_submit():
            keys.revoke_key(session, account_id(), key_id, user_id=person().user_id)
            return after_post(None, go_to=url_for(".api_keys"))
    return page("accounts/revoke", key=key, form=form)
