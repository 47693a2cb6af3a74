"""Changes of sends outside dispatch: the rows that a campaign's audience reserves, and their cancellation.

Each statement adjusts campaign_counts in the same breath, in the slot that no worker uses on its way.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

# dispatch/store.py keeps this slot for those who move other workers' rows.
SLOT = 15


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


# The subscribers of the stretch in the order of their index, each looked up on the list by its primary key. The
# scalar subselect is deliberate: as a join the planner hashes the whole list for each chunk.
_WALK = """
    FROM subscribers s
   WHERE s.account_id = :account_id AND s.status = 'confirmed'
     AND s.email_lower > :after AND s.email_lower <= :upto
     AND (SELECT m.added_at <= :started_at FROM list_members m
           WHERE m.account_id = :account_id AND m.list_id = :list_id AND m.subscriber_id = s.id)
"""
# To the end of the account's addresses, or all of a list that fits into one chunk, from the list's side.
_REST = """
    FROM subscribers s
   WHERE s.account_id = :account_id AND s.status = 'confirmed' AND s.email_lower > :after
     AND (SELECT m.added_at <= :started_at FROM list_members m
           WHERE m.account_id = :account_id AND m.list_id = :list_id AND m.subscriber_id = s.id)
"""
_WHOLE_LIST = """
    FROM list_members m JOIN subscribers s ON s.account_id = m.account_id AND s.id = m.subscriber_id
   WHERE m.account_id = :account_id AND m.list_id = :list_id AND m.added_at <= :started_at AND s.status = 'confirmed'
"""
_RESERVE = """
WITH person AS (
    SELECT DISTINCT ON (s.email_lower) s.id, s.email, s.email_lower, s.attributes
    {source}
   ORDER BY s.email_lower, s.created_at, s.id
), judged AS MATERIALIZED (
    SELECT p.*, (SELECT x.kind || ': ' || x.reason FROM suppressions x
                  WHERE x.account_id = :account_id AND x.email_lower = p.email_lower
                    AND (x.list_id IS NULL OR x.list_id = :list_id)
                  LIMIT 1) AS suppression
      FROM person p
), reserved AS (
    INSERT INTO sends (account_id, campaign_id, subscriber_id, email, email_lower, lane, dedupe_key, status, due_at,
                       first_due_at, finished_at, message_id, merge_values, correlation_id, provider_reply)
    SELECT :account_id, :campaign_id, j.id, j.email, j.email_lower, 'bulk', :key_start || j.id,
           CASE WHEN j.suppression IS NULL THEN 'queued' ELSE 'suppressed' END, :started_at, :started_at,
           CASE WHEN j.suppression IS NULL THEN NULL ELSE now() END,
           '<' || replace(gen_random_uuid()::text, '-', '') || :id_end,
           {merge_values}, :correlation_id, 'suppressed: ' || j.suppression
      FROM judged j
     ORDER BY j.email_lower
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
    the campaign's start as their due time, so that the claim's order is the order of addresses.

    Takes: is_whole_list, to read from the list's side instead of walking the account's addresses.
    Gives: how many rows it made.
    """
    source = _WHOLE_LIST if is_whole_list else _REST if chunk.upto is None else _WALK
    statement = _RESERVE.replace("{source}", source)
    statement = statement.replace("{merge_values}", _SOME_VALUES if chunk.fields else _NO_VALUES)
    values = {
        "account_id": account_id,
        "campaign_id": chunk.campaign_id,
        "list_id": chunk.list_id,
        "started_at": chunk.started_at,
        "correlation_id": chunk.correlation_id,
        "key_start": f"campaign:{chunk.campaign_id}:",
        "id_end": f".{chunk.campaign_id:x}@{chunk.sender_domain}>",
        "slot": SLOT,
    }
    if chunk.fields:
        values["fields"] = chunk.fields
    if not is_whole_list:
        values["after"] = chunk.after
    if not is_whole_list and chunk.upto is not None:
        values["upto"] = chunk.upto
    # The planner's cost for so many subselects would have each chunk's statement compiled, which takes longer than it.
    session.execute(text("SET LOCAL jit = off"))
    return session.execute(text(statement), values).scalar_one()


_CANCEL = text(
    """
    WITH picked AS (
        SELECT s.account_id, s.id FROM sends s
         WHERE s.account_id = :account_id AND s.campaign_id = :campaign_id AND s.status = 'queued'
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
