"""Changes of sends outside dispatch: the rows that a campaign's audience reserves, and their cancellation.

Each statement adjusts campaign_counts in the same breath, in the slot that no worker uses on its way.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

# dispatch/store.py keeps this slot for those who move other workers' rows.
SLOT = 15
# Sorts behind every address. A bound instead of none, so that any plan of the statement reads from bound to bound.
_BEHIND_ALL = "\U0010ffff"


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A stretch of addresses whose sends are to be reserved: after `after`, up to `upto` (None: to the end)."""

    campaign_id: int
    list_id: int
    started_at: datetime
    correlation_id: str
    sender_domain: str  # in A-labels
    fields: list[str]
    after: str
    upto: str | None


# The subscribers of the stretch, each looked up on the list. The scalar subselect is deliberate: as a join the planner
# reads the whole list for each chunk.
_STRETCH = """
    SELECT s.id, s.email, s.email_lower, s.created_at, s.attributes
      FROM subscribers s
     WHERE s.account_id = :account_id AND s.status = 'confirmed' AND s.email_lower > :after
       AND s.email_lower <= :upto
       AND (SELECT m.added_at <= :started_at FROM list_members m
             WHERE m.account_id = :account_id AND m.list_id = :list_id AND m.subscriber_id = s.id)
"""
# A list that fits into one chunk, from the list's side.
_WHOLE_LIST = """
    SELECT s.id, s.email, s.email_lower, s.created_at, s.attributes
      FROM list_members m JOIN subscribers s ON s.account_id = m.account_id AND s.id = m.subscriber_id
     WHERE m.account_id = :account_id AND m.list_id = :list_id AND m.added_at <= :started_at
       AND s.status = 'confirmed'
"""
# The opted-out are met in one walk along the stretch, and rows are reserved in the order of their subscribers' ids, so
# that foreign keys and indexes are walked along too. Measured on 1,000,000 subscribers whose ids and addresses run
# differently: 52 microseconds of the server's CPU a row, a third of it for the foreign keys; a bare INSERT takes 24.
_RESERVE = """
WITH member AS MATERIALIZED (
    {source}
), person AS MATERIALIZED (
    SELECT DISTINCT ON (m.email_lower) m.id, m.email, m.email_lower, m.attributes
      FROM member m
     ORDER BY m.email_lower, m.created_at, m.id
), stop AS MATERIALIZED (
    SELECT DISTINCT ON (x.email_lower) x.email_lower, x.kind || ': ' || x.reason AS words
      FROM person p JOIN suppressions x ON x.account_id = :account_id AND x.email_lower = p.email_lower
     WHERE (x.list_id IS NULL OR x.list_id = :list_id)
       AND x.email_lower > :after AND x.email_lower <= :upto
     ORDER BY x.email_lower, x.list_id NULLS FIRST
), judged AS (
    SELECT p.*, x.words AS suppression FROM person p LEFT JOIN stop x ON x.email_lower = p.email_lower
), reserved AS (
    INSERT INTO sends (account_id, campaign_id, subscriber_id, email, email_lower, lane, dedupe_key, status, due_at,
                       first_due_at, finished_at, message_id, merge_values, correlation_id, provider_reply)
    SELECT :account_id, :campaign_id, j.id, j.email, j.email_lower, 'bulk', :key_start || j.id,
           CASE WHEN j.suppression IS NULL THEN 'queued' ELSE 'suppressed' END, :started_at, :started_at,
           CASE WHEN j.suppression IS NULL THEN NULL ELSE now() END,
           '<' || replace(gen_random_uuid()::text, '-', '') || :id_end,
           {merge_values}, :correlation_id, 'suppressed: ' || j.suppression
      FROM judged j
     ORDER BY j.id
        ON CONFLICT DO NOTHING
    RETURNING status
), figures AS (
    SELECT count(*) FILTER (WHERE status = 'queued') AS queued,
           count(*) FILTER (WHERE status = 'suppressed') AS suppressed
      FROM reserved
), counted AS (
    INSERT INTO campaign_counts AS c (account_id, campaign_id, slot, queued, suppressed)
    SELECT :account_id, :campaign_id, :slot, queued, suppressed FROM figures WHERE queued + suppressed > 0
        ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
       SET queued = c.queued + excluded.queued, suppressed = c.suppressed + excluded.suppressed
)
SELECT queued + suppressed FROM figures
"""
_NO_VALUES = "'{}'::jsonb"
_SOME_VALUES = """(SELECT COALESCE(jsonb_object_agg(f.name, j.attributes -> f.name), '{}'::jsonb)
              FROM unnest(CAST(:fields AS text[])) AS f (name) WHERE j.attributes ? f.name)"""


