"""SQL of frozen sets: fixing which sends a person was shown, and moving exactly those on, once.

Every move is a compare-and-set on what the row was when it was shown, with its counters in the same statement. The
states are literals out of sends/states.py, held by tests/sends/test_states.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from console.errors import NotFound
from console.sends.states import STEPS, Change, State
from console.sends.store import SLOT
from console.sends.unsettled_store import EVIDENCE, WITNESSES, Chosen, Unsettled, chosen_rows

# A set that was shown and never run is forgotten after this.
FORGET_AFTER_H = 24


@dataclass(frozen=True)
class FrozenSetRow:
    """A frozen set as screens and commands need it."""

    id: int
    change: Change
    status: str
    row_count: int
    has_more: bool
    shown_by_name: str
    shown_at: datetime
    run_by_name: str | None
    ran_at: datetime | None
    reason: str | None
    moved_count: int | None


@dataclass(frozen=True)
class FrozenSend(Unsettled):
    """A send of a frozen set as it is now, and what became of it when the set was run."""

    outcome: str | None
    skip_reason: str | None


@dataclass(frozen=True)
class Decision:
    """What a person decided about one send."""

    set_id: int
    change: Change
    by_name: str
    ran_at: datetime
    reason: str


@dataclass(frozen=True)
class Skipped:
    """A send that was not moved, and why."""

    id: int
    reason: str


def insert_set(session: Session, account_id: int, *, change: Change, shown_to: int) -> int:
    """Makes an empty set; gives its number. The account's sets that nobody ran within a day are forgotten."""
    session.execute(
        text(
            """
            WITH stale AS (
                SELECT account_id, id FROM frozen_sets
                 WHERE account_id = :account_id AND status = 'shown'
                   AND shown_at < now() - make_interval(hours => :forget_after_h)
                   FOR UPDATE SKIP LOCKED
            ), emptied AS (
                DELETE FROM frozen_rows f USING stale WHERE f.account_id = stale.account_id AND f.set_id = stale.id
            )
            DELETE FROM frozen_sets f USING stale WHERE f.account_id = stale.account_id AND f.id = stale.id
            """
        ),
        {"account_id": account_id, "forget_after_h": FORGET_AFTER_H},
    )
    return session.execute(
        text(
            "INSERT INTO frozen_sets (account_id, change, shown_to) VALUES (:account_id, :change, :shown_to)"
            " RETURNING id"
        ),
        {"account_id": account_id, "change": change.value, "shown_to": shown_to},
    ).scalar_one()


_FREEZE = """
INSERT INTO frozen_rows (account_id, set_id, send_id, attempt_no, claimed_at)
SELECT s.account_id, :set_id, s.id, s.attempt_no, s.claimed_at FROM sends s WHERE {condition}
"""


def freeze_ids(session: Session, account_id: int, set_id: int, *, send_ids: Sequence[int]) -> set[int]:
    """Puts these sends into the set, in whatever state they are; gives the numbers that the account has."""
    rows = session.execute(
        text(
            _FREEZE.replace("{condition}", "s.account_id = :account_id AND s.id = ANY(:send_ids)")
            + " RETURNING send_id"
        ),
        {"account_id": account_id, "set_id": set_id, "send_ids": list(send_ids)},
    )
    return set(rows.scalars())


def freeze_chosen(session: Session, account_id: int, set_id: int, *, chosen: Chosen, limit: int) -> int:
    """Puts the first `limit` of the chosen sends into the set; gives how many those are."""
    condition, order, values = chosen_rows(chosen)
    statement = _FREEZE.replace("{condition}", f"{condition} ORDER BY {order} LIMIT :limit")
    values |= {"account_id": account_id, "set_id": set_id, "limit": limit}
    return session.connection().execute(text(statement), values).rowcount


def has_rows(session: Session, account_id: int, chosen: Chosen, *, beyond: int) -> bool:
    """Tells whether there are more chosen sends than `beyond`."""
    condition, order, values = chosen_rows(chosen)
    statement = f"SELECT EXISTS (SELECT FROM sends s WHERE {condition} ORDER BY {order} OFFSET :beyond)"
    return session.execute(text(statement), values | {"account_id": account_id, "beyond": beyond}).scalar_one()


def close_set(session: Session, account_id: int, set_id: int, *, row_count: int, has_more: bool) -> None:
    """Writes down how large the set is; from now on it is as it was shown."""
    session.execute(
        text(
            "UPDATE frozen_sets SET row_count = :row_count, has_more = :has_more"
            " WHERE account_id = :account_id AND id = :set_id AND status = 'shown'"
        ),
        {"account_id": account_id, "set_id": set_id, "row_count": row_count, "has_more": has_more},
    )


