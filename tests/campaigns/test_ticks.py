"""Starting on time, finishing when all is done, cancelling to the last row; each by any number of processes."""

import threading
from datetime import UTC, datetime, timedelta

import make
import psycopg
import pytest
import stage as stages
from sqlalchemy import Engine
from stage import Stage

from console.campaigns import ticks
from console.campaigns.counts_store import Difference, check_counters
from console.db import transaction
from console.sends.store import cancel_campaign_rows


@pytest.fixture
def stage(engine: Engine) -> Stage:
    return stages.stage(engine)


def move(stage: Stage, campaign_id: int, to: str, *, limit: int = 1000) -> None:
    """Moves queued rows on, with their counters, as a worker would."""
    moved = stage.sql(
        "UPDATE sends SET status = :to, claimed_by = 1 WHERE id IN"
        " (SELECT id FROM sends WHERE campaign_id = :id AND status = 'queued' LIMIT :limit) RETURNING id",
        to=to, id=campaign_id, limit=limit,
    )  # fmt: skip
    stage.sql(
        f"UPDATE campaign_counts SET queued = queued - :n, {to} = {to} + :n WHERE campaign_id = :id AND slot = 15",
        n=len(moved), id=campaign_id,
    )  # fmt: skip


def shift(stage: Stage, campaign_id: int, **by: float) -> None:
    """Moves the campaign's due time back, as if that much time had gone by."""
    stage.sql(
        "UPDATE campaigns SET scheduled_for = scheduled_for - CAST(:by AS interval) WHERE id = :id",
        by=timedelta(**by), id=campaign_id,
    )  # fmt: skip


def test_a_campaign_starts_when_its_time_has_come_and_never_before(stage: Stage) -> None:
    """C68."""
    campaign_id = stage.approved(scheduled_for=datetime.now(UTC) + timedelta(seconds=90))
    assert ticks.start_due(stage.engine, stage.settings) == 0
    shift(stage, campaign_id, seconds=88)
    assert ticks.start_due(stage.engine, stage.settings) == 0
    assert stage.row(campaign_id).status == "approved"
    shift(stage, campaign_id, seconds=3)
    assert ticks.start_due(stage.engine, stage.settings) == 1
    assert stage.row(campaign_id).status == "sending"
    assert ticks.start_due(stage.engine, stage.settings) == 0


def test_a_start_is_one_trigger_that_its_rows_can_be_followed_from(stage: Stage) -> None:
    campaign_id = stage.built()
    row = stage.row(campaign_id)
    triggers = stage.sql("SELECT source, code_path, correlation_id, campaign_id, decision FROM triggers")
    assert triggers == [("cron", "campaigns.ticks.start_due", row.correlation_id, campaign_id, "accepted")]
    assert stage.sql("SELECT DISTINCT correlation_id FROM sends") == [(row.correlation_id,)]


def test_one_that_was_due_while_everything_was_down_starts_late(stage: Stage) -> None:
    """C65 A, B: late is better than never; the page can tell due from started."""
    campaign_id = stage.approved(scheduled_for=datetime.now(UTC) + timedelta(minutes=1))
    shift(stage, campaign_id, minutes=8)
    assert ticks.start_due(stage.engine, stage.settings) == 1
    row = stage.row(campaign_id)
    assert row.status == "sending"
    assert row.started_at is not None
    assert row.scheduled_for is not None
    assert row.started_at - row.scheduled_for > timedelta(minutes=6)


def test_one_that_is_later_than_the_limit_is_held_for_a_person(stage: Stage) -> None:
    """C65 C: held with a notice, not sent, not lost; resuming it starts it."""
    campaign_id = stage.approved(scheduled_for=datetime.now(UTC) + timedelta(minutes=1))
    shift(stage, campaign_id, days=3)
    assert ticks.start_due(stage.engine, stage.settings) == 1
    row = stage.row(campaign_id)
    assert (row.status, row.started_at) == ("paused", None)
    assert "more than 24 h ago" in (row.note or "")
    assert ticks.build_audiences(stage.engine, stage.settings) == 0
    assert stage.sql("SELECT count(*) FROM sends") == [(0,)]
    stage.do("resume", campaign_id)
    row = stage.row(campaign_id)
    assert (row.status, row.note) == ("sending", None)
    assert stage.sql("SELECT source, correlation_id FROM triggers") == [("manual_admin", row.correlation_id)]
    while ticks.build_audiences(stage.engine, stage.settings):
        pass
    assert stage.row(campaign_id).counts["queued"] == 2


def test_resuming_what_had_started_starts_nothing_anew(stage: Stage) -> None:
    campaign_id = stage.built()
    before = stage.row(campaign_id)
    stage.do("pause", campaign_id, reason="wait")
    assert stage.row(campaign_id).note == "wait"
    stage.do("resume", campaign_id)
    after = stage.row(campaign_id)
    assert (after.started_at, after.correlation_id) == (before.started_at, before.correlation_id)
    assert stage.sql("SELECT count(*) FROM triggers") == [(1,)]


def test_of_many_schedulers_at_one_moment_one_starts_a_campaign(stage: Stage) -> None:
    campaign_ids = [stage.approved() for _ in range(3)]
    gate = threading.Barrier(6)
    counts: list[int] = []

    def run() -> None:
        gate.wait()
        counts.append(ticks.start_due(stage.engine, stage.settings))

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 3
    assert stage.sql("SELECT campaign_id FROM triggers ORDER BY 1") == [(one,) for one in campaign_ids]


