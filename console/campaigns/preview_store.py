"""Reads the example person that a campaign's preview is filled for."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from console.audience.models import ListMember, Subscriber


@dataclass(frozen=True)
class Example:
    """A subscriber of the list, with the values of their merge fields."""

    email: str
    values: dict[str, Any]


def example(session: Session, account_id: int, list_id: int) -> Example | None:
    """Gives the list's first confirmed member among its first hundred; None when there is none."""
    members = (
        select(ListMember.subscriber_id)
        .where(ListMember.account_id == account_id, ListMember.list_id == list_id)
        .order_by(ListMember.subscriber_id)
        .limit(100)
    )
    row = session.execute(
        select(Subscriber.email, Subscriber.attributes)
        .where(
            Subscriber.account_id == account_id,
            Subscriber.id.in_(members),
            Subscriber.status == "confirmed",
        )
        .order_by(Subscriber.id)
        .limit(1)
    ).one_or_none()
    return Example(email=row.email, values=row.attributes) if row else None
