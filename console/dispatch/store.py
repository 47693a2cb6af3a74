"""SQL of dispatch beside the three commits: workers, rows that lost their way, recovery.

Each function is one statement on a connection that commits by itself.
"""

from collections.abc import Sequence
from typing import Any

from psycopg import Connection

from console.dispatch.recorder import Claimed, Outcome

# Slot 15 of the counters: those who move other workers' rows never wait for a worker's slot, nor it for them.
RECOVERY_SLOT = 15
WORKER_SLOT_COUNT = 15


def register(connection: Connection, *, host: str, pid: int, provider: str, may_settle: bool = False) -> int:
    """Gives a new worker identity.

    Takes: may_settle, whether the provider can settle what it did not answer (providers.base.Capabilities).
    """
    row = connection.execute(
        "INSERT INTO workers (host, pid, provider, may_settle) VALUES (%s, %s, %s, %s) RETURNING id",
        (host, pid, provider, may_settle),
    ).fetchone()
    assert row is not None
    return row[0]


def heartbeat(connection: Connection, worker_id: int) -> bool:
    """Gives False when the worker has been declared dead."""
    cursor = connection.execute(
        "UPDATE workers SET heartbeat_at = now() WHERE id = %s AND status = 'alive'", (worker_id,)
    )
    return cursor.rowcount == 1


def unregister(connection: Connection, worker_id: int) -> None:
    connection.execute(
        "UPDATE workers SET status = 'stopped', ended_at = now() WHERE id = %s AND status = 'alive'",
        (worker_id,),
    )


def bury(connection: Connection, worker_id: int) -> None:
    """Declares one worker dead whose process knows that it is."""
    connection.execute(
        "UPDATE workers SET status = 'dead', ended_at = now() WHERE id = %s AND status = 'alive'",
        (worker_id,),
    )


_RELEASE = """
WITH mine AS (
    SELECT * FROM unnest(%(account_id)s::bigint[], %(id)s::bigint[], %(worker_id)s::bigint[], %(list_id)s::bigint[])
        AS t (account_id, id, worker_id, list_id)
), judged AS (
    SELECT s.account_id, s.id, c.status AS campaign_status,
           (SELECT x.kind || ': ' || x.reason FROM suppressions x
             WHERE x.account_id = s.account_id AND x.email_lower = s.email_lower
               AND (x.list_id IS NULL OR x.list_id = mine.list_id)
             LIMIT 1) AS suppression
      FROM mine
      JOIN sends s ON s.account_id = mine.account_id AND s.id = mine.id AND s.claimed_by = mine.worker_id
      LEFT JOIN campaigns c ON c.account_id = s.account_id AND c.id = s.campaign_id
), moved AS (
    UPDATE sends s
       SET status = CASE WHEN j.suppression IS NOT NULL THEN 'suppressed'
                         WHEN j.campaign_status = 'cancelled' THEN 'cancelled'
                         ELSE 'queued' END,
           provider_reply = CASE WHEN j.suppression IS NOT NULL THEN 'suppressed after queueing: ' || j.suppression
                                 ELSE s.provider_reply END,
           finished_at = CASE WHEN j.suppression IS NOT NULL OR j.campaign_status = 'cancelled' THEN now() END
      FROM judged j
      JOIN mine ON mine.account_id = j.account_id AND mine.id = j.id
     WHERE s.account_id = j.account_id AND s.id = j.id AND s.status = 'sending' AND s.handed_over_at IS NULL
       AND s.claimed_by = mine.worker_id
    RETURNING s.account_id, s.campaign_id, s.status
)
INSERT INTO campaign_counts AS c (account_id, campaign_id, slot, sending, queued, suppressed, cancelled)
SELECT account_id, campaign_id, %(slot)s, -count(*), count(*) FILTER (WHERE status = 'queued'),
       count(*) FILTER (WHERE status = 'suppressed'), count(*) FILTER (WHERE status = 'cancelled')
  FROM moved WHERE campaign_id IS NOT NULL GROUP BY account_id, campaign_id
    ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
   SET sending = c.sending + excluded.sending, queued = c.queued + excluded.queued,
       suppressed = c.suppressed + excluded.suppressed, cancelled = c.cancelled + excluded.cancelled
"""


def release(connection: Connection, rows: Sequence[tuple[Claimed, int | None]], *, slot: int) -> None:
    """Lets go of claimed rows without a mark (`rows`: with their list's id), each to where it belongs.

    An opt-out makes it suppressed, a cancelled campaign cancelled, else it waits in the queue again.
    """
    connection.execute(
        _RELEASE,
        {
            "account_id": [c.account_id for c, _ in rows],
            "id": [c.id for c, _ in rows],
            "worker_id": [c.worker_id for c, _ in rows],
            "list_id": [list_id for _, list_id in rows],
            "slot": slot,
        },
    )


