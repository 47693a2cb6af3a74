"""Which database roles may hand over messages for an account, in their own transactions, by sendonce.send."""

from sqlalchemy.orm import Session

from console.accounts import store as accounts_store
from console.errors import InvalidInput, NotFound
from console.sends import grant_store


def grant(session: Session, account_id: int, role: str) -> bool:
    """Lets a role of the database call sendonce.send for the account, and read nothing.

    Gives:  whether that is new.
    Raises: NotFound when there is no such role; InvalidInput for a superuser, who could not be kept from the tables.
    """
    is_superuser = grant_store.is_superuser(session, role)
    if is_superuser is None:
        raise NotFound(
            f"The database server has no role {role!r}. Make it first: CREATE ROLE {role} LOGIN PASSWORD '...'"
        )
    if is_superuser:
        raise InvalidInput(
            f"The role {role!r} is a superuser, who may read and send everything as it is. Make a role for the"
            " application.",
            field="role",
        )
    is_new = grant_store.add(session, account_id, role)
    if is_new:
        accounts_store.record(session, account_id, user_id=None, action="sql.grant", object_id=role)
    return is_new


def revoke(session: Session, account_id: int, role: str) -> None:
    """Takes the account from a role, in force with its next call.

    Raises: NotFound when it had not been granted.
    """
    if not grant_store.remove(session, account_id, role):
        raise NotFound(f"The role {role!r} may not send for this account; there is nothing to revoke.")
    accounts_store.record(session, account_id, user_id=None, action="sql.revoke", object_id=role)
