"""SQL of the database roles that may hand over messages by sendonce.send: who, and for which account."""

from psycopg import sql
from sqlalchemy import text
from sqlalchemy.orm import Session

_RIGHTS = ("USAGE ON SCHEMA sendonce", "EXECUTE ON FUNCTION sendonce.send")


def is_superuser(session: Session, role: str) -> bool | None:
    """Says whether the role is a superuser; None when there is no such role."""
    return session.execute(text("SELECT rolsuper FROM pg_roles WHERE rolname = :role"), {"role": role}).scalar()


def add(session: Session, account_id: int, role: str) -> bool:
    """Lets the role call the function for the account; gives whether that is new."""
    for right in _RIGHTS:
        _run(session, sql.SQL("GRANT {} TO {}").format(sql.SQL(right), sql.Identifier(role)))
    return bool(
        session.execute(
            text(
                "INSERT INTO sql_grants (account_id, role_name) VALUES (:account_id, :role)"
                " ON CONFLICT DO NOTHING RETURNING true"
            ),
            {"account_id": account_id, "role": role},
        ).scalar()
    )


def remove(session: Session, account_id: int, role: str) -> bool:
    """Takes the account from the role, and with its last account the function; gives whether it had it."""
    values = {"account_id": account_id, "role": role}
    removed = session.execute(
        text("DELETE FROM sql_grants WHERE account_id = :account_id AND role_name = :role RETURNING true"), values
    ).scalar()
    # The whole installation's rows are asked: the right to call is one for all accounts.
    has_more = session.execute(text("SELECT EXISTS (SELECT FROM sql_grants WHERE role_name = :role)"), values).scalar()
    if removed and not has_more and is_superuser(session, role) is not None:
        for right in _RIGHTS:
            _run(session, sql.SQL("REVOKE {} FROM {}").format(sql.SQL(right), sql.Identifier(role)))
    return bool(removed)


def roles(session: Session, account_id: int) -> list[str]:
    """Gives the roles that may hand over messages for the account, by name."""
    return list(
        session.execute(
            text("SELECT role_name FROM sql_grants WHERE account_id = :account_id ORDER BY role_name"),
            {"account_id": account_id},
        ).scalars()
    )


def _run(session: Session, statement: sql.Composed) -> None:
    # By the driver itself, which would read a % in a role's name as the beginning of a parameter.
    session.connection().exec_driver_sql(statement.as_string().replace("%", "%%"))
