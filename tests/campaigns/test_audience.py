"""Building the audience: one send for each address, whatever is killed, doubled or shared."""

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import make
import psycopg
import pytest
import stage as stages
from sqlalchemy import Engine, text
from stage import Stage

from console.audience import store as audience
from console.campaigns import audience_store, ticks
from console.campaigns.counts_store import check_counters
from console.db import transaction

# Rows of people, lists and opt-outs that statements have read so far, by whatever way.
_ROWS_READ = text(
    "SELECT sum(seq_tup_read + COALESCE(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables"
    " WHERE relname IN ('subscribers', 'list_members', 'suppressions')"
)


@pytest.fixture
def stage(engine: Engine) -> Stage:
    return stages.stage(engine, emails=())


def build(stage: Stage, campaign_id: int, *, chunk_addresses: int = 100) -> int:
    """Builds to the end; gives in how many chunks."""
    count = 0
    while built := ticks.build_chunk(
        stage.engine, account_id=stage.account_id, campaign_id=campaign_id, chunk_addresses=chunk_addresses
    ):
        count += 1
        if built.is_complete:
            break
    return count


def sends(stage: Stage, columns: str = "email_lower", campaign_id: int | None = None) -> list[tuple]:
    rows = stage.sql(
        f"SELECT {columns} FROM sends WHERE CAST(:id AS bigint) IS NULL OR campaign_id = :id ORDER BY email_lower",
        id=campaign_id,
    )
    return [tuple(row) for row in rows]


def assert_whole(stage: Stage, campaign_id: int) -> None:
    """One row for each address of the list's confirmed members, the earliest's; counters equal to the rows."""
    expected = stage.sql(
        "SELECT DISTINCT ON (s.email_lower) s.email_lower, s.id FROM subscribers s"
        "  JOIN list_members m ON m.account_id = s.account_id AND m.subscriber_id = s.id"
        " WHERE m.list_id = :list_id AND s.status = 'confirmed' ORDER BY s.email_lower, s.created_at, s.id",
        list_id=stage.list_id,
    )
    assert sends(stage, "email_lower, subscriber_id", campaign_id) == [tuple(row) for row in expected]
    assert stage.row(campaign_id).audience_built_at is not None
    assert stage.row(campaign_id).recipient_count == len(expected)
    with transaction(stage.engine) as session:
        assert check_counters(session) == []


@pytest.mark.parametrize("chunk_addresses", [1, 7, 100, 10_000])
def test_each_address_gets_one_send_whatever_the_chunk(stage: Stage, chunk_addresses: int) -> None:
    stages.fill(stage, 150, shared_every=5)
    campaign_id = stage.started()
    build(stage, campaign_id, chunk_addresses=chunk_addresses)
    assert_whole(stage, campaign_id)
    assert len(sends(stage)) == 120


def test_a_send_has_all_that_its_message_needs(stage: Stage) -> None:
    stages.fill(stage, 30)
    campaign_id = stage.started(sender="News <news@Bücher.example.com>")
    build(stage, campaign_id, chunk_addresses=7)
    row = stage.row(campaign_id)
    found = sends(
        stage,
        "dedupe_key = 'campaign:' || campaign_id || ':' || subscriber_id, status, lane, due_at, first_due_at,"
        " correlation_id, merge_values->>'first_name' LIKE 'Name %', merge_values ? 'secret'",
    )
    assert set(found) == {
        (True, "queued", "bulk", row.started_at, row.started_at, row.correlation_id, True, False)
    }  # fmt: skip
    ids = [message_id for (message_id,) in sends(stage, "message_id")]
    assert len(set(ids)) == 30
    # C20: a dot-atom, without the address or the key in it.
    form = re.compile(r"<[0-9a-f]{32}\.[0-9a-f]+@xn--bcher-kva\.example\.com>")
    assert all(form.fullmatch(message_id) for message_id in ids)


def test_the_earliest_confirmed_subscriber_of_a_shared_address_gets_it(stage: Stage) -> None:
    stage.sql(
        """
        WITH made AS (
            INSERT INTO subscribers (account_id, email, email_lower, external_id, status, created_at, attributes)
            SELECT :account_id, 'ann@example.com', 'ann@example.com', key, status, CAST(at AS timestamptz),
                   jsonb_build_object('first_name', key)
              FROM (VALUES ('late', 'confirmed', '2026-03-01'), ('first', 'unconfirmed', '2026-01-01'),
                           ('early', 'confirmed', '2026-02-01'), ('elsewhere', 'confirmed', '2026-01-15'))
                AS t (key, status, at)
            RETURNING account_id, id, external_id
        )
        INSERT INTO list_members (account_id, list_id, subscriber_id)
        SELECT account_id, :list_id, id FROM made WHERE external_id <> 'elsewhere'
        """,
        account_id=stage.account_id,
        list_id=stage.list_id,
    )
    build(stage, stage.started())
    assert sends(stage, "merge_values->>'first_name'") == [("early",)]


