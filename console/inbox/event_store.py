"""SQL of events for screens and commands: pages, one event with its deliveries, notices, and forgetting bodies."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, text, true, update
from sqlalchemy.orm import Session, aliased

from console.errors import InvalidInput, NotFound
from console.inbox.models import Endpoint, Event, Notice, Queued, Redelivery, Rule

STATUSES = ("stored", "done", "no_rule", "failed")
# Figures on a page stop here: nobody needs to know whether 10,000 or 2,000,000 wait.
COUNT_LIMIT = 10_000
DELIVERIES_SHOWN = 100
FORGET_ROWS = 1000


@dataclass(frozen=True)
class EventRow:
    """One line of the list of events."""

    id: int
    endpoint_id: int
    endpoint: str
    reader: str
    event_id: str
    id_source: str
    event_type: str
    status: str
    reason: str
    received_at: datetime
    delivery_count: int
    last_received_at: datetime
    run_count: int
    rule: str | None
    send_id: int | None
    decision: str
    request_id: str
    correlation_id: str
    has_body: bool


@dataclass(frozen=True)
class EventDetail:
    """One event with its headers, its body (None once it is forgotten) and the deliveries after the first."""

    row: EventRow
    headers: dict[str, str]
    body: bytes | None
    body_bytes: int
    rule_id: int | None
    rule_version: int | None
    ran_at: datetime | None
    redeliveries: Sequence[Redelivery]


@dataclass(frozen=True)
class NoticeRow:
    """An open notice about two endpoints that seem to get the same events; they may be one and the same."""

    id: int
    kind: str
    endpoint_id: int
    endpoint: str
    other_endpoint_id: int
    other_endpoint: str
    event_id: int
    other_event_id: int
    found_at: datetime


_COLUMNS: tuple[Any, ...] = (
    Event.id, Event.endpoint_id, Endpoint.name.label("endpoint"), Endpoint.reader,
    Event.event_id, Event.id_source, Event.event_type,
    Event.status, Event.reason, Event.received_at, Event.delivery_count, Event.last_received_at, Event.run_count,
    Rule.name.label("rule"), Event.send_id, Event.decision, Event.request_id, Event.correlation_id,
    Event.body.is_not(None).label("has_body"),
)  # fmt: skip


def page(
    session: Session,
    account_id: int,
    *,
    reader: str = "rules",
    endpoint_id: int | None = None,
    status: str | None = None,
    before_id: int | None = None,
    limit: int = 50,
) -> list[EventRow]:
    """Gives events for a reader, newest first, of one endpoint or in one state when asked.

    Raises: InvalidInput when `status` is no state of an event.
    """
    if status is not None and status not in STATUSES:
        raise InvalidInput(
            f"{status[:40]!r} is no state of an event; use one of {', '.join(STATUSES)}.", field="status"
        )
    query = _query(account_id).where(Endpoint.reader == reader)
    if endpoint_id is not None:
        query = query.where(Event.endpoint_id == endpoint_id)
    elif status in (None, "done"):
        query = query.where(Event.id.in_(_newest(account_id, reader, before_id=before_id, status=status, limit=limit)))
    if status is not None:
        # Written into the statement: bound, it would hide the partial index from a generic plan.
        query = query.where(Event.status == text(f"'{status}'"))
    if status == "stored":
        # Few wait, and the queue knows them.
        waiting = select(Queued.event_id).where(Queued.account_id == account_id)
        query = query.where(Event.id.in_(waiting))
    if before_id is not None:
        query = query.where(Event.id < before_id)
    rows = session.execute(query.order_by(Event.id.desc()).limit(limit))
    return [EventRow(**row._mapping) for row in rows]


def show_event(session: Session, account_id: int, event_id: int) -> EventDetail:
    """Gives one event, by its number here.

    Raises: NotFound.
    """
    query = _query(account_id).where(Event.id == event_id)
    extra = (Event.headers, Event.body, Event.body_bytes, Event.rule_id, Event.rule_version, Event.ran_at)
    row = session.execute(query.add_columns(*extra)).one_or_none()
    if row is None:
        raise NotFound(f"There is no event {event_id} in this account. Look in the list of events.")
    fields = dict(row._mapping)
    own = {column.name: fields.pop(column.name) for column in extra}
    redeliveries = session.scalars(
        select(Redelivery)
        .where(Redelivery.account_id == account_id, Redelivery.event_id == event_id)
        .order_by(Redelivery.id)
        .limit(DELIVERIES_SHOWN)
    ).all()
    return EventDetail(row=EventRow(**fields), redeliveries=redeliveries, **own)


def counts(session: Session, account_id: int, *, reader: str = "rules") -> dict[str, int]:
    """Gives how many events for a reader wait, found no rule or failed; each counted up to COUNT_LIMIT + 1."""
    waiting = (
        select(Queued.event_id).where(Queued.account_id == account_id, Queued.reader == reader).limit(COUNT_LIMIT + 1)
    )
    found = {"stored": session.scalar(select(func.count()).select_from(waiting.subquery())) or 0}
    for status in ("no_rule", "failed"):
        rows = (
            select(Event.id)
            .join(Endpoint, (Endpoint.account_id == Event.account_id) & (Endpoint.id == Event.endpoint_id))
            .where(Event.account_id == account_id, Event.status == text(f"'{status}'"), Endpoint.reader == reader)
        )
        limited = rows.limit(COUNT_LIMIT + 1).subquery()
        found[status] = session.scalar(select(func.count()).select_from(limited)) or 0
    return found


def notices(session: Session, account_id: int) -> list[NoticeRow]:
    """Gives the account's open notices, newest first."""
    one, other = aliased(Endpoint), aliased(Endpoint)
    query = (
        select(
            Notice.id, Notice.kind, Notice.endpoint_id, one.name.label("endpoint"), Notice.other_endpoint_id,
            other.name.label("other_endpoint"), Notice.event_id, Notice.other_event_id, Notice.found_at,
        )
        .join(one, (one.account_id == Notice.account_id) & (one.id == Notice.endpoint_id))
        .join(other, (other.account_id == Notice.account_id) & (other.id == Notice.other_endpoint_id))
        .where(Notice.account_id == account_id, Notice.closed_at.is_(None))
        .order_by(Notice.id.desc())
    )  # fmt: skip
    return [NoticeRow(**row._mapping) for row in session.execute(query)]