def release_unheld(connection: Connection, worker_id: int, *, held_ids: Sequence[int], slot: int) -> int:
    """Puts back what the worker claimed without knowing: the claim's commit went through, its answer was lost.

    Gives: how many rows.
    """
    row = connection.execute(
        """
        WITH moved AS (
            UPDATE sends s SET status = 'queued'
              FROM claims k CROSS JOIN unnest(k.send_ids) AS held (id)
             WHERE k.worker_id = %(worker_id)s AND s.account_id = k.account_id AND s.id = held.id
               AND s.status = 'sending' AND s.claimed_by = k.worker_id AND s.handed_over_at IS NULL
               AND s.id <> ALL(%(held_ids)s::bigint[])
            RETURNING s.account_id, s.campaign_id
        ), counted AS (
            INSERT INTO campaign_counts AS c (account_id, campaign_id, slot, sending, queued)
            SELECT account_id, campaign_id, %(slot)s, -count(*), count(*)
              FROM moved WHERE campaign_id IS NOT NULL GROUP BY account_id, campaign_id
                ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
               SET sending = c.sending + excluded.sending, queued = c.queued + excluded.queued
        )
        SELECT count(*) FROM moved
        """,
        {"worker_id": worker_id, "held_ids": list(held_ids), "slot": slot},
    ).fetchone()
    assert row is not None
    return row[0]


_SETTLE_LATE = """
WITH moved AS (
    UPDATE sends s
       SET status = %(status)s, attempt_no = %(after)s,
           due_at = CASE WHEN %(wait_s)s::float8 IS NULL THEN s.due_at
                         ELSE now() + make_interval(secs => %(wait_s)s::float8) END,
           provider_reply = COALESCE(%(reply)s, s.provider_reply),
           provider_id = COALESCE(%(provider_id)s, s.provider_id),
           error_class = CASE WHEN %(status)s = 'dead' THEN concat_ws('-', COALESCE(%(code)s::smallint::text,
                              'no-answer'), %(enhanced)s::text, %(phase)s::text) ELSE '' END,
           finished_at = CASE WHEN %(status)s IN ('sent', 'failed') THEN now() END
     WHERE s.account_id = %(account_id)s AND s.id = %(id)s AND s.status = 'in_doubt' AND s.claimed_by = %(worker_id)s
       AND s.attempt_no = %(before)s
    RETURNING s.account_id, s.campaign_id, s.id
), answered AS (
    UPDATE attempts t
       SET outcome = %(outcome)s, phase = %(phase)s, code = %(code)s, enhanced = %(enhanced)s, reply = %(reply)s,
           ended_at = now()
      FROM moved m
     WHERE t.account_id = m.account_id AND t.send_id = m.id AND t.attempt_no = %(before)s
       AND %(outcome)s::text IS NOT NULL
), reopened AS (
    -- Its campaign may have ended meanwhile, with this row in doubt; queued again the row needs it to send.
    UPDATE campaigns c SET status = 'sending', finished_at = NULL, updated_at = now() FROM moved m
     WHERE c.account_id = m.account_id AND c.id = m.campaign_id AND c.status = 'sent' AND %(status)s = 'queued'
), forgotten AS (
    DELETE FROM attempts t USING moved m
     WHERE t.account_id = m.account_id AND t.send_id = m.id AND t.attempt_no = %(before)s
       AND %(outcome)s::text IS NULL
)
INSERT INTO campaign_counts AS c (account_id, campaign_id, slot, in_doubt, queued, sent, failed, dead)
SELECT account_id, campaign_id, %(slot)s, -1, (%(status)s = 'queued')::int, (%(status)s = 'sent')::int,
       (%(status)s = 'failed')::int, (%(status)s = 'dead')::int
  FROM moved WHERE campaign_id IS NOT NULL
    ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
   SET in_doubt = c.in_doubt + excluded.in_doubt, queued = c.queued + excluded.queued, sent = c.sent + excluded.sent,
       failed = c.failed + excluded.failed, dead = c.dead + excluded.dead
"""