def test_who_has_opted_out_gets_a_row_that_says_so(stage: Stage) -> None:
    """C50: by list and for all mail; nothing is dropped without a row."""
    stages.fill(stage, 4)
    with transaction(stage.engine) as session:
        other = audience.make_list(session, stage.account_id, "Other")
        for place, (list_id, kind) in enumerate(
            [(stage.list_id, "unsubscribed"), (other, "unsubscribed"), (None, "bounced")], start=1
        ):
            audience.suppress(
                session, stage.account_id, email_lower=f"p{place}@example.com", kind=kind, reason="why", list_id=list_id
            )
    campaign_id = stage.started()
    build(stage, campaign_id)
    assert sends(stage, "email_lower, status, provider_reply, finished_at IS NOT NULL") == [
        ("p1@example.com", "suppressed", "suppressed: unsubscribed: why", True),
        ("p2@example.com", "queued", None, False),
        ("p3@example.com", "suppressed", "suppressed: bounced: why", True),
        ("p4@example.com", "queued", None, False),
    ]
    assert (stage.row(campaign_id).counts["suppressed"], stage.row(campaign_id).counts["queued"]) == (2, 2)


def test_who_joins_after_the_start_is_not_in_the_audience(stage: Stage) -> None:
    """C09: the audience is fixed when the campaign starts, wherever the build stands."""
    stages.fill(stage, 50)
    campaign_id = stage.started()
    ticks.build_chunk(stage.engine, account_id=stage.account_id, campaign_id=campaign_id, chunk_addresses=20)
    before = {email for (email,) in stage.sql("SELECT email_lower FROM subscribers")}
    stage.sql(
        """
        WITH made AS (
            INSERT INTO subscribers (account_id, email, email_lower)
            SELECT :account_id, a, a FROM (VALUES ('a0@example.com'), ('z0@example.com')) AS t (a)
            RETURNING account_id, id
        )
        INSERT INTO list_members (account_id, list_id, subscriber_id) SELECT account_id, :list_id, id FROM made
        """,
        account_id=stage.account_id,
        list_id=stage.list_id,
    )
    build(stage, campaign_id, chunk_addresses=20)
    assert {email for (email,) in sends(stage)} == before


def test_members_of_other_lists_and_accounts_are_not_mailed(stage: Stage, engine: Engine) -> None:
    stages.fill(stage, 40)
    with transaction(engine) as session:
        other_list = audience.make_list(session, stage.account_id, "Other")
    stage.sql("UPDATE list_members SET list_id = :other WHERE subscriber_id % 2 = 0", other=other_list)
    campaign_id = stage.started()
    build(stage, campaign_id, chunk_addresses=7)
    assert_whole(stage, campaign_id)
    assert len(sends(stage)) == 20


def test_two_builders_at_once_make_each_row_once(stage: Stage) -> None:
    """Several processes tick at the same moment; a chunk is one builder's."""
    stages.fill(stage, 2000, shared_every=10)
    campaign_id = stage.started()
    chunk_counts: list[int] = []
    errors: list[Exception] = []

    def run() -> None:
        made = 0
        try:
            while stage.row(campaign_id).audience_built_at is None:
                built = ticks.build_chunk(
                    stage.engine, account_id=stage.account_id, campaign_id=campaign_id, chunk_addresses=50
                )
                made += built is not None
        except Exception as error:  # noqa: BLE001 - the test tells it
            errors.append(error)
        chunk_counts.append(made)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert_whole(stage, campaign_id)
    # No more chunks in all than one builder alone makes: none was made twice.
    assert sum(chunk_counts) == build(stage, stage.started(), chunk_addresses=50)


def test_the_cursor_moves_on_only_from_where_the_chunk_began(stage: Stage) -> None:
    stages.fill(stage, 30)
    campaign_id = stage.started()
    ticks.build_chunk(stage.engine, account_id=stage.account_id, campaign_id=campaign_id, chunk_addresses=10)
    with transaction(stage.engine) as session:
        assert not audience_store.advance(session, stage.account_id, campaign_id, after="", upto="p1@example.com")
        assert not audience_store.advance(session, stage.account_id, campaign_id, after="", upto=None)