def test_starts_and_resumes_wake_the_workers(stage: Stage, database_url: str) -> None:
    campaign_id = stage.approved()
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("LISTEN sendonce_work")
        ticks.start_due(stage.engine, stage.settings)
        assert len(list(listener.notifies(timeout=2, stop_after=1))) == 1
        stage.do("pause", campaign_id)
        stage.do("resume", campaign_id)
        assert len(list(listener.notifies(timeout=2, stop_after=1))) == 1


@pytest.mark.parametrize("waiting", ["queued", "sending"])
def test_a_campaign_is_sent_only_when_no_row_waits(stage: Stage, waiting: str) -> None:
    """C02, C07: waiting is not being done."""
    campaign_id = stage.built()
    move(stage, campaign_id, "sent", limit=1)
    if waiting == "sending":
        move(stage, campaign_id, "sending")
    assert ticks.finish_done(stage.engine, stage.settings) == 0
    stage.sql("UPDATE sends SET status = 'queued' WHERE status = 'sending'")
    stage.sql("UPDATE campaign_counts SET queued = queued + sending, sending = 0")
    move(stage, campaign_id, "in_doubt")
    assert ticks.finish_done(stage.engine, stage.settings) == 1
    row = stage.row(campaign_id)
    assert row.status == "sent"
    assert row.finished_at is not None
    # It says apart what was not accepted.
    assert {state: count for state, count in row.counts.items() if count} == {"sent": 1, "in_doubt": 1}


def test_a_campaign_is_not_sent_before_its_audience_is_complete(stage: Stage) -> None:
    campaign_id = stage.started()
    assert ticks.finish_done(stage.engine, stage.settings) == 0
    assert stage.row(campaign_id).status == "sending"


def test_an_audience_of_opted_out_people_alone_is_done_at_once(stage: Stage) -> None:
    stage.sql(
        "INSERT INTO suppressions (account_id, email_lower, kind, reason)"
        " SELECT account_id, email_lower, 'manual', 'asked' FROM subscribers"
    )
    campaign_id = stage.built()
    assert ticks.finish_done(stage.engine, stage.settings) == 1
    assert stage.row(campaign_id).counts["suppressed"] == 2


@pytest.mark.parametrize("status", ["queued", "sending"])
def test_wrong_counters_cannot_finish_a_campaign_early(stage: Stage, status: str) -> None:
    campaign_id = stage.built()
    stage.sql("UPDATE sends SET status = :status, claimed_by = 1", status=status)
    stage.sql(
        "INSERT INTO claims (account_id, worker_id, campaign_id, send_ids)"
        " SELECT account_id, 1, campaign_id, array_agg(id) FROM sends WHERE status = 'sending' GROUP BY 1, 3"
    )
    stage.sql("UPDATE campaign_counts SET queued = 0, sending = 0")
    assert ticks.finish_done(stage.engine, stage.settings) == 0
    assert stage.row(campaign_id).status == "sending"


def test_cancelling_reaches_every_queued_row_in_chunks_and_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C07: cancel works at once; books balance."""
    monkeypatch.setattr(ticks, "CANCEL_ROWS", 7)
    monkeypatch.setattr("console.campaigns.service.CANCEL_AT_ONCE", 5)
    stages.fill(stage, 48)
    campaign_id, other_id = stage.built(), stage.built()
    move(stage, campaign_id, "sent", limit=10)
    move(stage, campaign_id, "sending", limit=3)
    stage.do("cancel", campaign_id, reason="wrong text")
    row = stage.row(campaign_id)
    assert (row.status, row.note, row.counts["cancelled"]) == ("cancelled", "wrong text", 5)
    chunks = 0
    while ticks.cancel_rest(stage.engine, stage.settings):
        chunks += 1
    assert chunks == 5
    counts = {state: count for state, count in stage.row(campaign_id).counts.items() if count}
    assert counts == {"sent": 10, "sending": 3, "cancelled": 37}
    assert stage.row(other_id).counts["queued"] == 50
    # What a dead worker gives back afterwards is cancelled too.
    stage.sql("UPDATE sends SET status = 'queued' WHERE status = 'sending'")
    stage.sql(
        "UPDATE campaign_counts SET queued = queued + sending, sending = 0 WHERE campaign_id = :id", id=campaign_id
    )
    assert ticks.cancel_rest(stage.engine, stage.settings) == 3
    with transaction(stage.engine) as session:
        assert check_counters(session) == []


def test_rows_of_a_campaign_that_is_not_cancelled_cannot_be_cancelled_with_it(stage: Stage) -> None:
    campaign_id = stage.built()
    with transaction(stage.engine) as session:
        assert cancel_campaign_rows(session, stage.account_id, campaign_id=campaign_id, limit=100) == 0


def test_the_check_finds_and_repairs_counters_that_differ_from_the_rows(stage: Stage) -> None:
    campaign_id = stage.built()
    with transaction(stage.engine) as session:
        other_account = make.account(session, "other")
        assert check_counters(session) == []
    stage.sql("UPDATE campaign_counts SET queued = queued + 5, sent = 1")
    found = [
        Difference(stage.account_id, campaign_id, "queued", counted=7, rows=2),
        Difference(stage.account_id, campaign_id, "sent", counted=1, rows=0),
    ]
    with transaction(stage.engine) as session:
        assert check_counters(session, other_account) == []
        assert check_counters(session, stage.account_id) == found
        assert check_counters(session, repair=True) == found
    with transaction(stage.engine) as session:
        assert check_counters(session) == []
    stage.sql("DELETE FROM campaign_counts")
    with transaction(stage.engine) as session:
        assert check_counters(session, repair=True) == [
            Difference(stage.account_id, campaign_id, "queued", counted=0, rows=2)
        ]
    assert stage.row(campaign_id).counts["queued"] == 2
