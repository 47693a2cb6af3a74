"""SQL of the audience build's measurement: its subscribers, and the bare INSERT that it is measured against."""

import time

from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from console.db import transaction

# So many subscribers share an address with another one, and one in a hundred has opted out.
SHARED_EVERY = 50
SUPPRESSED_EVERY = 100

_SUBSCRIBERS = """
INSERT INTO subscribers (account_id, email, email_lower, external_id, attributes)
SELECT :account_id, a, a, i::text,
       jsonb_build_object('first_name', 'Name' || i, 'city', 'City ' || i % 100, 'plan', 'basic', 'points', i % 1000)
  FROM generate_series(1, :count) AS i
 CROSS JOIN LATERAL (
       SELECT md5((i - (i % :shared_every = 0)::int)::text) || '@example.com') AS t (a)
"""
_MEMBERS = """
INSERT INTO list_members (account_id, list_id, subscriber_id)
SELECT account_id, :list_id, id FROM subscribers WHERE account_id = :account_id
"""
_SUPPRESSIONS = """
INSERT INTO suppressions (account_id, email_lower, list_id, kind, reason)
SELECT account_id, email_lower, CASE WHEN id % 2 = 0 THEN CAST(:list_id AS bigint) END, 'unsubscribed', 'bench'
  FROM subscribers WHERE account_id = :account_id AND id % :suppressed_every = 0
    ON CONFLICT DO NOTHING
"""
_BARE = """
INSERT INTO bench_sends (account_id, id, campaign_id, subscriber_id, email, email_lower, lane, dedupe_key, status,
                         due_at, first_due_at, attempt_no, interrupted_count, message_id, merge_values, correlation_id,
                         created_at)
SELECT DISTINCT ON (s.email_lower) s.account_id, s.id, 1, s.id, s.email, s.email_lower, 'bulk', 'campaign:1:' || s.id,
       'queued', now(), now(), 0, 0, '<' || replace(gen_random_uuid()::text, '-', '') || '@example.com>', s.attributes,
       'bench', now()
  FROM subscribers s
  JOIN list_members m ON m.account_id = s.account_id AND m.subscriber_id = s.id
 WHERE s.account_id = :account_id AND m.list_id = :list_id AND s.status = 'confirmed'
 ORDER BY s.email_lower, s.created_at, s.id
"""


def fill(session: Session, account_id: int, *, list_id: int, subscriber_count: int) -> None:
    """Makes the account's subscribers, all on one list, and some who have opted out."""
    place = {"account_id": account_id, "list_id": list_id}
    people = {"account_id": account_id, "count": subscriber_count, "shared_every": SHARED_EVERY}
    session.execute(text(_SUBSCRIBERS), people)
    session.execute(text(_MEMBERS), place)
    session.execute(text(_SUPPRESSIONS), {**place, "suppressed_every": SUPPRESSED_EVERY})


def settle(engine: Engine) -> None:
    """Lets the server do what it would do in a quiet moment, so that neither side pays for the other's leftovers."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE subscribers, list_members, suppressions"))
        connection.execute(text("CHECKPOINT"))


def bare_insert_s(engine: Engine, account_id: int, *, list_id: int) -> float:
    """Gives how long the bare INSERT takes into a table with the indexes of sends."""
    with transaction(engine) as session:
        like = "LIKE sends INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING INDEXES"
        session.execute(text(f"CREATE TABLE bench_sends ({like})"))
    settle(engine)
    began = time.perf_counter()
    with transaction(engine) as session:
        session.execute(text(_BARE), {"account_id": account_id, "list_id": list_id})
    took_s = time.perf_counter() - began
    with transaction(engine) as session:
        session.execute(text("DROP TABLE bench_sends"))
    return took_s