_BUILDER = """
import sys
from console.campaigns import ticks
from console.db import make_engine

engine = make_engine(sys.argv[1])
print("ready", flush=True)
while True:
    built = ticks.build_chunk(engine, account_id=int(sys.argv[2]), campaign_id=int(sys.argv[3]), chunk_addresses=200)
    if built is not None and built.is_complete:
        break
"""


@pytest.fixture
def builder(stage: Stage, database_url: str) -> Iterator:
    """Starts a builder in a process of its own; kills what is left of them."""
    started: list[subprocess.Popen] = []

    def start(campaign_id: int) -> subprocess.Popen:
        command = [sys.executable, "-c", _BUILDER, database_url, str(stage.account_id), str(campaign_id)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_builder_that_is_killed_in_the_middle_loses_and_doubles_nothing(stage: Stage, builder) -> None:
    stages.fill(stage, 20_000, shared_every=10)
    campaign_id = stage.started()
    kills = 0
    for wait_s in (0.0, 0.03, 0.1, 0.2, 0.35):
        process = builder(campaign_id)
        time.sleep(wait_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += stage.row(campaign_id).audience_built_at is None
    assert kills >= 3, "the build was over before it could be killed"
    # The killed builder's transaction may live on for a moment on the server, with the campaign's row locked.
    deadline = time.monotonic() + 30
    while stage.row(campaign_id).audience_built_at is None and time.monotonic() < deadline:
        build(stage, campaign_id, chunk_addresses=5000)
    assert_whole(stage, campaign_id)


def test_a_paused_campaign_is_built_on_and_a_cancelled_one_is_not(stage: Stage) -> None:
    stages.fill(stage, 30)
    paused, cancelled = stage.started(), stage.started()
    stage.do("pause", paused)
    stage.do("cancel", cancelled)
    while ticks.build_audiences(stage.engine, stage.settings):
        pass
    assert len(sends(stage, campaign_id=paused)) == 30
    assert sends(stage, campaign_id=cancelled) == []


def test_workers_are_woken_with_every_chunk(stage: Stage, database_url: str) -> None:
    stages.fill(stage, 30)
    campaign_id = stage.started()
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("LISTEN sendonce_work")
        chunks = build(stage, campaign_id, chunk_addresses=10)
        woken = list(listener.notifies(timeout=2, stop_after=chunks))
    assert len(woken) == chunks == 4


def _people(engine: Engine, slug: str, count: int) -> tuple[int, int]:
    """An account with a campaign that has started to so many people; gives the account and the campaign."""
    with transaction(engine) as session:
        account_id = make.account(session, slug)
        author_id = make.user(session, account_id, email="mia@example.com", roles=("marketer",))
        approver_id = make.user(session, account_id, email="abe@example.com", roles=("approver",))
        list_id = make.mailing_list(session, account_id)
        campaign_id = make.campaign(
            session, account_id, author_id=author_id, list_id=list_id, status="sending", approver_id=approver_id,
            fingerprint="f", approved_fingerprint="f", scheduled_for=text("now()"),
            started_at=text("now() + interval '1 hour'"), correlation_id="c",
        )  # fmt: skip
        values = {"account_id": account_id, "list_id": list_id, "count": count}
        session.execute(
            text(
                "WITH people AS (INSERT INTO subscribers (account_id, email, email_lower)"
                " SELECT :account_id, n || '@example.com', n || '@example.com' FROM generate_series(1, :count) n"
                " RETURNING id) INSERT INTO list_members (account_id, list_id, subscriber_id)"
                " SELECT :account_id, :list_id, id FROM people"
            ),
            values,
        )
        session.execute(
            text(
                "INSERT INTO suppressions (account_id, email_lower, kind, reason) SELECT :account_id,"
                " n || '@example.com', 'manual', 'asked' FROM generate_series(1, :count, 2) n"
            ),
            {"account_id": account_id, "count": count},
        )
    return account_id, campaign_id


@pytest.mark.parametrize("chunk_addresses", [1500, 5000], ids=["by stretches", "the whole list"])
def test_the_build_reads_each_person_a_few_times_whatever_the_statistics_say(
    engine: Engine, chunk_addresses: int
) -> None:
    """An account made since the last ANALYZE seems empty to the planner: 30,000 people once took two minutes."""
    _people(engine, "old", 3000)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
    account_id, campaign_id = _people(engine, "new", 3000)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        before = connection.execute(_ROWS_READ).scalar_one()
    while ticks.build_chunk(engine, account_id=account_id, campaign_id=campaign_id, chunk_addresses=chunk_addresses):
        pass
    engine.dispose()  # a session tells its figures when it ends
    time.sleep(0.5)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        read = connection.execute(_ROWS_READ).scalar_one() - before
    assert 3000 <= read <= 20 * 3000