_SET = text(
    """
    SELECT f.id, f.change, f.status, f.row_count, f.has_more, a.name AS shown_by_name, f.shown_at,
           b.name AS run_by_name, f.ran_at, f.reason, f.moved_count
      FROM frozen_sets f
      JOIN users a ON a.account_id = f.account_id AND a.id = f.shown_to
      LEFT JOIN users b ON b.account_id = f.account_id AND b.id = f.run_by
     WHERE f.account_id = :account_id AND f.id = :set_id
    """
)


def show_set(session: Session, account_id: int, set_id: int) -> FrozenSetRow:
    """Gives the set without its sends.

    Raises: NotFound when the account has none with this number, or it was forgotten.
    """
    row = session.execute(_SET, {"account_id": account_id, "set_id": set_id}).one_or_none()
    if row is None:
        raise NotFound(
            f"There is no set {set_id} in this account. A set that nobody runs within {FORGET_AFTER_H} hours is"
            " forgotten; choose the messages again."
        )
    columns = dict(row._mapping)
    return FrozenSetRow(**{**columns, "change": Change(columns["change"])})


def page_of_set(
    session: Session, account_id: int, set_id: int, *, after_id: int = 0, is_skipped: bool = False, limit: int = 50
) -> list[FrozenSend]:
    """Gives up to `limit` sends of the set behind `after_id`, by number; only those that were skipped when asked."""
    condition = " AND f.outcome = 'skipped'" if is_skipped else ""
    rows = session.execute(
        text(
            f"SELECT {EVIDENCE}, f.outcome, f.skip_reason FROM frozen_rows f"
            f"  JOIN sends s ON s.account_id = f.account_id AND s.id = f.send_id {WITNESSES}"
            f" WHERE f.account_id = :account_id AND f.set_id = :set_id AND f.send_id > :after_id{condition}"
            " ORDER BY f.send_id LIMIT :limit"
        ),
        {"account_id": account_id, "set_id": set_id, "after_id": after_id, "limit": limit},
    )
    return [FrozenSend(**row._mapping) for row in rows]


def decisions(session: Session, account_id: int, send_id: int) -> list[Decision]:
    """Gives what people decided about one send, first to last."""
    rows = session.execute(
        text(
            """
            SELECT f.id AS set_id, f.change, b.name AS by_name, f.ran_at, f.reason
              FROM frozen_rows r
              JOIN frozen_sets f ON f.account_id = r.account_id AND f.id = r.set_id
              JOIN users b ON b.account_id = f.account_id AND b.id = f.run_by
             WHERE r.account_id = :account_id AND r.send_id = :send_id AND r.outcome = 'moved'
             ORDER BY f.ran_at, f.id
            """
        ),
        {"account_id": account_id, "send_id": send_id},
    )
    return [Decision(**{**row._mapping, "change": Change(row.change)}) for row in rows]


def take_set(session: Session, account_id: int, set_id: int, *, run_by: int, reason: str) -> bool:
    """Marks the set as run; False when somebody has run it already."""
    taken = session.execute(
        text(
            "UPDATE frozen_sets SET status = 'run', run_by = :run_by, ran_at = now(), reason = :reason"
            " WHERE account_id = :account_id AND id = :set_id AND status = 'shown' RETURNING id"
        ),
        {"account_id": account_id, "set_id": set_id, "run_by": run_by, "reason": reason},
    )
    return taken.one_or_none() is not None


def lock_campaigns(session: Session, account_id: int, set_id: int) -> None:
    """Holds the campaigns of the set's sends as they are until the transaction ends.

    A statement of its own, so that the next one sees them as they are then: neither cancelled nor finished meanwhile.
    """
    session.execute(
        text(
            """
            SELECT c.id FROM campaigns c
             WHERE c.account_id = :account_id
               AND c.id IN (SELECT s.campaign_id FROM frozen_rows f
                              JOIN sends s ON s.account_id = f.account_id AND s.id = f.send_id
                             WHERE f.account_id = :account_id AND f.set_id = :set_id)
             ORDER BY c.id
               FOR NO KEY UPDATE
            """
        ),
        {"account_id": account_id, "set_id": set_id},
    )


_FINAL = "finished_at = now()"
# A fresh start: due now, its age and its attempts counted from here; what identifies the message stays as it is.
_AGAIN = (
    "due_at = now(), first_due_at = now(), attempt_base = s.attempt_no, interrupted_count = 0, finished_at = NULL,"
    " bound_to = NULL, bound_until = NULL"
)
_ASSIGNMENTS = {
    Change.REVIVE: f"status = 'queued', {_AGAIN}",
    Change.SETTLE_RESEND: f"status = 'queued', {_AGAIN}",
    Change.SETTLE_SENT: f"status = 'sent', {_FINAL}",
    Change.SETTLE_FAILED: f"status = 'failed', {_FINAL}",
}
# Of the states that the table allows, the one that a frozen set is for: a refusal (failed) is final here.
SOURCES = {
    Change.REVIVE: State.DEAD,
    Change.SETTLE_SENT: State.IN_DOUBT,
    Change.SETTLE_RESEND: State.IN_DOUBT,
    Change.SETTLE_FAILED: State.IN_DOUBT,
}
_NOT_CANCELLED = """
       AND NOT EXISTS (SELECT FROM campaigns c WHERE c.account_id = s.account_id AND c.id = s.campaign_id
                                                 AND c.status = 'cancelled')"""
