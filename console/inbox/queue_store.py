"""SQL of the queue: one event is taken, read and marked in one transaction; and what is noticed about it on the way."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

# Equal bodies at two places are one subscription too many when they come within this time.
DOUBLE_S = 10
# Whoever reads an event may meet a transaction that holds the same dedupe key for long: the next event goes first.
LOCK_TIMEOUT = "2s"

# Taken by its place in the queue, which nobody else needs; the event itself stays free for its redeliveries.
_TAKE = text(
    """
    SELECT q.account_id, q.event_id AS id, e.endpoint_id, p.name AS endpoint, e.event_id, e.id_source, e.event_type,
           e.body, e.body_sha256, e.received_at, e.request_id, e.correlation_id, e.send_id, e.rule_id, e.rule_version,
           e.decision
      FROM inbox_queue q
      JOIN inbox_events e ON e.account_id = q.account_id AND e.id = q.event_id
      JOIN inbox_endpoints p ON p.account_id = e.account_id AND p.id = e.endpoint_id
     WHERE q.reader = :reader AND q.due_at <= now()
     ORDER BY q.due_at, q.event_id
     LIMIT 1
       FOR UPDATE OF q SKIP LOCKED
    """
)

_FINISH = text(
    """
    UPDATE inbox_events
       SET status = :status, reason = :reason, rule_id = :rule_id, rule_version = :rule_version, send_id = :send_id,
           decision = :decision, run_count = run_count + 1, ran_at = now()
     WHERE account_id = :account_id AND id = :id AND status = 'stored'
    """
)

_LEAVE = text("DELETE FROM inbox_queue WHERE account_id = :account_id AND event_id = :id")

_POSTPONE = text(
    """
    UPDATE inbox_queue SET due_at = now() + make_interval(secs => :wait_s)
     WHERE account_id = :account_id AND event_id = :id
    """
)

# An event that is being read is `stored` until its reader commits, so it is never put back under its reader's hands.
_PUT_BACK = text(
    """
    WITH back AS (
        UPDATE inbox_events SET status = 'stored', reason = ''
         WHERE account_id = :account_id AND id = ANY(:ids) AND status IN ('done','no_rule','failed')
           AND body IS NOT NULL
        RETURNING id, endpoint_id
    ), queued AS (
        INSERT INTO inbox_queue (account_id, event_id, reader)
        SELECT :account_id, b.id, p.reader
          FROM back b JOIN inbox_endpoints p ON p.account_id = :account_id AND p.id = b.endpoint_id
        ON CONFLICT DO NOTHING
    )
    SELECT id FROM back ORDER BY id
    """
)

# A hash is no id that somebody gave, and two systems that count from 1 meet at every number: then the type must be
# equal too.
_NOTE_SAME_ID = text(
    """
    INSERT INTO inbox_notices (account_id, kind, endpoint_id, other_endpoint_id, event_id, other_event_id)
    SELECT :account_id, 'same_id', least(e.endpoint_id, :endpoint_id), greatest(e.endpoint_id, :endpoint_id), :id, e.id
      FROM inbox_events e
     WHERE e.account_id = :account_id AND e.event_id = :event_id AND e.endpoint_id <> :endpoint_id
       AND e.id_source <> 'hash' AND :id_source <> 'hash'
       AND (NOT :is_number OR e.event_type = :event_type)
    ON CONFLICT (account_id, endpoint_id, other_endpoint_id) WHERE closed_at IS NULL DO NOTHING
    RETURNING other_endpoint_id
    """
)

_NOTE_SAME_BODY = text(
    """
    INSERT INTO inbox_notices (account_id, kind, endpoint_id, other_endpoint_id, event_id, other_event_id)
    SELECT :account_id, 'same_body', least(e.endpoint_id, :endpoint_id), greatest(e.endpoint_id, :endpoint_id), :id,
           e.id
      FROM inbox_events e
     WHERE e.account_id = :account_id AND e.body_sha256 = :body_sha256 AND e.id <> :id AND e.body_bytes > 2
       AND e.received_at BETWEEN CAST(:received_at AS timestamptz) - make_interval(secs => :double_s)
                             AND CAST(:received_at AS timestamptz) + make_interval(secs => :double_s)
    ON CONFLICT (account_id, endpoint_id, other_endpoint_id) WHERE closed_at IS NULL DO NOTHING
    RETURNING other_endpoint_id
    """
)


@dataclass(frozen=True, slots=True)
class Taken:
    """An event that is being read; the last four are of the last time that it was, None and empty before the first."""

    account_id: int
    id: int
    endpoint_id: int
    endpoint: str
    event_id: str
    id_source: str
    event_type: str
    body: bytes | None
    body_sha256: str
    received_at: datetime
    request_id: str
    correlation_id: str
    send_id: int | None
    rule_id: int | None
    rule_version: int | None
    decision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an event: done, no_rule or failed, with its reason, rule and send."""

    status: str
    reason: str = ""
    rule_id: int | None = None
    rule_version: int | None = None
    send_id: int | None = None
    decision: str = ""


def take(session: Session, *, reader: str) -> Taken | None:
    """Takes the next event that is due for this reader and that nobody else has; None when there is none.

    It is ours until the transaction ends. No statement in it waits longer than LOCK_TIMEOUT for a lock.
    """
    session.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
    row = session.execute(_TAKE, {"reader": reader}).one_or_none()
    return None if row is None else Taken(**row._mapping)


def finish(session: Session, taken: Taken, outcome: Outcome) -> bool:
    """Writes what became of an event and takes it out of the queue; tells whether it was waiting still."""
    key = {"account_id": taken.account_id, "id": taken.id}
    found = session.execute(
        _FINISH,
        {
            **key,
            "status": outcome.status,
            "reason": outcome.reason,
            "rule_id": outcome.rule_id,
            "rule_version": outcome.rule_version,
            "send_id": outcome.send_id,
            "decision": outcome.decision,
        },
    )
    is_ours = found.rowcount == 1  # type: ignore[attr-defined]
    if is_ours:
        session.execute(_LEAVE, key)
    return is_ours


def postpone(session: Session, taken: Taken, *, wait_s: float) -> None:
    """Lets an event wait, and others go first."""
    session.execute(_POSTPONE, {"account_id": taken.account_id, "id": taken.id, "wait_s": wait_s})


def put_back(session: Session, account_id: int, event_ids: Sequence[int]) -> list[int]:
    """Queues events to be read again; gives the numbers of those that are queued by this.

    Not those that wait already, and not those whose body is forgotten.
    """
    rows = session.execute(_PUT_BACK, {"account_id": account_id, "ids": list(event_ids)})
    return list(rows.scalars())


def note_doubles(session: Session, taken: Taken) -> int:
    """Writes a notice for each other endpoint that got this event, or this body at about this time; gives how many.

    There is at most one open notice for a pair of endpoints. Of two events that come at the same moment, the one that
    is read later sees the other, because both were stored before either is read.
    """
    values = {
        "account_id": taken.account_id,
        "id": taken.id,
        "endpoint_id": taken.endpoint_id,
        "event_id": taken.event_id,
        "id_source": taken.id_source,
        "event_type": taken.event_type,
        "is_number": taken.event_id.isdigit() and len(taken.event_id) <= 12,
        "body_sha256": taken.body_sha256,
        "received_at": taken.received_at,
        "double_s": DOUBLE_S,
    }
    found = [*session.execute(_NOTE_SAME_ID, values), *session.execute(_NOTE_SAME_BODY, values)]
    return len(found)
