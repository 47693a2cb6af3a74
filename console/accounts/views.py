"""Sign-in and sign-out."""

import hashlib

from flask import Blueprint, flash, redirect, request, session, url_for
from flask_login import current_user, login_user, logout_user

from console.accounts import service, store
from console.accounts.forms import SignInForm
from console.accounts.models import User
from console.web.database import transaction
from console.web.guards import Person, public, safe_next
from console.web.pages import page

accounts = Blueprint("accounts", __name__, url_prefix="/accounts")

# The same words for each of the three: which one was wrong is not a stranger's business.
WRONG = "Account, address and password don't fit together. Check all three and try again."


@accounts.route("/sign-in", methods=["GET", "POST"])
@public
def sign_in():
    """Lets a person in and leads to the page that was asked for, on this site only."""
    if current_user.is_authenticated:
        return redirect(safe_next(request.args.get("next")), code=303)
    form = SignInForm()
    if not form.is_submitted():
        form.account.data = request.args.get("account", "").strip() or _only_account()
        return page("accounts/sign_in", form=form)
    if not form.validate():
        return page("accounts/sign_in", form=form, status=422)
    someone = _authenticated(form)
    if someone is None:
        form.form_errors.append(WRONG)
        return page("accounts/sign_in", form=form, status=422)
    # A session of its own for each sign-in: what was in the browser before is not carried over.
    session.clear()
    session.permanent = True
    login_user(someone)
    return redirect(safe_next(request.args.get("next")), code=303)


@accounts.post("/sign-out")
@public
def sign_out():
    """Ends the session."""
    logout_user()
    session.clear()
    flash("You have signed out.")
    return redirect(url_for("accounts.sign_in"), code=303)


def load_person(account_id: int, user_id: int, seal: str) -> Person | None:
    """Gives the person of a session; None when the user is gone, inactive, or has a new password."""
    with transaction() as work:
        user = store.user_by_id(work, account_id, user_id)
        if user is None or not user.is_active or _seal(user) != seal:
            return None
        return _person(user, account_name=store.account_by_id(work, account_id).name)


def _authenticated(form: SignInForm) -> Person | None:
    with transaction() as work:
        user = service.authenticate(
            work, slug=form.account.data or "", email=form.email.data or "", password=form.password.data or ""
        )
        if user is None:
            return None
        return _person(user, account_name=store.account_by_id(work, user.account_id).name)


def _person(user: User, *, account_name: str) -> Person:
    return Person(
        account_id=user.account_id,
        user_id=user.id,
        name=user.name,
        email=user.email,
        roles=frozenset(user.roles),
        account_name=account_name,
        seal=_seal(user),
    )


def _seal(user: User) -> str:
    return hashlib.sha256(user.password_hash.encode()).hexdigest()[:16]


def _only_account() -> str | None:
    with transaction() as work:
        return store.only_slug(work)
