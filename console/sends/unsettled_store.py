"""Read queries of what waits for a person: dead letters and messages in doubt, with the evidence for each.

Read by keyset along sends_unsettled_idx, class by class; of one campaign along sends_exception_idx.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from console.errors import InvalidInput
from console.sends.states import State

UNSETTLED = (State.DEAD, State.IN_DOUBT)
# Beyond this a class's figure is "more than": a page must not read a million index entries for a number.
COUNT_LIMIT = 1000
CLASSES_SHOWN = 50


@dataclass(frozen=True)
class Chosen:
    """Which of the account's dead letters, or messages in doubt: all, of a class, of a campaign, or of both."""

    status: State
    error_class: str | None = None
    campaign_id: int | None = None


@dataclass(frozen=True)
class Unsettled:
    """A dead letter or a message in doubt. `since` is when the last word on it was recorded."""

    id: int
    email: str
    status: str
    campaign_id: int | None
    campaign_name: str | None
    campaign_status: str | None
    message_id: str
    attempts: int
    provider_reply: str | None
    error_class: str
    since: datetime
    handed_over_at: datetime | None
    provider: str | None
    worker_id: int | None
    worker_host: str | None
    worker_status: str | None


@dataclass(frozen=True)
class UnsettledPage:
    """Rows in the order of their page, and the cursor that reads on: None when there is nothing more."""

    rows: list[Unsettled]
    next_after: str | None


@dataclass(frozen=True)
class ClassCount:
    """How many rows an error class has; COUNT_LIMIT + 1 stands for more than COUNT_LIMIT."""

    error_class: str
    count: int


# What a row says about itself, for the lists here and for the pages of a frozen set.
EVIDENCE = """
    s.id, s.email, s.status, s.campaign_id, c.name AS campaign_name, c.status AS campaign_status, s.message_id,
    s.attempt_no AS attempts, s.provider_reply, s.error_class,
    COALESCE(GREATEST(t.ended_at, s.claimed_at), s.created_at) AS since, s.handed_over_at, t.provider,
    s.claimed_by AS worker_id, w.host AS worker_host, w.status AS worker_status
"""
WITNESSES = """
    LEFT JOIN campaigns c ON c.account_id = s.account_id AND c.id = s.campaign_id
    LEFT JOIN attempts t ON t.account_id = s.account_id AND t.send_id = s.id AND t.attempt_no = s.attempt_no
    LEFT JOIN workers w ON w.id = s.claimed_by
"""


def chosen_rows(chosen: Chosen) -> tuple[str, str, dict[str, Any]]:
    """Gives the condition on sends `s` that `chosen` means, the order of its index, and the values to bind.

    The state is written into the statement: bound, it would hide the partial indexes from a generic plan.
    """
    conditions = [f"s.account_id = :account_id AND s.exception = '{State(chosen.status).value}'"]
    values: dict[str, Any] = {}
    if chosen.error_class is not None:
        conditions.append("s.error_class = :error_class")
        values["error_class"] = chosen.error_class
    if chosen.campaign_id is not None:
        conditions.append("s.campaign_id = :campaign_id")
        values["campaign_id"] = chosen.campaign_id
    return " AND ".join(conditions), "s.error_class, s.id" if chosen.campaign_id is None else "s.id", values


def page(
    session: Session, account_id: int, chosen: Chosen, *, after: str | None = None, limit: int = 50
) -> UnsettledPage:
    """Gives the chosen rows, class by class, in each by number; of one campaign by number alone.

    Raises: InvalidInput when `after` is no cursor of this list.
    """
    condition, order, values = chosen_rows(chosen)
    values |= {"account_id": account_id, "limit": limit + 1}
    if after:
        number, _, values["after_class"] = after.replace("\x00", "").partition("~")
        if not (number.isascii() and number.isdigit() and len(number) < 20 and int(number) < 2**63):
            raise InvalidInput("This page's address is damaged. Start again from the first page.", field="after")
        values["after_id"] = int(number)
        condition += " AND s.id > :after_id" if order == "s.id" else f" AND ({order}) > (:after_class, :after_id)"
    statement = f"SELECT {EVIDENCE} FROM sends s {WITNESSES} WHERE {condition} ORDER BY {order} LIMIT :limit"
    rows = [Unsettled(**row._mapping) for row in session.execute(text(statement), values)]
    shown = rows[:limit]
    return UnsettledPage(
        rows=shown, next_after=f"{shown[-1].id}~{shown[-1].error_class}" if len(rows) > limit else None
    )


# From class to class along the index instead of past every row.
_CLASSES = """
WITH RECURSIVE k (error_class) AS (
    (SELECT s.error_class FROM sends s
      WHERE s.account_id = :account_id AND s.exception = '{status}' ORDER BY s.error_class LIMIT 1)
    UNION ALL
    SELECT (SELECT s.error_class FROM sends s
             WHERE s.account_id = :account_id AND s.exception = '{status}' AND s.error_class > k.error_class
             ORDER BY s.error_class LIMIT 1)
      FROM k WHERE k.error_class IS NOT NULL
)
SELECT k.error_class,
       (SELECT count(*) FROM (SELECT FROM sends s WHERE s.account_id = :account_id AND s.exception = '{status}'
                                 AND s.error_class = k.error_class LIMIT :count_limit + 1) x) AS count
  FROM k WHERE k.error_class IS NOT NULL LIMIT :limit
"""


def classes(session: Session, account_id: int, status: State) -> list[ClassCount]:
    """Gives the error classes that the account's rows in this state have, with a bounded count of each."""
    statement = _CLASSES.replace("{status}", State(status).value)
    values = {"account_id": account_id, "count_limit": COUNT_LIMIT, "limit": CLASSES_SHOWN}
    return [ClassCount(**row._mapping) for row in session.execute(text(statement), values)]