_MOVE = """
WITH picked AS MATERIALIZED (
    SELECT s.id
      FROM frozen_rows f
      JOIN sends s ON s.account_id = f.account_id AND s.id = f.send_id
     WHERE f.account_id = :account_id AND f.set_id = :set_id AND s.status = '{source}'
       AND s.attempt_no = f.attempt_no AND s.claimed_at IS NOT DISTINCT FROM f.claimed_at {condition}
     ORDER BY s.id
       FOR UPDATE OF s
), moved AS (
    UPDATE sends s SET {assignments}, error_class = ''
      FROM picked p
     WHERE s.account_id = :account_id AND s.id = p.id AND s.status = '{source}'
    RETURNING s.id, s.campaign_id
), noted AS (
    UPDATE frozen_rows f SET outcome = 'moved'
      FROM moved m
     WHERE f.account_id = :account_id AND f.set_id = :set_id AND f.send_id = m.id
), counted AS (
    INSERT INTO campaign_counts AS c (account_id, campaign_id, slot, {source}, {target})
    SELECT :account_id, campaign_id, :slot, -count(*), count(*)
      FROM moved WHERE campaign_id IS NOT NULL GROUP BY campaign_id ORDER BY campaign_id
        ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
       SET {source} = c.{source} + excluded.{source}, {target} = c.{target} + excluded.{target}
){reopened}
SELECT count(*) FROM moved
"""
_REOPENED = """, reopened AS (
    UPDATE campaigns c SET status = 'sending', finished_at = NULL, updated_at = now()
     WHERE c.account_id = :account_id AND c.status = 'sent' AND c.id IN (SELECT campaign_id FROM moved)
)"""


def _move_statement(change: Change) -> str:
    is_again = STEPS[change].target is State.QUEUED
    parts = {
        "source": SOURCES[change].value,
        "target": STEPS[change].target.value,
        "assignments": _ASSIGNMENTS[change],
        "condition": _NOT_CANCELLED if is_again else "",
        "reopened": _REOPENED if is_again else "",
    }
    return _MOVE.format(**parts)


MOVES = {change: _move_statement(change) for change in SOURCES}


def move(session: Session, account_id: int, set_id: int, *, change: Change) -> int:
    """Moves the set's sends that are still as they were shown; gives how many.

    Back to the queue only while their campaign is not cancelled; one that had been sent is being sent again.
    """
    return session.execute(text(MOVES[change]), {"account_id": account_id, "set_id": set_id, "slot": SLOT}).scalar_one()


_SKIP = text(
    """
    UPDATE frozen_rows f
       SET outcome = 'skipped',
           skip_reason = CASE WHEN s.status <> :source THEN 'it is ' || (CAST(:words AS jsonb) ->> s.status) || ' now'
                              WHEN s.attempt_no <> f.attempt_no OR s.claimed_at IS DISTINCT FROM f.claimed_at
                              THEN 'it was tried again since it was shown'
                              ELSE 'its campaign is cancelled' END
      FROM sends s
     WHERE f.account_id = :account_id AND f.set_id = :set_id AND f.outcome IS NULL
       AND s.account_id = f.account_id AND s.id = f.send_id
    RETURNING f.send_id, f.skip_reason
    """
)


def note_skipped(session: Session, account_id: int, set_id: int, *, change: Change, words: str) -> list[Skipped]:
    """Writes down why the rest of the set did not move; gives it by number.

    Takes: words, a JSON object of the states in words for people.
    """
    values: dict[str, Any] = {
        "account_id": account_id,
        "set_id": set_id,
        "source": SOURCES[change].value,
        "words": words,
    }
    return sorted((Skipped(*row) for row in session.execute(_SKIP, values)), key=lambda skipped: skipped.id)


def note_moved(session: Session, account_id: int, set_id: int, *, moved_count: int) -> None:
    """Writes down how many sends moved; tells the workers, when the transaction commits, that there may be work."""
    session.execute(
        text("UPDATE frozen_sets SET moved_count = :moved_count WHERE account_id = :account_id AND id = :set_id"),
        {"account_id": account_id, "set_id": set_id, "moved_count": moved_count},
    )
    session.execute(text("SELECT pg_notify('sendonce_work', '')"))
