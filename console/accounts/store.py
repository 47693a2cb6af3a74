"""SQL of accounts, their users and the audit log. Rules (roles, passwords, slugs) belong to service.py."""

from typing import Any

from sqlalchemy import func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from console.accounts.models import Account, AuditEntry, User
from console.audience.address import parse
from console.errors import NotFound


def insert_account(session: Session, *, slug: str, name: str) -> Account | None:
    """Adds an account with the message type that its campaigns use; None when the slug is taken."""
    statement = upsert(Account).values(slug=slug, name=name).on_conflict_do_nothing().returning(Account)
    account = session.scalars(statement).one_or_none()
    if account is not None:
        # Its table belongs to sends, above this package; all its other columns have defaults in the database.
        session.execute(
            text("INSERT INTO message_types (account_id, name) VALUES (:account_id, 'campaign')"),
            {"account_id": account.id},
        )
    return account


def insert_user(session: Session, account_id: int, *, user: dict[str, Any]) -> User | None:
    """Adds a user with the given columns; None when the account has one with that address."""
    statement = upsert(User).values(account_id=account_id, **user).on_conflict_do_nothing().returning(User)
    return session.scalars(statement).one_or_none()


def find_account(session: Session, slug: str) -> Account | None:
    """Gives the account with this slug, None when there is none."""
    return session.scalars(select(Account).where(Account.slug == slug)).one_or_none()


def account_by_slug(session: Session, slug: str) -> Account:
    """Gives the account with this slug.

    Raises: NotFound.
    """
    account = find_account(session, slug)
    if account is None:
        raise NotFound(f"There is no account {slug!r}. Make it with: sendonce account add SLUG")
    return account


def account_by_id(session: Session, account_id: int) -> Account:
    """Gives the account.

    Raises: NotFound.
    """
    account = session.get(Account, account_id)
    if account is None:
        raise NotFound(f"There is no account {account_id}.")
    return account


def only_slug(session: Session) -> str | None:
    """Gives the account's slug when there is exactly one account, so that nobody has to type it; else None."""
    slugs = session.scalars(select(Account.slug).limit(2)).all()
    return slugs[0] if len(slugs) == 1 else None


def user_by_email(session: Session, account_id: int, email: str) -> User:
    """Gives the user with this address, in whatever case it is typed.

    Raises: NotFound.
    """
    user = find_user(session, account_id, parse(email).email_lower)
    if user is None:
        raise NotFound(f"The account has no user {email!r}. Add one with: sendonce user add EMAIL")
    return user


def find_user(session: Session, account_id: int, email_lower: str) -> User | None:
    """Gives the user with this normalised address, None when there is none."""
    return session.scalars(
        select(User).where(User.account_id == account_id, User.email_lower == email_lower)
    ).one_or_none()


def user_by_id(session: Session, account_id: int, user_id: int) -> User | None:
    """Gives the user, None when the account has none with this number."""
    return session.get(User, (account_id, user_id))


def users(session: Session, account_id: int) -> list[User]:
    """Gives the account's users, in the order they were added."""
    return list(session.scalars(select(User).where(User.account_id == account_id).order_by(User.id)))


def note_sign_in(session: Session, account_id: int, *, user_id: int, password_hash: str) -> None:
    """Writes down the moment of a sign-in, and the password's hash, renewed when its cost has been raised."""
    session.execute(
        update(User)
        .where(User.account_id == account_id, User.id == user_id)
        .values(signed_in_at=func.now(), password_hash=password_hash)
    )


def end_sessions(session: Session, account_id: int, *, user_id: int) -> None:
    """Ends all sessions that the person has, in whatever browser."""
    session.execute(
        update(User)
        .where(User.account_id == account_id, User.id == user_id)
        .values(session_version=User.session_version + 1)
    )


def record(
    session: Session,
    account_id: int,
    *,
    user_id: int | None,
    action: str,
    object_id: int | str,
    details: dict[str, Any] | None = None,
) -> None:
    """Adds to the audit log who did what, in the transaction that does it.

    Takes: user_id, None for the command line without --as, the scheduler and people who get mail; action, such as
           campaign.approve; details, JSON values.
    """
    session.execute(
        insert(AuditEntry).values(
            account_id=account_id, user_id=user_id, action=action, object_id=str(object_id), details=details or {}
        )
    )
