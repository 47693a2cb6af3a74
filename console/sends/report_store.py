"""SQL of what providers report: facts written once each, and sends that a fact settles.

The states in these statements are literals out of sends/states.py, held by tests/sends/test_states.py.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from console.providers.reports import Report
from console.sends.store import SLOT

_INSERT = text(
    """
    INSERT INTO provider_events (account_id, provider, event_key, fact, bounce, send_id, tag, provider_id, email, words,
                                 happened_at, inbox_event_id)
    VALUES (:account_id, :provider, :event_key, :fact, :bounce, :send_id, :tag, :provider_id, :email, :words,
            :happened_at, :inbox_event_id)
    ON CONFLICT (account_id, provider, event_key) DO NOTHING
    RETURNING id
    """
)

# A row that was never tried can't have been accepted: what was given back before its hand-over stays queued.
SETTLE = """
WITH picked AS MATERIALIZED (
    SELECT s.id, s.status
      FROM sends s
     WHERE s.account_id = :account_id AND s.id = :send_id
       AND (s.status = 'in_doubt' OR (s.status IN ('queued', 'dead') AND s.attempt_no > 0))
       FOR UPDATE
), moved AS (
    UPDATE sends s
       SET status = 'sent', finished_at = now(), error_class = '', provider_reply = :reply,
           provider_id = COALESCE(s.provider_id, :provider_id)
      FROM picked p
     WHERE s.account_id = :account_id AND s.id = p.id
    RETURNING s.campaign_id, p.status
), counted AS (
    INSERT INTO campaign_counts AS c (account_id, campaign_id, slot, queued, in_doubt, dead, sent)
    SELECT :account_id, campaign_id, :slot, -count(*) FILTER (WHERE status = 'queued'),
           -count(*) FILTER (WHERE status = 'in_doubt'), -count(*) FILTER (WHERE status = 'dead'), count(*)
      FROM moved WHERE campaign_id IS NOT NULL GROUP BY campaign_id
        ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
       SET queued = c.queued + excluded.queued, in_doubt = c.in_doubt + excluded.in_doubt,
           dead = c.dead + excluded.dead, sent = c.sent + excluded.sent
)
SELECT count(*) FROM moved
"""

_OPEN = text(
    """
    UPDATE provider_events e
       SET is_open = EXISTS (SELECT FROM sends s
                              WHERE s.account_id = :account_id AND s.id = e.send_id AND s.status = 'sending')
     WHERE e.account_id = :account_id AND e.id = :id
    RETURNING e.is_open
    """
)

_TAKE_OPEN = text(
    """
    SELECT e.account_id, e.id, e.send_id, e.provider, e.fact, e.provider_id
      FROM provider_events e
      JOIN sends s ON s.account_id = e.account_id AND s.id = e.send_id
     WHERE e.is_open AND s.status <> 'sending'
     ORDER BY e.account_id, e.id
     LIMIT :limit
       FOR UPDATE OF e SKIP LOCKED
    """
)


@dataclass(frozen=True, slots=True)
class Sent:
    """The send that a report is about, as far as it is asked for."""

    id: int
    message_id: str
    email_lower: str
    correlation_id: str


@dataclass(frozen=True, slots=True)
class OpenFact:
    """A fact about a send that was on its way when it came, and no longer is."""

    account_id: int
    id: int
    send_id: int
    provider: str
    fact: str
    provider_id: str


def find_send(session: Session, account_id: int, send_id: int) -> Sent | None:
    """Gives the send; None when the account has none with this number."""
    row = session.execute(
        text(
            "SELECT id, message_id, email_lower, correlation_id FROM sends"
            " WHERE account_id = :account_id AND id = :send_id"
        ),
        {"account_id": account_id, "send_id": send_id},
    ).one_or_none()
    return None if row is None else Sent(**row._mapping)


def find_message(session: Session, account_id: int, *, message_id: str, emails: Collection[str]) -> Sent | None:
    """Gives the send with this Message-ID to one of these addresses (in lower case), by the index of the latter."""
    row = session.execute(
        text(
            "SELECT id, message_id, email_lower, correlation_id FROM sends"
            " WHERE account_id = :account_id AND email_lower = ANY(:emails) AND message_id = :message_id"
            " ORDER BY id LIMIT 1"
        ),
        {"account_id": account_id, "emails": sorted(emails), "message_id": message_id},
    ).one_or_none()
    return None if row is None else Sent(**row._mapping)


def insert_fact(
    session: Session,
    account_id: int,
    report: Report,
    *,
    provider: str,
    event_key: str,
    send_id: int | None,
    inbox_event_id: int | None,
) -> int | None:
    """Writes a fact down; gives its number, None when it is there already."""
    values: dict[str, Any] = {
        "account_id": account_id,
        "provider": provider,
        "event_key": event_key,
        "fact": report.fact.value,
        "bounce": report.bounce.value if report.bounce else None,
        "send_id": send_id,
        "tag": report.tag,
        "provider_id": report.provider_id,
        "email": report.email,
        "words": report.text,
        "happened_at": report.happened_at,
        "inbox_event_id": inbox_event_id,
    }
    return session.execute(_INSERT, values).scalar_one_or_none()


def settle(session: Session, account_id: int, send_id: int, *, reply: str, provider_id: str) -> bool:
    """Moves a send to sent that is in doubt, or waits to be handed over once more; gives whether it was.

    Not one that is on its way: its own answer is about to come.
    """
    values = {
        "account_id": account_id,
        "send_id": send_id,
        "reply": reply,
        "provider_id": provider_id or None,
        "slot": SLOT,
    }
    return session.execute(text(SETTLE), values).scalar_one() > 0


def leave_open(session: Session, account_id: int, fact_id: int) -> bool:
    """Leaves the fact open when its send is on its way, as it is at this moment; gives whether it is."""
    return session.execute(_OPEN, {"account_id": account_id, "id": fact_id}).scalar_one()


def take_open(session: Session, *, limit: int) -> list[OpenFact]:
    """Gives facts of all accounts that were left open and whose send is no longer on its way; ours until the end."""
    return [OpenFact(**row._mapping) for row in session.execute(_TAKE_OPEN, {"limit": limit})]


def close(session: Session, account_id: int, fact_id: int) -> None:
    """Marks a fact as dealt with."""
    session.execute(
        text("UPDATE provider_events SET is_open = false WHERE account_id = :account_id AND id = :id"),
        {"account_id": account_id, "id": fact_id},
    )


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact as screens show it."""

    fact: str
    bounce: str | None
    provider: str
    words: str
    happened_at: datetime | None
    received_at: datetime


def facts_of(session: Session, account_id: int, send_id: int) -> list[Fact]:
    """Gives what providers reported about a send, in the order in which it happened."""
    rows = session.execute(
        text(
            "SELECT fact, bounce, provider, words, happened_at, received_at FROM provider_events"
            " WHERE account_id = :account_id AND send_id = :send_id ORDER BY COALESCE(happened_at, received_at), id"
        ),
        {"account_id": account_id, "send_id": send_id},
    )
    return [Fact(**row._mapping) for row in rows]
