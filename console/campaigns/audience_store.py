"""SQL of the audience build: which campaigns need a chunk, where a chunk ends, and how far a campaign is."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session


@dataclass(frozen=True)
class Unfinished:
    """A campaign whose audience is being built; its row is locked until the transaction ends."""

    list_id: int
    started_at: datetime
    correlation_id: str
    audience_cursor: str
    sender: str
    fields: list[str]


def unfinished(session: Session) -> list[tuple[int, int]]:
    """Gives (account, campaign) of all campaigns that have started and whose audience is not complete."""
    rows = session.execute(
        text(
            "SELECT account_id, id FROM campaigns WHERE status IN ('sending','paused') AND started_at IS NOT NULL"
            " AND audience_built_at IS NULL ORDER BY started_at, id"
        )
    )
    return [(row[0], row[1]) for row in rows]


def take(session: Session, account_id: int, campaign_id: int) -> Unfinished | None:
    """Takes the campaign for one chunk; None when another builder has it, or there is nothing left to build."""
    row = session.execute(
        text(
            """
            SELECT c.list_id, c.started_at, c.correlation_id, c.audience_cursor, t.sender, t.fields
              FROM campaigns c
              JOIN campaign_contents t
                ON t.account_id = c.account_id AND t.campaign_id = c.id AND t.version = c.version
             WHERE c.account_id = :account_id AND c.id = :campaign_id AND c.status IN ('sending','paused')
               AND c.started_at IS NOT NULL AND c.audience_built_at IS NULL
               FOR NO KEY UPDATE OF c SKIP LOCKED
            """
        ),
        {"account_id": account_id, "campaign_id": campaign_id},
    ).one_or_none()
    return None if row is None else Unfinished(*row)


def has_at_most(session: Session, account_id: int, *, list_id: int, limit: int) -> bool:
    """Tells whether the list has no more than `limit` members, without counting further."""
    return session.execute(
        text(
            "SELECT count(*) <= :limit FROM (SELECT FROM list_members WHERE account_id = :account_id"
            " AND list_id = :list_id LIMIT :limit + 1) m"
        ),
        {"account_id": account_id, "list_id": list_id, "limit": limit},
    ).scalar_one()


def end_of_chunk(session: Session, account_id: int, *, after: str, size: int) -> str | None:
    """Gives the address of the account's `size`-th subscriber behind `after`; None when there are fewer."""
    return session.execute(
        text(
            "SELECT email_lower FROM subscribers WHERE account_id = :account_id AND email_lower > :after"
            " ORDER BY email_lower OFFSET :size - 1 LIMIT 1"
        ),
        {"account_id": account_id, "after": after, "size": size},
    ).scalar_one_or_none()


def advance(session: Session, account_id: int, campaign_id: int, *, after: str, upto: str | None) -> bool:
    """Moves the cursor from `after` to `upto`, or (None) to the end: the audience is complete."""
    changed = session.execute(
        text(
            """
            UPDATE campaigns
               SET audience_cursor = COALESCE(CAST(:upto AS text), audience_cursor), updated_at = now(),
                   audience_built_at = CASE WHEN CAST(:upto AS text) IS NULL THEN now() END
             WHERE account_id = :account_id AND id = :campaign_id AND status IN ('sending','paused')
               AND audience_cursor = :after AND audience_built_at IS NULL
            RETURNING id
            """
        ),
        {"account_id": account_id, "campaign_id": campaign_id, "after": after, "upto": upto},
    )
    return changed.one_or_none() is not None


def cancelled_with_rows(session: Session) -> list[tuple[int, int]]:
    """Gives (account, campaign) of cancelled campaigns that still have queued sends."""
    rows = session.execute(
        text(
            "SELECT c.account_id, c.id FROM campaigns c WHERE c.status = 'cancelled' AND c.started_at IS NOT NULL"
            " AND EXISTS (SELECT FROM sends s WHERE s.account_id = c.account_id AND s.campaign_id = c.id"
            "                                   AND s.is_queued)"
        )
    )
    return [(row[0], row[1]) for row in rows]
