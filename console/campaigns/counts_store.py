"""SQL of the check that holds the counters of campaigns against the rows that they count."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from console.campaigns.store import COUNTED
from console.sends.store import SLOT


@dataclass(frozen=True)
class Difference:
    """A counter that does not agree with the rows."""

    account_id: int
    campaign_id: int
    status: str
    counted: int
    rows: int


# One statement, so that both sides are seen at one instant: rows and counters are always moved in one commit.
_COMPARE = f"""
WITH figures AS (
    SELECT account_id, campaign_id, {", ".join(f"sum({state})::bigint AS {state}" for state in COUNTED)}
      FROM campaign_counts WHERE CAST(:account_id AS bigint) IS NULL OR account_id = :account_id
     GROUP BY account_id, campaign_id
), counters AS (
    SELECT f.account_id, f.campaign_id, v.status, v.counted
      FROM figures f CROSS JOIN LATERAL (VALUES {", ".join(f"('{state}', f.{state})" for state in COUNTED)})
        AS v (status, counted)
), found AS (
    SELECT account_id, campaign_id, status, count(*) AS rows
      FROM sends
     WHERE campaign_id IS NOT NULL AND (CAST(:account_id AS bigint) IS NULL OR account_id = :account_id)
     GROUP BY account_id, campaign_id, status
)
SELECT account_id, campaign_id, status, COALESCE(c.counted, 0) AS counted, COALESCE(f.rows, 0) AS rows
  FROM counters c FULL JOIN found f USING (account_id, campaign_id, status)
 WHERE COALESCE(c.counted, 0) <> COALESCE(f.rows, 0)
"""
_LIST = text(f"{_COMPARE} ORDER BY account_id, campaign_id, status")
# Adds the difference instead of writing the figure, so that rows moving meanwhile stay counted.
_REPAIR = text(
    f"""
WITH differing AS ({_COMPARE}), repaired AS (
    INSERT INTO campaign_counts AS n (account_id, campaign_id, slot, {", ".join(COUNTED)})
    SELECT account_id, campaign_id, :slot,
           {", ".join(f"COALESCE(sum(rows - counted) FILTER (WHERE status = '{state}'), 0)" for state in COUNTED)}
      FROM differing GROUP BY account_id, campaign_id
        ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
       SET {", ".join(f"{state} = n.{state} + excluded.{state}" for state in COUNTED)}
)
SELECT account_id, campaign_id, status, counted, rows FROM differing ORDER BY account_id, campaign_id, status
"""
)


def check_counters(session: Session, account_id: int | None = None, *, repair: bool = False) -> list[Difference]:
    """Gives the counters that differ from the rows, of one account or (None) of all; puts them right when asked.

    Reads all sends of the campaigns: for an operator's check, not for pages.
    """
    if repair:
        rows = session.execute(_REPAIR, {"account_id": account_id, "slot": SLOT})
    else:
        rows = session.execute(_LIST, {"account_id": account_id})
    return [Difference(*row) for row in rows]