def reserve_audience_chunk(session: Session, account_id: int, *, chunk: Chunk, is_whole_list: bool = False) -> int:
    """Reserves one send for each address of the stretch that a confirmed member of the list has.

    The earliest confirmed subscriber of a shared address gets it, with the merge values that the content uses. Who
    has opted out already gets a row in state `suppressed`. Rows that are there already stay as they are. All rows get
    the campaign's start as their due time.

    Takes: is_whole_list, to read from the list's side instead of walking the account's addresses.
    Gives: how many rows it made.
    """
    statement = _RESERVE.replace("{source}", _WHOLE_LIST if is_whole_list else _STRETCH)
    statement = statement.replace("{merge_values}", _SOME_VALUES if chunk.fields else _NO_VALUES)
    values = {
        "account_id": account_id,
        "campaign_id": chunk.campaign_id,
        "list_id": chunk.list_id,
        "started_at": chunk.started_at,
        "correlation_id": chunk.correlation_id,
        "key_start": f"campaign:{chunk.campaign_id}:",
        "id_end": f".{chunk.campaign_id:x}@{chunk.sender_domain}>",
        "after": chunk.after,
        "upto": chunk.upto or _BEHIND_ALL,
        "slot": SLOT,
    }
    if chunk.fields:
        values["fields"] = chunk.fields
    # The planner's cost for so many subselects would have each chunk's statement compiled, which takes longer than it.
    session.execute(text("SET LOCAL jit = off"))
    # An account made since the last ANALYZE seems empty to the planner, which then seeks each person among all others:
    # 30,000 people took two minutes. Hashed or merged, a chunk reads everybody once whatever the statistics say.
    session.execute(text("SET LOCAL enable_nestloop = off"))
    # A chunk is sorted twice; it fits.
    session.execute(text("SET LOCAL work_mem = '64MB'"))
    return session.execute(text(statement), values).scalar_one()


_CANCEL = text(
    """
    WITH picked AS (
        SELECT s.account_id, s.id FROM sends s
         WHERE s.account_id = :account_id AND s.campaign_id = :campaign_id AND s.is_queued
           AND EXISTS (SELECT FROM campaigns c WHERE c.account_id = :account_id AND c.id = :campaign_id
                                                 AND c.status = 'cancelled')
         ORDER BY s.due_at, s.id
         LIMIT :limit
           FOR UPDATE OF s SKIP LOCKED
    ), moved AS (
        UPDATE sends s SET status = 'cancelled', finished_at = now()
          FROM picked p
         WHERE s.account_id = p.account_id AND s.id = p.id AND s.status = 'queued'
        RETURNING s.id
    ), counted AS (
        INSERT INTO campaign_counts AS c (account_id, campaign_id, slot, queued, cancelled)
        SELECT :account_id, :campaign_id, :slot, -count(*), count(*) FROM moved HAVING count(*) > 0
            ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
           SET queued = c.queued + excluded.queued, cancelled = c.cancelled + excluded.cancelled
    )
    SELECT count(*) FROM moved
    """
)


def cancel_campaign_rows(session: Session, account_id: int, *, campaign_id: int, limit: int) -> int:
    """Cancels up to `limit` queued sends of a campaign that is cancelled; gives how many.

    Rows that somebody else holds are passed over: call it again until nothing is left.
    """
    values = {"account_id": account_id, "campaign_id": campaign_id, "limit": limit, "slot": SLOT}
    return session.execute(_CANCEL, values).scalar_one()


def cancel_one(session: Session, account_id: int, send_id: int, *, note: str) -> bool:
    """Cancels a queued send that is no campaign's; gives whether it still was."""
    row = session.execute(
        text(
            "UPDATE sends SET status = 'cancelled', finished_at = now(), provider_reply = :note"
            " WHERE account_id = :account_id AND id = :send_id AND campaign_id IS NULL AND status = 'queued'"
            " RETURNING id"
        ),
        {"account_id": account_id, "send_id": send_id, "note": note},
    ).one_or_none()
    return row is not None
