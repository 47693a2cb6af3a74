"""Rules of accounts and the people who sign in: slugs, roles, sign-in. SQL is in store.py."""

import re
from collections.abc import Collection

from sqlalchemy.orm import Session

from console.accounts import passwords, store
from console.accounts.models import ROLES, Account, User
from console.audience import address
from console.errors import Conflict, Forbidden, InvalidInput

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def add_account(session: Session, slug: str, *, name: str | None = None) -> Account:
    """Makes an account and its message type 'campaign'.

    Takes:  slug, 1 to 63 of a-z, 0-9 and -, not at the ends; name, for people, the slug when not given.
    Raises: InvalidInput, Conflict when the slug is taken.
    """
    if not _SLUG.fullmatch(slug):
        raise InvalidInput(
            f"An account's slug has 1 to 63 of the characters a-z, 0-9 and - (not at its ends); {slug!r} has not.",
            field="slug",
        )
    account = store.insert_account(session, slug=slug, name=(name or "").strip() or slug)
    if account is None:
        raise Conflict(f"There is already an account {slug!r}; choose another slug.")
    store.record(session, account.id, user_id=None, action="account.add", object_id=account.id, details={"slug": slug})
    return account


def add_user(
    session: Session, account_id: int, *, email: str, name: str, roles: Collection[str], password: str
) -> User:
    """Adds a person who may sign in.

    Takes:  name, the part before the @ when empty; roles, one or more of accounts.models.ROLES.
    Raises: InvalidInput naming email, roles or password; Conflict when the account has a user with that address.
    """
    parsed = address.parse(email)
    unknown = sorted(set(roles) - set(ROLES))
    if unknown or not roles:
        raise InvalidInput(
            f"Roles are {', '.join(ROLES)}"
            + (f"; {', '.join(unknown)} is none of them." if unknown else "; give one."),
            field="roles",
        )
    columns = {
        "email": parsed.email,
        "email_lower": parsed.email_lower,
        "name": name.strip() or parsed.email.partition("@")[0],
        "password_hash": passwords.hash_password(password),
        "roles": [role for role in ROLES if role in roles],
    }
    user = store.insert_user(session, account_id, user=columns)
    if user is None:
        raise Conflict(f"The account already has a user {parsed.email}.")
    store.record(
        session, account_id, user_id=None, action="user.add", object_id=user.id, details={"roles": columns["roles"]}
    )
    return user


def sign_in_names(slug: str, email: str) -> tuple[str, str | None]:
    """Gives the slug and the address that a sign-in looks for, however they are typed; None for what is no address."""
    try:
        email_lower = address.parse(email).email_lower
    except InvalidInput:
        email_lower = None
    return slug.strip().lower(), email_lower


def authenticate(session: Session, *, slug: str, email: str, password: str) -> User | None:
    """Gives the user when account, address and password fit and the user is active, else None.

    Takes as long, within the noise of the hash, whether the account, the user or only the password is wrong.
    """
    slug, email_lower = sign_in_names(slug, email)
    account = store.find_account(session, slug)
    user = store.find_user(session, account.id, email_lower) if account and email_lower else None
    if not passwords.is_right(password, user.password_hash if user else None):
        return None
    if user is None or not user.is_active:
        return None
    renewed = passwords.renewed(password, user.password_hash)
    store.note_sign_in(session, user.account_id, user_id=user.id, password_hash=renewed)
    return user


def acting_user(session: Session, account_id: int, user_id: int, *roles: str, doing: str) -> User:
    """Gives the account's user who is about to do something, after making sure that they may.

    Raises: Forbidden.
    """
    user = store.user_by_id(session, account_id, user_id)
    if user is None:
        raise Forbidden(f"Only people of this account may {doing}.")
    require_role(user, *roles, doing=doing)
    return user


def require_role(user: User, *roles: str, doing: str) -> None:
    """Makes sure that the user holds one of the roles, or is an admin.

    Raises: Forbidden saying who may.
    """
    if not user.is_active:
        raise Forbidden(f"{user.email} is no longer active and may not {doing}.")
    if not {*roles, "admin"} & set(user.roles):
        raise Forbidden(
            f"{user.name} ({user.email}) may not {doing}: it takes the role {' or '.join((*roles, 'admin'))}."
            " Ask somebody who holds it."
        )
