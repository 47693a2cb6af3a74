"""The commits of a hand-over: the claim, then the mark together with the outcomes of messages that are through.

One statement is one transaction is one round trip (the connection commits each by itself), so several messages share
one commit. The functions give what to ask (asker.py) and read what was answered. The states in these statements are
literals: a bound list would hide the partial indexes from the planner. tests/sends/test_states.py holds them against
sends/states.py.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from console.dispatch.asker import Statement, number_array, text_array
from console.dispatch.route_store import chosen
from console.sends.states import State

# A row's place in the queue: due_at as the database writes it, and id.
Position = tuple[str, int]
QUEUE_START: Position = ("-infinity", 0)


class Claimed(NamedTuple):
    """A row that this worker holds."""

    account_id: int
    campaign_id: int | None
    id: int
    worker_id: int  # the identity that the claim was made under; fences mark and outcome
    email: str
    subscriber_id: int | None
    attempt_no: int  # before this attempt
    message_id: str
    dated_at: datetime
    merge_values: dict[str, Any]
    claim_id: int = 0  # the row of `claims` that names it
    attempt_base: int = 0  # attempts before a person put it back: the cap and the waits count from there
    message_type: str | None = None  # of those outside campaigns, with their content
    content_id: int | None = None
    is_bound: bool = False  # handed over again to the provider that may have it already
    # What the log says of it, of those outside campaigns; a campaign's are all alike (jobs.Line).
    correlation_id: str = ""
    dedupe_key: str = ""
    trigger_source: str | None = None
    event: str | None = None


class Outcome(NamedTuple):
    """What became of a claimed row. `outcome` None: surely not handed over and nothing said about it."""

    claimed: Claimed
    status: State
    was_marked: bool
    outcome: str | None = None  # accepted, deferred, refused, no_answer
    phase: str = ""
    code: int | None = None
    enhanced: str | None = None
    reply: str | None = None
    provider_id: str | None = None
    wait_s: float | None = None

    @property
    def attempt_no_before(self) -> int:
        """The attempt number that the row has now, if it is still ours: the mark has counted one."""
        return self.claimed.attempt_no + self.was_marked

    @property
    def attempt_no_after(self) -> int:
        return self.claimed.attempt_no + (self.outcome is not None)


_CLAIM = """
WITH picked AS MATERIALIZED (
    SELECT s.account_id, s.id, s.email_lower, s.message_type
      FROM sends s
     WHERE s.account_id = %(account_id)s::bigint AND {queue} AND s.is_queued
       AND s.due_at <= now() AND (s.due_at, s.id) > (%(after_due_at)s::timestamptz, %(after_id)s::bigint)
     ORDER BY s.due_at, s.id
     LIMIT %(limit)s::bigint
       FOR UPDATE OF s SKIP LOCKED
), judged AS MATERIALIZED (
    SELECT p.account_id, p.id,
           (SELECT x.kind || ': ' || x.reason FROM suppressions x
             WHERE x.account_id = p.account_id AND x.email_lower = p.email_lower
               AND {suppressed_for}
             LIMIT 1) AS suppression, {age_cap_s} AS age_cap_s
      FROM picked p
), moved AS (
    UPDATE sends s
       SET status = CASE WHEN j.suppression IS NOT NULL THEN 'suppressed'
                         WHEN s.expires_at <= now() THEN 'expired'
                         WHEN s.first_due_at < now() - make_interval(secs => j.age_cap_s) THEN 'dead'
                         ELSE 'sending' END,
           provider_reply = CASE WHEN j.suppression IS NOT NULL THEN 'suppressed after queueing: ' || j.suppression
                                 WHEN s.expires_at <= now() THEN 'expired before it could be sent'
                                 WHEN s.first_due_at < now() - make_interval(secs => j.age_cap_s)
                                 THEN concat_ws('; ', 'gave up: too old', s.provider_reply)
                                 ELSE s.provider_reply END,
           error_class = CASE WHEN j.suppression IS NULL AND COALESCE(s.expires_at > now(), true)
                               AND s.first_due_at < now() - make_interval(secs => j.age_cap_s)
                              THEN 'too-old' ELSE '' END,
           finished_at = CASE WHEN j.suppression IS NOT NULL OR s.expires_at <= now() THEN now() END,
           claimed_by = %(worker_id)s::bigint, claimed_at = now(), handed_over_at = NULL,
           dated_at = COALESCE(s.dated_at, now())
      FROM judged j
     WHERE s.account_id = j.account_id AND s.id = j.id AND s.status = 'queued'
    RETURNING s.id, s.email, s.subscriber_id, s.attempt_no, s.message_id, s.dated_at, s.merge_values, s.status,
              s.due_at, s.attempt_base, s.message_type, s.content_id, s.bound_to IS NOT NULL AS is_bound,
              s.correlation_id, s.dedupe_key
){counted}, held AS (
    INSERT INTO claims (account_id, worker_id, campaign_id, send_ids)
    SELECT %(account_id)s::bigint, %(worker_id)s::bigint, {campaign_id}, array_agg(id)
      FROM moved WHERE status = 'sending' HAVING count(*) > 0
    RETURNING id
), through AS (
    DELETE FROM claims WHERE worker_id = %(worker_id)s::bigint AND id = ANY(%(through_ids)s::bigint[])
)
SELECT json_build_array(
           (SELECT id FROM held),
           COALESCE(json_agg(json_build_array(id, email, subscriber_id, attempt_no, message_id,
                                              extract(epoch FROM dated_at)::bigint, merge_values, status, due_at::text,
                                              attempt_base, message_type, content_id, is_bound{evidence})
                             ORDER BY due_at, id), '[]'))
  FROM moved