def settle_late(connection: Connection, outcome: Outcome, *, slot: int) -> None:
    """Records an outcome whose row has moved on: recovery has put it in doubt, or the record's answer was lost.

    The worker's own late word on the same attempt is proof: the provider's answer, or that the dot was never sent (then
    also when the mark had not gone through).
    """
    connection.execute(
        _SETTLE_LATE,
        {
            "account_id": outcome.claimed.account_id,
            "id": outcome.claimed.id,
            "worker_id": outcome.claimed.worker_id,
            "before": outcome.attempt_no_before,
            "after": outcome.attempt_no_after,
            "status": outcome.status.value,
            "outcome": outcome.outcome,
            "phase": outcome.phase,
            "code": outcome.code,
            "enhanced": outcome.enhanced,
            "reply": outcome.reply,
            "provider_id": outcome.provider_id,
            "wait_s": outcome.wait_s,
            "slot": slot,
        },
    )
    if outcome.outcome is None:
        release(connection, [(outcome.claimed, 0)], slot=slot)


def declare_dead(connection: Connection, *, dead_after_s: float) -> list[int]:
    """Declares workers dead that gave no sign of life; gives their ids.

    A server that has just come back gives everybody the same time again: nobody could reach it meanwhile.
    """
    rows = connection.execute(
        """
        UPDATE workers SET status = 'dead', ended_at = now()
         WHERE status = 'alive' AND heartbeat_at < now() - make_interval(secs => %(dead_after_s)s)
           AND pg_postmaster_start_time() < now() - make_interval(secs => %(dead_after_s)s)
        RETURNING id
        """,
        {"dead_after_s": dead_after_s},
    ).fetchall()
    return [row[0] for row in rows]


_RECOVER = """
WITH lost AS (
    SELECT s.account_id, s.id, s.handed_over_at IS NOT NULL AS is_marked, w.provider,
           -- One whose provider can tell, or makes no second message of it, is not sent again by a guess.
           w.may_settle OR COALESCE(t.in_doubt_policy, 'hold') = 'hold' AS is_held,
           COALESCE(t.attempt_cap, 1) AS attempt_cap
      FROM workers w
      JOIN claims k ON k.worker_id = w.id
     CROSS JOIN unnest(k.send_ids) AS held (id)
      JOIN sends s ON s.account_id = k.account_id AND s.id = held.id AND s.claimed_by = w.id
      LEFT JOIN campaigns c ON c.account_id = s.account_id AND c.id = s.campaign_id
      LEFT JOIN message_types t ON t.account_id = s.account_id AND t.name = COALESCE(c.message_type, s.message_type)
     WHERE w.status IN ('dead', 'stopped') AND s.status = 'sending'
     LIMIT 5000
       FOR UPDATE OF s SKIP LOCKED
), moved AS (
    UPDATE sends s
       SET status = CASE WHEN NOT l.is_marked
                         THEN CASE WHEN s.interrupted_count + 1 >= %(interruption_cap)s THEN 'dead' ELSE 'queued' END
                         WHEN l.is_held THEN 'in_doubt'
                         WHEN s.attempt_no - s.attempt_base >= l.attempt_cap THEN 'dead'
                         ELSE 'queued' END,
           interrupted_count = s.interrupted_count + CASE WHEN l.is_marked THEN 0 ELSE 1 END,
           error_class = CASE WHEN NOT l.is_marked AND s.interrupted_count + 1 >= %(interruption_cap)s
                              THEN 'worker-died'
                              WHEN l.is_marked AND (l.is_held OR s.attempt_no - s.attempt_base >= l.attempt_cap)
                              THEN 'no-answer-recovery' ELSE '' END,
           due_at = CASE WHEN l.is_marked OR s.interrupted_count = 0 THEN s.due_at
                         ELSE now() + make_interval(secs => random() * %(spread_s)s * 2 ^ s.interrupted_count) END,
           provider_reply = CASE WHEN l.is_marked THEN 'the worker died after the hand-over; no answer is known'
                                 WHEN s.interrupted_count + 1 >= %(interruption_cap)s
                                 THEN 'the worker died ' || s.interrupted_count + 1 || ' times with this message'
                                 ELSE s.provider_reply END
      FROM lost l
     WHERE s.account_id = l.account_id AND s.id = l.id AND s.status = 'sending'
    RETURNING s.account_id, s.campaign_id, s.id, s.status, s.attempt_no, s.claimed_by, s.claimed_at, s.handed_over_at,
              l.is_marked, COALESCE(l.provider, %(provider)s) AS provider, s.provider_reply
), tried AS (
    INSERT INTO attempts (account_id, send_id, attempt_no, worker_id, provider, outcome, phase, reply, claimed_at,
                          handed_over_at)
    SELECT account_id, id, attempt_no, claimed_by, provider, 'no_answer', 'recovery', provider_reply, claimed_at,
           handed_over_at
      FROM moved WHERE is_marked
), counted AS (
    INSERT INTO campaign_counts AS c (account_id, campaign_id, slot, sending, queued, dead, in_doubt)
    SELECT account_id, campaign_id, %(slot)s, -count(*), count(*) FILTER (WHERE status = 'queued'),
           count(*) FILTER (WHERE status = 'dead'), count(*) FILTER (WHERE status = 'in_doubt')
      FROM moved WHERE campaign_id IS NOT NULL GROUP BY account_id, campaign_id ORDER BY account_id, campaign_id
        ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
       SET sending = c.sending + excluded.sending, queued = c.queued + excluded.queued, dead = c.dead + excluded.dead,
           in_doubt = c.in_doubt + excluded.in_doubt
)
SELECT count(*), count(*) FILTER (WHERE status = 'in_doubt'), count(*) FILTER (WHERE status = 'dead') FROM moved
"""


