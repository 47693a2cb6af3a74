"""Sign-in and sign-out."""

import hashlib

from flask import Blueprint, flash, redirect, request, session, url_for
from flask_login import current_user, login_user, logout_user

from console.accounts import service, store
from console.accounts.forms import EMAIL_CHARS_LIMIT, SLUG_CHARS_LIMIT, SignInForm
from console.accounts.models import User
from console.web.database import transaction
from console.web.forms import trimmed
from console.web.guards import Person, begin_session, person, public, safe_next
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
    begin_session()
    login_user(someone)
    return redirect(safe_next(request.args.get("next")), code=303)


@accounts.post("/sign-out")
@public
def sign_out():
    """Ends all sessions of the person, so that a copy of this one's cookie is worth nothing, here or elsewhere."""
    if current_user.is_authenticated:
        someone = person()
        with transaction() as work:
            store.end_sessions(work, someone.account_id, user_id=someone.user_id)
    logout_user()
    session.clear()
    flash("You have signed out, in all browsers.")
    return redirect(url_for("accounts.sign_in"), code=303)


def sign_in_person() -> str:
    """Gives whom the sign-in form that was sent is about, the same for every spelling that lets this person in."""
    slug, email = (trimmed(request.form.get(name, "")) or "" for name in ("account", "email"))
    # The form refuses what is longer, so nobody can sign in with it.
    if len(slug) > SLUG_CHARS_LIMIT or len(email) > EMAIL_CHARS_LIMIT:
        return ""
    slug, email_lower = service.sign_in_names(slug, email)
    return f"{slug}/{email_lower or ''}"


def load_person(account_id: int, user_id: int, seal: str) -> Person | None:
    """Gives the person of a session; None when the user is gone, inactive, has signed out, or has a new password."""
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
    return hashlib.sha256(f"{user.password_hash}/{user.session_version}".encode()).hexdigest()[:16]


def _only_account() -> str | None:
    with transaction() as work:
        return store.only_slug(work)