"""
_COUNTED = """, counted AS (
    INSERT INTO campaign_counts AS c (account_id, campaign_id, slot, queued, sending, suppressed, dead)
    SELECT %(account_id)s::bigint, %(campaign_id)s::bigint, %(slot)s::smallint, -count(*),
           count(*) FILTER (WHERE status = 'sending'), count(*) FILTER (WHERE status = 'suppressed'),
           count(*) FILTER (WHERE status = 'dead')
      FROM moved HAVING count(*) > 0
        ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
       SET queued = c.queued + excluded.queued, sending = c.sending + excluded.sending,
           suppressed = c.suppressed + excluded.suppressed, dead = c.dead + excluded.dead
)"""


def _claim(name: str, **parts: str) -> Statement:
    """Gives the claim's statement for one kind of queue."""
    claim = _CLAIM
    for part, text in parts.items():
        claim = claim.replace("{" + part + "}", text)
    return Statement(name, claim)


CLAIM = _claim(
    "claim",
    queue="s.campaign_id = %(campaign_id)s::bigint"
    " AND CASE WHEN s.bound_to IS NOT NULL THEN s.bound_to = %(provider)s::text AND s.bound_until > now()"
    "          ELSE (s.attempt_no - s.attempt_base) % %(route_size)s::int = ANY(%(places)s::int[]) END"
    " AND EXISTS (SELECT FROM campaigns c"
    " WHERE c.account_id = %(account_id)s AND c.id = %(campaign_id)s AND c.status = 'sending')",
    suppressed_for="(x.list_id IS NULL OR x.list_id = %(list_id)s::bigint)",
    age_cap_s="%(age_cap_s)s::float8",
    campaign_id="%(campaign_id)s::bigint",
    counted=_COUNTED,
    evidence="",
)
# What belongs to no campaign, of one account and lane; its caps are its message type's.
CLAIM_LANE = _claim(
    "claim_lane",
    queue=f"""s.campaign_id IS NULL AND s.lane = %(lane)s::text
       AND CASE WHEN s.bound_to IS NOT NULL THEN s.bound_to = %(provider)s::text AND s.bound_until > now()
                ELSE EXISTS (
                   SELECT FROM message_types t
                     LEFT JOIN routes r ON r.account_id = t.account_id AND r.name = COALESCE(t.route, 'default')
                    WHERE t.account_id = s.account_id AND t.name = s.message_type
                      AND COALESCE({chosen("s.account_id", "r.providers", "(s.attempt_no - s.attempt_base)")}, 'smtp')
                          = %(provider)s::text) END""",
    suppressed_for="x.list_id IS NULL",
    age_cap_s="(SELECT t.age_cap_s::float8 FROM message_types t"
    " WHERE t.account_id = p.account_id AND t.name = p.message_type)",
    campaign_id="NULL::bigint",
    counted="",
    evidence=""", correlation_id, dedupe_key, (SELECT t.source FROM triggers t
                 WHERE t.account_id = %(account_id)s::bigint AND t.send_id = moved.id ORDER BY t.id LIMIT 1),
             (SELECT t.event FROM triggers t
               WHERE t.account_id = %(account_id)s::bigint AND t.send_id = moved.id ORDER BY t.id LIMIT 1)""",
)