def recover(connection: Connection, *, provider: str, interruption_cap: int, spread_s: float) -> tuple[int, int, int]:
    """Moves on the rows of workers that are dead, as the table in the design's ledger.md says.

    Unmarked rows go back to the queue without an attempt counted; from the second interruption on with a random
    delay (up to spread_s * 2 ** interruptions seconds), so that a message that kills workers meets fewer bystanders.
    Marked ones follow their message type's policy, or are in doubt where their provider can settle them (doubts.py).

    Takes: provider, of workers that did not say theirs.
    Gives: rows moved, of them in doubt, of them dead letters.
    """
    row = connection.execute(
        _RECOVER,
        {
            "provider": provider,
            "interruption_cap": interruption_cap,
            "spread_s": spread_s,
            "slot": RECOVERY_SLOT,
        },
    ).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def forget_claims(connection: Connection) -> int:
    """Deletes the claims of workers that are gone, once recovery has moved on all their sends; gives how many."""
    return connection.execute(
        """
        DELETE FROM claims k USING workers w
         WHERE w.id = k.worker_id AND w.status IN ('dead', 'stopped')
           AND NOT EXISTS (SELECT FROM unnest(k.send_ids) AS held (id)
                             JOIN sends s ON s.account_id = k.account_id AND s.id = held.id
                            WHERE s.status = 'sending' AND s.claimed_by = k.worker_id)
        """
    ).rowcount


def provider_state(connection: Connection, name: str) -> Any:
    """Gives (breaker, failure_count, seconds until the next try) of the provider; makes its row when there is none."""
    connection.execute("INSERT INTO provider_states (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,))
    return connection.execute(
        "SELECT breaker, failure_count, GREATEST(extract(epoch FROM next_try_at - now()), 0)::float8"
        "  FROM provider_states WHERE name = %s",
        (name,),
    ).fetchone()


def open_breaker(connection: Connection, name: str, *, failure_count: int, error: str, wait_s: float) -> None:
    connection.execute(
        "UPDATE provider_states SET breaker = 'open', failure_count = %s, error = %s, error_at = now(),"
        "       next_try_at = now() + make_interval(secs => %s) WHERE name = %s",
        (failure_count, error, wait_s, name),
    )


def take_try(connection: Connection, name: str, *, hold_s: float) -> bool:
    """Gives True to the one worker that may try an open provider now; the others wait another `hold_s`."""
    cursor = connection.execute(
        "UPDATE provider_states SET next_try_at = now() + make_interval(secs => %s)"
        " WHERE name = %s AND breaker = 'open' AND next_try_at <= now()",
        (hold_s, name),
    )
    return cursor.rowcount == 1


def close_breaker(connection: Connection, name: str) -> None:
    connection.execute(
        "UPDATE provider_states SET breaker = 'closed', failure_count = 0, next_try_at = NULL"
        " WHERE name = %s AND breaker = 'open'",
        (name,),
    )


def reserve_pace(connection: Connection, name: str, *, count: int, interval_s: float) -> float:
    """Promises the next `count` moments, `interval_s` apart, to the caller; gives the seconds until the first.

    All workers share the one row, and it stays when they stop: a limit that forgets its past on restart is no limit.
    """
    row = connection.execute(
        """
        UPDATE provider_states
           SET pace_next_at = GREATEST(pace_next_at, now()) + make_interval(secs => %(interval_s)s * %(count)s)
         WHERE name = %(name)s
        RETURNING extract(epoch FROM pace_next_at - now())::float8 - %(interval_s)s * %(count)s
        """,
        {"name": name, "count": count, "interval_s": interval_s},
    ).fetchone()
    assert row is not None
    return max(row[0], 0.0)


def listen(connection: Connection) -> None:
    """Asks for a wake-up whenever somebody commits new work."""
    connection.execute("LISTEN sendonce_work")
