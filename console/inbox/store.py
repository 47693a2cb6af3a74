"""SQL of what arrives: who an address belongs to, events stored first, redeliveries and refusals counted."""

import json
from dataclasses import dataclass

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from console.inbox.arrival import Arrival
from console.inbox.models import Endpoint

# One row for each event, whoever is first. The others wait for its commit, then count on it: their row is locked for
# this statement and the commit alone, because whoever reads the event locks its place in the queue instead.
_STORE = text(
    """
    WITH stored AS (
        INSERT INTO inbox_events AS e (account_id, endpoint_id, event_id, id_source, event_type, body, body_bytes,
                                       body_sha256, headers, request_id, correlation_id)
        VALUES (:account_id, :endpoint_id, :event_id, :id_source, :event_type, :body, octet_length(:body),
                :body_sha256, CAST(:headers AS jsonb), :request_id, :correlation_id)
        ON CONFLICT (account_id, endpoint_id, event_id)
        DO UPDATE SET delivery_count = e.delivery_count + 1, last_received_at = clock_timestamp()
        RETURNING e.id, e.delivery_count, e.body_sha256 = :body_sha256 AS is_same_body
    ), queued AS (
        INSERT INTO inbox_queue (account_id, event_id, reader)
        SELECT :account_id, id, :reader FROM stored WHERE delivery_count = 1
    ), again AS (
        INSERT INTO inbox_redeliveries (account_id, event_id, received_at, request_id, correlation_id, is_same_body)
        SELECT :account_id, id, clock_timestamp(), :request_id, :correlation_id, is_same_body
          FROM stored WHERE delivery_count > 1
    )
    SELECT id, delivery_count, is_same_body FROM stored
    """
)

_REFUSE = text(
    """
    INSERT INTO inbox_refusals AS r (account_id, endpoint_id, on_day, reason, last_request_id)
    VALUES (:account_id, :endpoint_id, (now() AT TIME ZONE 'UTC')::date, :reason, :request_id)
    ON CONFLICT (account_id, endpoint_id, on_day, reason)
    DO UPDATE SET refused_count = r.refused_count + 1, last_at = clock_timestamp(),
                  last_request_id = excluded.last_request_id
    """
)


@dataclass(frozen=True)
class Stored:
    """What became of an arrival: its event's number and how often that event has come with it."""

    id: int
    delivery_count: int
    is_same_body: bool

    @property
    def is_new(self) -> bool:
        return self.delivery_count == 1


def endpoint_by_token(session: Session, *, name: str, token_hash: str) -> Endpoint | None:
    """Gives the endpoint of an address; None when the token is another's, or nobody's, or its endpoint is closed.

    The one query without an account: the token is what tells it.
    """
    found = session.scalars(select(Endpoint).where(Endpoint.token_hash == token_hash)).one_or_none()
    return found if found is not None and found.is_active and found.name == name else None


def report_endpoint(session: Session, *, token_hash: str) -> Endpoint | None:
    """Gives the endpoint of a provider's reports; None when the token is nobody's, another's, or it is closed."""
    found = session.scalars(select(Endpoint).where(Endpoint.token_hash == token_hash)).one_or_none()
    return found if found is not None and found.is_active and found.reader == "reports" else None


def store_first(session: Session, account_id: int, endpoint_id: int, *, arrival: Arrival, reader: str) -> Stored:
    """Stores an event before anything else is done about it, or counts it on the row of its first delivery.

    Takes: reader, who the event waits for in the queue: `rules`, or `reports`. A redelivery waits for nobody.
    """
    row = session.execute(
        _STORE,
        {
            "account_id": account_id,
            "endpoint_id": endpoint_id,
            "reader": reader,
            "event_id": arrival.event_id,
            "id_source": arrival.id_source,
            "event_type": arrival.event_type,
            "body": arrival.body,
            "body_sha256": arrival.body_sha256,
            "headers": json.dumps(dict(arrival.headers)),
            "request_id": arrival.request_id,
            "correlation_id": arrival.correlation_id,
        },
    ).one()
    return Stored(id=row.id, delivery_count=row.delivery_count, is_same_body=row.is_same_body)


def count_refusal(session: Session, account_id: int, endpoint_id: int, *, reason: str, request_id: str) -> None:
    """Counts a request that was refused, by day and reason: a flood of them is one row."""
    session.execute(
        _REFUSE,
        {"account_id": account_id, "endpoint_id": endpoint_id, "reason": reason, "request_id": request_id},
    )