RECORD = Statement(
    "record",
    """
WITH o AS MATERIALIZED (
    SELECT * FROM unnest(%(o_account_id)s::bigint[], %(o_id)s::bigint[], %(o_worker_id)s::bigint[],
                         %(o_before)s::smallint[], %(o_after)s::smallint[], %(o_status)s::text[],
                         %(o_outcome)s::text[], %(o_phase)s::text[], %(o_code)s::smallint[], %(o_enhanced)s::text[],
                         %(o_reply)s::text[], %(o_provider_id)s::text[], %(o_wait_s)s::float8[])
        AS t (account_id, id, worker_id, before, after, status, outcome, phase, code, enhanced, reply, provider_id,
              wait_s)
), done AS (
    UPDATE sends s
       SET status = o.status, attempt_no = o.after,
           due_at = CASE WHEN o.wait_s IS NULL THEN s.due_at ELSE now() + make_interval(secs => o.wait_s) END,
           provider_reply = COALESCE(o.reply, s.provider_reply),
           provider_id = COALESCE(o.provider_id, s.provider_id),
           error_class = CASE WHEN o.status IN ('dead', 'in_doubt')
                              THEN concat_ws('-', COALESCE(o.code::text, 'no-answer'), o.enhanced, o.phase)
                              ELSE '' END,
           finished_at = CASE WHEN o.status IN ('sent', 'failed') THEN now() END
      FROM o
     WHERE s.account_id = o.account_id AND s.id = o.id AND s.status = 'sending' AND s.claimed_by = o.worker_id
       AND s.attempt_no = o.before
    RETURNING s.account_id, s.id, s.campaign_id, s.status, s.claimed_at, s.handed_over_at, o.after, o.worker_id,
              o.outcome, o.phase, o.code, o.enhanced, o.reply
), tried AS (
    INSERT INTO attempts (account_id, send_id, attempt_no, worker_id, provider, outcome, phase, code, enhanced, reply,
                          claimed_at, handed_over_at)
    SELECT account_id, id, after, worker_id, %(provider)s::text, outcome, phase, code, enhanced, reply, claimed_at,
           handed_over_at
      FROM done WHERE outcome IS NOT NULL
), counted AS (
    INSERT INTO campaign_counts AS c (account_id, campaign_id, slot, sending, queued, sent, failed, dead, in_doubt)
    SELECT account_id, campaign_id, %(slot)s::smallint, -count(*), count(*) FILTER (WHERE status = 'queued'),
           count(*) FILTER (WHERE status = 'sent'), count(*) FILTER (WHERE status = 'failed'),
           count(*) FILTER (WHERE status = 'dead'), count(*) FILTER (WHERE status = 'in_doubt')
      FROM done WHERE campaign_id IS NOT NULL GROUP BY account_id, campaign_id
        ON CONFLICT (account_id, campaign_id, slot) DO UPDATE
       SET sending = c.sending + excluded.sending, queued = c.queued + excluded.queued, sent = c.sent + excluded.sent,
           failed = c.failed + excluded.failed, dead = c.dead + excluded.dead,
           in_doubt = c.in_doubt + excluded.in_doubt
), marked AS (
    UPDATE sends s
       SET handed_over_at = clock_timestamp(), attempt_no = s.attempt_no + 1
      FROM unnest(%(m_account_id)s::bigint[], %(m_id)s::bigint[], %(m_worker_id)s::bigint[], %(m_list_id)s::bigint[])
        AS m (account_id, id, worker_id, list_id)
     WHERE s.account_id = m.account_id AND s.id = m.id AND s.status = 'sending' AND s.claimed_by = m.worker_id
       AND s.handed_over_at IS NULL AND (s.bound_until IS NULL OR s.bound_until > now())
       AND NOT EXISTS (SELECT FROM suppressions x
                        WHERE x.account_id = s.account_id AND x.email_lower = s.email_lower
                          AND (x.list_id IS NULL OR x.list_id = m.list_id))
       AND (s.campaign_id IS NULL
            OR EXISTS (SELECT FROM campaigns c
                        WHERE c.account_id = s.account_id AND c.id = s.campaign_id AND c.status = 'sending'))
    RETURNING s.id
)
SELECT json_build_array(ARRAY(SELECT id FROM marked), ARRAY(SELECT id FROM done))
""",
)