def close_notice(session: Session, account_id: int, notice_id: int, *, user_id: int) -> bool:
    """Closes a notice; tells whether it was open."""
    statement = (
        update(Notice)
        .where(Notice.account_id == account_id, Notice.id == notice_id, Notice.closed_at.is_(None))
        .values(closed_at=func.now(), closed_by=user_id)
    )
    return session.execute(statement.returning(Notice.id)).one_or_none() is not None


def forget_bodies(session: Session, *, older_days: int, limit: int = FORGET_ROWS) -> int:
    """Empties bodies and headers of events that came longer ago and wait for nobody; gives how many.

    The event itself stays: a redelivery that comes years later is known still.
    """
    old = (
        select(Event.account_id, Event.id)
        .where(Event.body.is_not(None), Event.received_at < func.now() - func.make_interval(0, 0, 0, older_days))
        .where(Event.status != "stored")
        .order_by(Event.received_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
        .cte("old")
    )
    statement = (
        update(Event)
        .where(Event.account_id == old.c.account_id, Event.id == old.c.id)
        .values(body=None, headers=text("'{}'::jsonb"))
    )
    return len(session.execute(statement.returning(Event.id)).all())


def _newest(account_id: int, reader: str, *, before_id: int | None, status: str | None, limit: int):
    """Gives the numbers of the newest events of each of the reader's endpoints: along an index, past nobody else's."""
    each = select(Event.id).where(Event.account_id == account_id, Event.endpoint_id == Endpoint.id)
    if before_id is not None:
        each = each.where(Event.id < before_id)
    if status is not None:
        each = each.where(Event.status == status)
    newest = each.order_by(Event.id.desc()).limit(limit).lateral()
    return select(newest.c.id).join_from(Endpoint, newest, true()).where(
        Endpoint.account_id == account_id, Endpoint.reader == reader
    )  # fmt: skip


def _query(account_id: int):
    return (
        select(*_COLUMNS)
        .join(Endpoint, (Endpoint.account_id == Event.account_id) & (Endpoint.id == Event.endpoint_id))
        .outerjoin(Rule, (Rule.account_id == Event.account_id) & (Rule.id == Event.rule_id))
        .where(Event.account_id == account_id)
    )
