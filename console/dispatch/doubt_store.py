"""SQL of what is settled without a person: messages in doubt, what their providers were asked, and what came of it.

Each function is one statement on a connection that commits by itself, and moves a send by compare-and-set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from psycopg import Connection
from psycopg.rows import class_row

from console.dispatch.store import RECOVERY_SLOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A message whose next step is due, as it stands at `now`, the database's."""

    account_id: int
    send_id: int
    provider: str
    first_at: datetime
    look_up_count: int
    was_absent: bool
    now: datetime
    status: str
    attempt_no: int
    message_id: str
    email: str
    bound_until: datetime | None
    policy: str
    may_hand_over: bool  # nothing but the doubt itself stands in the way of another hand-over
    is_paused: bool  # its campaign is
    is_away: bool  # the provider's breaker is open


def note(connection: Connection, providers: Sequence[tuple[int, str]], *, limit: int = 1000) -> int:
    """Takes in messages that are in doubt by these providers (account, name in the registry) since the last time.

    Gives: how many.
    """
    return connection.execute(
        """
        INSERT INTO doubts (account_id, send_id, attempt_no, provider, first_at, due_at)
        SELECT s.account_id, s.id, s.attempt_no, a.provider, COALESCE(first.at, a.ended_at), GREATEST(s.due_at, now())
          FROM unnest(%(account_ids)s::bigint[], %(names)s::text[]) AS p (account_id, provider)
          JOIN sends s ON s.account_id = p.account_id AND s.exception = 'in_doubt'
          JOIN attempts a ON a.account_id = s.account_id AND a.send_id = s.id AND a.attempt_no = s.attempt_no
                         AND a.provider = p.provider
          LEFT JOIN doubts d ON d.account_id = s.account_id AND d.send_id = s.id
         CROSS JOIN LATERAL (SELECT min(COALESCE(t.handed_over_at, t.ended_at)) AS at FROM attempts t
                              WHERE t.account_id = s.account_id AND t.send_id = s.id AND t.provider = a.provider
                                AND t.outcome = 'no_answer') AS first
         WHERE d.attempt_no IS DISTINCT FROM s.attempt_no
         LIMIT %(limit)s
            ON CONFLICT (account_id, send_id) DO UPDATE
           SET attempt_no = excluded.attempt_no, provider = excluded.provider, first_at = excluded.first_at,
               due_at = excluded.due_at, look_up_count = 0, was_absent = false
        """,
        {
            "account_ids": [account_id for account_id, _ in providers],
            "names": [name for _, name in providers],
            "limit": limit,
        },
    ).rowcount


def take(connection: Connection, *, limit: int, lease_s: float) -> list[Doubt]:
    """Gives messages whose next step is due; no other process gets them within the lease."""
    with connection.cursor(row_factory=class_row(Doubt)) as cursor:
        return cursor.execute(
            """
            WITH due AS MATERIALIZED (
                SELECT d.account_id, d.send_id FROM doubts d
                 WHERE d.due_at <= now() ORDER BY d.due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
            ), taken AS (
                UPDATE doubts d SET due_at = now() + make_interval(secs => %(lease_s)s)
                  FROM due WHERE d.account_id = due.account_id AND d.send_id = due.send_id
                RETURNING d.account_id, d.send_id, d.provider, d.first_at, d.look_up_count, d.was_absent
            )
            SELECT k.account_id, k.send_id, k.provider, k.first_at, k.look_up_count, k.was_absent, now() AS now,
                   s.status, s.attempt_no, s.message_id, s.email, s.bound_until,
                   COALESCE(t.in_doubt_policy, 'hold') AS policy,
                   COALESCE(c.status, 'sending') IN ('sending', 'sent', 'paused')
                   AND s.attempt_no - s.attempt_base < COALESCE(t.attempt_cap, 1)
                   AND s.first_due_at > now() - make_interval(secs => COALESCE(t.age_cap_s, 0))
                   AND COALESCE(s.expires_at > now(), true)
                   -- Refused now, it may still have been taken before: its key proves nothing any more.
                   AND COALESCE(a.outcome <> 'refused', true)
                   AND NOT EXISTS (SELECT FROM suppressions x
                                    WHERE x.account_id = s.account_id AND x.email_lower = s.email_lower
                                      AND (x.list_id IS NULL OR x.list_id = c.list_id)) AS may_hand_over,
                   COALESCE(c.status = 'paused', false) AS is_paused,
                   COALESCE(p.breaker = 'open', false) AS is_away
              FROM taken k
              JOIN sends s ON s.account_id = k.account_id AND s.id = k.send_id
              LEFT JOIN campaigns c ON c.account_id = s.account_id AND c.id = s.campaign_id
              LEFT JOIN message_types t ON t.account_id = s.account_id
                                       AND t.name = COALESCE(c.message_type, s.message_type)
              LEFT JOIN attempts a ON a.account_id = s.account_id AND a.send_id = s.id AND a.attempt_no = s.attempt_no
              LEFT JOIN provider_states p ON p.name = k.provider
            """,
            {"limit": limit, "lease_s": lease_s},
        ).fetchall()


def postpone(connection: Connection, doubt: Doubt, due_at: datetime | None) -> None:
    """Says when the next step is due; None: there is none, until the message is in doubt by another attempt."""
    connection.execute(
        "UPDATE doubts SET due_at = %s WHERE account_id = %s AND send_id = %s",
        (due_at, doubt.account_id, doubt.send_id),
    )


def forget(connection: Connection, doubt: Doubt) -> None:
    """Forgets a message that is not in doubt any more; its look-ups stay on record."""
    connection.execute("DELETE FROM doubts WHERE account_id = %s AND send_id = %s", (doubt.account_id, doubt.send_id))


