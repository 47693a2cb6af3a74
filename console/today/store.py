"""Reads the figures of the first page. From counters and small tables only; no row of the ledger is counted."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session


@dataclass(frozen=True)
class Totals:
    """How many of the account's sends wait, are under way, are in doubt or are dead letters."""

    queued: int
    sending: int
    in_doubt: int
    dead: int


@dataclass(frozen=True)
class NeedsLook:
    """A campaign with sends that wait for a person."""

    id: int
    name: str
    in_doubt: int
    dead: int


@dataclass(frozen=True)
class Machinery:
    """Whether somebody is there to send: workers with a fresh sign of life, and the oldest tick's last run."""

    worker_count: int
    ticked_at: datetime | None


_TOTALS = text(
    """
    SELECT coalesce(sum(queued), 0)::bigint AS queued, coalesce(sum(sending), 0)::bigint AS sending,
           coalesce(sum(in_doubt), 0)::bigint AS in_doubt, coalesce(sum(dead), 0)::bigint AS dead
    FROM campaign_counts WHERE account_id = :account_id
    """
)

_NEEDS_LOOK = text(
    """
    SELECT c.id, c.name, sum(n.in_doubt)::bigint AS in_doubt, sum(n.dead)::bigint AS dead
    FROM campaign_counts n JOIN campaigns c ON c.account_id = n.account_id AND c.id = n.campaign_id
    WHERE n.account_id = :account_id
    GROUP BY c.account_id, c.id, c.name
    HAVING sum(n.in_doubt) > 0 OR sum(n.dead) > 0
    ORDER BY c.id DESC LIMIT :limit
    """
)

_MACHINERY = text(
    """
    SELECT (SELECT count(*) FROM workers WHERE status = 'alive'
            AND heartbeat_at > now() - make_interval(secs => :dead_after_s)) AS worker_count,
           (SELECT max(ran_at) FROM ticks) AS ticked_at
    """
)


def totals(session: Session, account_id: int) -> Totals:
    """Gives the account's figures, summed over its campaigns."""
    return Totals(**session.execute(_TOTALS, {"account_id": account_id}).one()._mapping)


def needs_look(session: Session, account_id: int, *, limit: int = 20) -> list[NeedsLook]:
    """Gives the newest campaigns that have sends in doubt or dead letters."""
    rows = session.execute(_NEEDS_LOOK, {"account_id": account_id, "limit": limit})
    return [NeedsLook(**row._mapping) for row in rows]


def machinery(session: Session, *, dead_after_s: float) -> Machinery:
    """Gives who is there to send; the same for all accounts."""
    return Machinery(**session.execute(_MACHINERY, {"dead_after_s": dead_after_s}).one()._mapping)