def claim_values(
    *,
    worker_id: int,
    account_id: int,
    campaign_id: int,
    list_id: int,
    age_cap_s: int,
    provider: str,
    limit: int,
    after: Position,
    slot: int,
    route_size: int = 1,
    places: Sequence[int] = (0,),
    through_ids: Sequence[int] = (),
) -> dict[str, str | int | float]:
    """Gives the values for CLAIM: up to `limit` due rows of the campaign, behind `after` in the queue's order.

    Rows that an opt-out or the age cap stops are moved to `suppressed` or `dead` by the same statement. The rest is
    named in one row of `claims`; `through_ids` are earlier claims of the worker, all of whose sends have moved on.

    Takes: provider, its name in routes; places, what attempts modulo `route_size` gives for the rows that are its turn.
    """
    return {
        "worker_id": worker_id,
        "account_id": account_id,
        "campaign_id": campaign_id,
        "list_id": list_id,
        "age_cap_s": age_cap_s,
        "provider": provider,
        "route_size": route_size,
        "places": number_array(places),
        "limit": limit,
        "after_due_at": after[0],
        "after_id": after[1],
        "slot": slot,
        "through_ids": number_array(through_ids),
    }


def claim_lane_values(
    *,
    worker_id: int,
    account_id: int,
    lane: str,
    provider: str,
    limit: int,
    after: Position,
    through_ids: Sequence[int] = (),
) -> dict[str, str | int | float]:
    """Gives the values for CLAIM_LANE; see claim_values."""
    return {
        "worker_id": worker_id,
        "account_id": account_id,
        "lane": lane,
        "provider": provider,
        "limit": limit,
        "after_due_at": after[0],
        "after_id": after[1],
        "through_ids": number_array(through_ids),
    }


def claimed_rows(
    answer: list[Any], *, worker_id: int, account_id: int, campaign_id: int | None
) -> tuple[list[Claimed], Position | None]:
    """Reads CLAIM's answer: the rows that are the worker's now, and the place of the last row touched, if any."""
    claim_id, found = answer
    if not found:
        return [], None
    rows = [
        Claimed(
            account_id,
            campaign_id,
            id_,
            worker_id,
            email,
            subscriber_id,
            attempt_no,
            message_id,
            datetime.fromtimestamp(dated_s, UTC),
            merge_values,
            claim_id,
            *rest,
        )
        for id_, email, subscriber_id, attempt_no, message_id, dated_s, merge_values, status, _, *rest in found
        if status == "sending"
    ]
    return rows, (found[-1][8], found[-1][0])


def record_values(
    *, outcomes: Sequence[Outcome], marks: Sequence[tuple[Claimed, int | None]], provider: str, slot: int
) -> dict[str, str | int | float]:
    """Gives the values for RECORD; `marks` are rows about to be handed over, with their list's id, if any.

    RECORD answers with two lists of send ids: the marks that went in, and the outcomes. A row whose mark is missing
    must not be handed over: it is no longer ours, its person has opted out, or its campaign is paused or cancelled.
    """
    claims = [o.claimed for o in outcomes]
    return {
        "o_account_id": number_array([c.account_id for c in claims]),
        "o_id": number_array([c.id for c in claims]),
        "o_worker_id": number_array([c.worker_id for c in claims]),
        "o_before": number_array([o.attempt_no_before for o in outcomes]),
        "o_after": number_array([o.attempt_no_after for o in outcomes]),
        "o_status": text_array([o.status.value for o in outcomes]),
        "o_outcome": text_array([o.outcome for o in outcomes]),
        "o_phase": text_array([o.phase for o in outcomes]),
        "o_code": number_array([o.code for o in outcomes]),
        "o_enhanced": text_array([o.enhanced for o in outcomes]),
        "o_reply": text_array([o.reply for o in outcomes]),
        "o_provider_id": text_array([o.provider_id for o in outcomes]),
        "o_wait_s": number_array([o.wait_s for o in outcomes]),
        "m_account_id": number_array([c.account_id for c, _ in marks]),
        "m_id": number_array([c.id for c, _ in marks]),
        "m_worker_id": number_array([c.worker_id for c, _ in marks]),
        "m_list_id": number_array([list_id for _, list_id in marks]),
        "provider": provider,
        "slot": slot,
    }