QUEUE_AGAIN = """
WITH moved AS (
    UPDATE sends s
       SET status = 'queued', due_at = now(), error_class = '', bound_to = %(route_name)s, bound_until = %(until)s
     WHERE s.account_id = %(account_id)s AND s.id = %(send_id)s AND s.status = 'in_doubt'
       AND s.attempt_no = %(attempt_no)s
       AND (s.campaign_id IS NULL
            OR EXISTS (SELECT FROM campaigns c WHERE c.account_id = s.account_id AND c.id = s.campaign_id
                                                 AND c.status IN ('sending', 'sent')
                          FOR NO KEY UPDATE))
    RETURNING s.account_id, s.campaign_id
), reopened AS (
    UPDATE campaigns c SET status = 'sending', finished_at = NULL, updated_at = now() FROM moved m
     WHERE c.account_id = m.account_id AND c.id = m.campaign_id AND c.status = 'sent'
), noted AS (
    UPDATE doubts d SET due_at = LEAST(%(until)s, now() + %(follow_after)s) FROM moved m
     WHERE d.account_id = m.account_id AND d.send_id = %(send_id)s
), counted AS (
    INSERT INTO campaign_counts AS c (account_id, campaign_id, slot, in_doubt, queued)
    SELECT account_id, campaign_id, %(slot)s, -1, 1 FROM moved WHERE campaign_id IS NOT NULL
        ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
       SET in_doubt = c.in_doubt + excluded.in_doubt, queued = c.queued + excluded.queued
)
SELECT pg_notify('sendonce_work', '') FROM moved
"""


def queue_again(
    connection: Connection, doubt: Doubt, *, route_name: str, until: datetime, follow_after: timedelta
) -> bool:
    """Puts a message in doubt back into the queue, bound to its provider until then; gives whether it was still so.

    Takes: route_name, the provider's name in routes; follow_after, when to look what has become of it.
    """
    values = _values(doubt) | {"route_name": route_name, "until": until, "follow_after": follow_after}
    return connection.execute(QUEUE_AGAIN, values).rowcount == 1


DOUBT_AGAIN = """
WITH moved AS (
    UPDATE sends s
       SET status = 'in_doubt', error_class = 'no-answer-window',
           provider_reply = 'in doubt, and not handed over again in the time in which that was safe'
     WHERE s.account_id = %(account_id)s AND s.id = %(send_id)s AND s.status = 'queued'
       AND s.attempt_no = %(attempt_no)s AND s.bound_until <= now()
    RETURNING s.account_id, s.campaign_id
), counted AS (
    INSERT INTO campaign_counts AS c (account_id, campaign_id, slot, queued, in_doubt)
    SELECT account_id, campaign_id, %(slot)s, -1, 1 FROM moved WHERE campaign_id IS NOT NULL
        ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
       SET queued = c.queued + excluded.queued, in_doubt = c.in_doubt + excluded.in_doubt
)
-- Taken in anew, it gets its next step.
DELETE FROM doubts d USING moved m WHERE d.account_id = m.account_id AND d.send_id = %(send_id)s
"""


def doubt_again(connection: Connection, doubt: Doubt) -> bool:
    """Puts a bound message back into doubt whose time in the queue is over; gives whether it was still there."""
    return connection.execute(DOUBT_AGAIN, _values(doubt)).rowcount == 1


SETTLE_FOUND = """
WITH looked AS (
    INSERT INTO look_ups (account_id, send_id, attempt_no, provider, asked, answer, words, provider_id)
    VALUES (%(account_id)s, %(send_id)s, %(attempt_no)s, %(provider)s, %(asked)s, %(answer)s, %(words)s,
            %(provider_id)s)
), moved AS (
    UPDATE sends s
       SET status = 'sent', finished_at = now(), error_class = '', provider_reply = %(words)s,
           provider_id = COALESCE(%(provider_id)s, s.provider_id)
     WHERE s.account_id = %(account_id)s AND s.id = %(send_id)s AND s.status = 'in_doubt'
       AND s.attempt_no = %(attempt_no)s AND %(answer)s::text = 'found'
    RETURNING s.account_id, s.campaign_id
), noted AS (
    UPDATE doubts d
       SET look_up_count = d.look_up_count + 1, was_absent = %(answer)s::text = 'absent', due_at = now()
     WHERE d.account_id = %(account_id)s AND d.send_id = %(send_id)s AND d.attempt_no = %(attempt_no)s
), counted AS (
    INSERT INTO campaign_counts AS c (account_id, campaign_id, slot, in_doubt, sent)
    SELECT account_id, campaign_id, %(slot)s, -1, 1 FROM moved WHERE campaign_id IS NOT NULL
        ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
       SET in_doubt = c.in_doubt + excluded.in_doubt, sent = c.sent + excluded.sent
)
SELECT count(*) FROM moved
"""


def record_look_up(
    connection: Connection, doubt: Doubt, *, asked: str, answer: str, words: str, provider_id: str | None = None
) -> bool:
    """Writes a look-up down; `found` moves the send to sent. Gives whether it moved."""
    found = {"provider": doubt.provider, "asked": asked, "answer": answer, "words": words, "provider_id": provider_id}
    row = connection.execute(SETTLE_FOUND, _values(doubt) | found).fetchone()
    assert row is not None
    return row[0] == 1


def _values(doubt: Doubt) -> dict[str, object]:
    return {
        "account_id": doubt.account_id,
        "send_id": doubt.send_id,
        "attempt_no": doubt.attempt_no,
        "slot": RECOVERY_SLOT,
    }
