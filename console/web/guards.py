"""Who may see what: the signed-in person, roles, and which pages are open to everybody.

Every view asks for a sign-in unless it is marked `@public`; forgetting a guard locks a page, it doesn't open it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from flask import Flask, Response, current_app, redirect, request, session, url_for
from flask_login import LoginManager, UserMixin, current_user
from werkzeug.wrappers import Response as AnyResponse

from console import clock
from console.errors import Forbidden

View = TypeVar("View", bound=Callable[..., Any])

# Folders of files that hold nothing private.
_OPEN_ENDPOINTS = frozenset({"static", "bootstrap.static", "htmx"})

# Counted from the sign-in; the cookie's own 12 hours begin anew with every answer.
SESSION_AGE_LIMIT_S = 12 * 3600


@dataclass(eq=False)
class Person(UserMixin):
    """Who is signed in, as screens and guards need it."""

    account_id: int
    user_id: int
    name: str
    email: str
    roles: frozenset[str]
    account_name: str
    seal: str  # changes with the password and with a sign-out, which end the old sessions

    def get_id(self) -> str:
        return f"{self.account_id}:{self.user_id}:{self.seal}"

    def has_role(self, *roles: str) -> bool:
        """Tells whether the person holds one of the roles; an admin holds all."""
        return "admin" in self.roles or not self.roles.isdisjoint(roles)


def init_app(app: Flask, *, load_person: Callable[[int, int, str], Person | None]) -> None:
    """Puts the guards in front of every view of the app.

    Takes: load_person, giving the person of (account_id, user_id, seal), None when the session is no longer good.
    """
    manager = LoginManager(app)

    @manager.user_loader
    def load(session_id: str) -> Person | None:
        if _age_s() > SESSION_AGE_LIMIT_S:
            return None
        match = re.fullmatch(r"(\d{1,18}):(\d{1,18}):([0-9a-f]+)", session_id)
        return load_person(int(match[1]), int(match[2]), match[3]) if match else None

    app.before_request(_require_sign_in)


def begin_session() -> None:
    """Signs the moment into the session: it ends SESSION_AGE_LIMIT_S later however much it is used."""
    session["signed_in_at"] = int(clock.now().timestamp())


def _age_s() -> float:
    return clock.now().timestamp() - session.get("signed_in_at", 0)


def public(view: View) -> View:
    """Marks a view that needs no sign-in."""
    view.is_public = True  # type: ignore[attr-defined]
    return view


def role(*roles: str) -> Callable[[View], View]:
    """Lets only people with one of the roles (or admins) into a view; others get a 403 that says who may."""

    def guard(view: View) -> View:
        @wraps(view)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            if not person().has_role(*roles):
                raise Forbidden(
                    f"Only people with the role {' or '.join((*roles, 'admin'))} may do this."
                    " Ask one of them, or ask an admin to give you the role."
                )
            return view(*args, **kwargs)

        guarded.roles = roles  # type: ignore[attr-defined]
        return cast(View, guarded)

    return guard


def person() -> Person:
    """Gives who is signed in. Only for views that are not public."""
    return cast(Person, current_user)


def account_id() -> int:
    """Gives the account that the request works in: every query of a view starts with it."""
    return person().account_id


def safe_next(target: str | None) -> str:
    """Gives `target` when it is a path on this site, else the first page: no open redirect."""
    home = url_for("today.index")
    if not target or not target.startswith("/") or "//" in target:
        return home
    # Browsers read a backslash as a slash and drop tabs and line breaks.
    if "\\" in target or any(ord(character) < 0x21 for character in target):
        return home
    parts = urlsplit(target)
    return home if parts.scheme or parts.netloc else target


def _require_sign_in() -> AnyResponse | None:
    view = current_app.view_functions.get(request.endpoint or "")
    # No view at all is a 404, for which nobody needs to sign in.
    if view is None or request.endpoint in _OPEN_ENDPOINTS or getattr(view, "is_public", False):
        return None
    if current_user.is_authenticated:
        return None
    return _ask_to_sign_in()


def _ask_to_sign_in() -> AnyResponse:
    if request.headers.get("HX-Request") == "true":
        return Response(status=401, headers={"HX-Redirect": url_for("accounts.sign_in")})
    if request.method != "GET":
        return redirect(url_for("accounts.sign_in"), code=303)
    wanted = request.full_path if request.query_string else request.path
    return redirect(url_for("accounts.sign_in", next=None if wanted == "/" else wanted), code=303)
