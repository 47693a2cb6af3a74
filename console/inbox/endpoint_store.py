"""SQL of endpoints: made, changed, listed, with what was refused at them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from console.errors import NotFound
from console.inbox.models import Endpoint, Event, Refusal, Rule

REFUSAL_DAYS = 30


@dataclass(frozen=True)
class EndpointRow:
    """One line of the list of endpoints."""

    id: int
    name: str
    scheme: str
    is_active: bool
    rules_on_count: int
    last_received_at: datetime | None
    refused_count: int


def insert_endpoint(session: Session, account_id: int, *, columns: dict[str, Any]) -> int | None:
    """Adds an endpoint; gives its number, None when the account has one with that name."""
    statement = insert(Endpoint).values(account_id=account_id, **columns).on_conflict_do_nothing()
    return session.scalars(statement.returning(Endpoint.id)).one_or_none()


def update_endpoint(session: Session, account_id: int, endpoint_id: int, *, columns: dict[str, Any]) -> bool:
    """Changes an endpoint's columns; tells whether there is such an endpoint."""
    statement = update(Endpoint).where(Endpoint.account_id == account_id, Endpoint.id == endpoint_id).values(**columns)
    return session.execute(statement.returning(Endpoint.id)).one_or_none() is not None


def show_endpoint(session: Session, account_id: int, endpoint_id: int) -> Endpoint:
    """Gives one endpoint.

    Raises: NotFound.
    """
    found = session.get(Endpoint, (account_id, endpoint_id), populate_existing=True)
    if found is None:
        raise NotFound(f"There is no endpoint {endpoint_id} in this account. Look in the list of endpoints.")
    return found


def endpoint_by_name(session: Session, account_id: int, name: str) -> Endpoint:
    """Gives the endpoint with this name.

    Raises: NotFound.
    """
    found = session.scalars(
        select(Endpoint).where(Endpoint.account_id == account_id, Endpoint.name == name)
    ).one_or_none()
    if found is None:
        raise NotFound(f"The account has no endpoint {name!r}. Make it with: sendonce inbox endpoint add NAME")
    return found


def endpoints(session: Session, account_id: int) -> Sequence[Endpoint]:
    """Gives the account's endpoints that rules read, by name."""
    return session.scalars(
        select(Endpoint).where(Endpoint.account_id == account_id, Endpoint.reader == "rules").order_by(Endpoint.name)
    ).all()


def endpoint_rows(session: Session, account_id: int) -> list[EndpointRow]:
    """Gives the account's endpoints with what is worth knowing at a glance, by name."""
    of_endpoint = (Endpoint.account_id, Endpoint.id)
    rules_on = (
        select(func.count()).where((Rule.account_id == of_endpoint[0]) & (Rule.endpoint_id == of_endpoint[1]))
        .where(Rule.status == "on").scalar_subquery()
    )  # fmt: skip
    # Along the index, newest first: no event is counted.
    newest = (
        select(Event.last_received_at).where(Event.account_id == of_endpoint[0], Event.endpoint_id == of_endpoint[1])
        .order_by(Event.id.desc()).limit(1).scalar_subquery()
    )  # fmt: skip
    refused = (
        select(func.coalesce(func.sum(Refusal.refused_count), 0))
        .where(Refusal.account_id == of_endpoint[0], Refusal.endpoint_id == of_endpoint[1])
        .where(Refusal.on_day > func.current_date() - REFUSAL_DAYS)
        .scalar_subquery()
    )
    query = select(
        Endpoint.id, Endpoint.name, Endpoint.scheme, Endpoint.is_active,
        rules_on.label("rules_on_count"), newest.label("last_received_at"), refused.label("refused_count"),
    ).where(Endpoint.account_id == account_id, Endpoint.reader == "rules").order_by(Endpoint.name)  # fmt: skip
    return [EndpointRow(**{**row._mapping, "refused_count": int(row.refused_count)}) for row in session.execute(query)]


def refusals(session: Session, account_id: int, endpoint_id: int) -> Sequence[Refusal]:
    """Gives what was refused at an endpoint in the last REFUSAL_DAYS days, newest day first."""
    return session.scalars(
        select(Refusal)
        .where(Refusal.account_id == account_id, Refusal.endpoint_id == endpoint_id)
        .where(Refusal.on_day > func.current_date() - REFUSAL_DAYS)
        .order_by(Refusal.on_day.desc(), Refusal.reason)
    ).all()
