"""What a person does with dead letters and messages in doubt: exactly the set that was shown, once, on record."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import visit
from settling import check_counts, dead, decisions, doubtful, freeze, run, settled, sql, states
from sqlalchemy import Engine, text

from console.campaigns import service as campaigns
from console.campaigns import store as campaign_store
from console.db import transaction
from console.errors import Conflict, Forbidden, InvalidInput, NotFound
from console.sends import settle
from console.sends.settle_store import SOURCES
from console.sends.states import STEPS, Change, State
from console.sends.unsettled_store import Chosen

IN_DOUBT = (Change.SETTLE_SENT, Change.SETTLE_RESEND, Change.SETTLE_FAILED)
MAKE = {State.DEAD: dead, State.IN_DOUBT: doubtful}


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


def _at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Makes all calls at the same moment; gives what each gave or raised."""
    gate = threading.Barrier(len(calls))

    def make(call: Callable[[], Any]) -> Any:
        gate.wait()
        try:
            return call()
        except Conflict as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(make, calls))


@pytest.mark.parametrize("change", list(SOURCES))
def test_a_set_moves_its_sends_where_the_table_says_with_their_counters(office: visit.Office, change: Change) -> None:
    campaign_id = office.campaign("sending")
    wanted = [MAKE[SOURCES[change]](office, campaign_id, email=f"r{n}@example.com") for n in range(3)]
    wanted.append(MAKE[SOURCES[change]](office, None))
    assert settled(office, change, wanted[0]).moved_count == 1
    # A second set adds to the same counters.
    ran = settled(office, change, *wanted[1:])
    assert (ran.moved_count, ran.skipped) == (3, [])
    assert states(office) == dict.fromkeys(wanted, STEPS[change].target)
    check_counts(office)


@pytest.mark.parametrize("change", list(SOURCES))
def test_who_when_and_why_stand_with_each_send_and_in_the_audit_log(office: visit.Office, change: Change) -> None:
    send_id = MAKE[SOURCES[change]](office, office.campaign("sending"))
    ran = settled(office, change, send_id, reason="  Greylisting is over. ")
    assert decisions(office, send_id) == [(change, "Oda", "Greylisting is over.")]
    [(user_id, action, object_id, details)] = sql(
        office, "SELECT user_id, action, object_id, details FROM audit_entries ORDER BY id DESC LIMIT 1"
    )
    assert (user_id, object_id) == (office.users["oda"], str(ran.set_id))
    assert action.startswith("dead_letters." if change is Change.REVIVE else "in_doubt.")
    assert details == {"reason": "Greylisting is over.", "moved": 1, "skipped": 0}


@pytest.mark.parametrize("change", [Change.REVIVE, Change.SETTLE_RESEND])
def test_a_send_put_back_starts_anew_but_stays_the_same_message(office: visit.Office, change: Change) -> None:
    send_id = MAKE[SOURCES[change]](
        office, office.campaign("sending"), attempt_no=12, interrupted_count=5, dated_at="2027-01-02 10:00Z",
        first_due_at="2026-01-01 10:00Z", due_at="2027-01-02 10:00Z", bound_to="main",
        bound_until="2027-01-02 10:00Z",
    )  # fmt: skip
    kept = "message_id, dated_at, dedupe_key, merge_values, attempt_no, correlation_id"
    before = sql(office, f"SELECT {kept} FROM sends")
    settled(office, change, send_id)
    assert sql(office, f"SELECT {kept} FROM sends") == before
    [row] = sql(
        office,
        "SELECT attempt_base, interrupted_count, error_class, finished_at, due_at = first_due_at,"
        " due_at > now() - interval '1 minute', bound_to, bound_until FROM sends",
    )
    assert row == (12, 0, "", None, True, True, None, None)


def test_what_became_dead_later_is_not_touched(office: visit.Office) -> None:
    campaign_id = office.campaign("sending")
    shown = dead(office, campaign_id)
    set_id = freeze(office, Change.REVIVE, chosen=Chosen(State.DEAD))
    later = dead(office, campaign_id, email="late@example.com")
    assert run(office, set_id).moved_count == 1
    assert states(office) == {shown: "queued", later: "dead"}


def test_what_changed_meanwhile_is_skipped_and_said_so(office: visit.Office) -> None:
    campaign_id = office.campaign("sending")
    kept, sent, retried, queued = (dead(office, campaign_id, email=f"r{n}@example.com") for n in range(4))
    set_id = freeze(office, Change.REVIVE, kept, sent, retried, queued)
    settled(office, Change.REVIVE, queued)
    sql(office, "UPDATE sends SET status = 'sent' WHERE id = :id", id=sent)
    # Put back, tried and dead again: not what the person saw.
    sql(office, "UPDATE sends SET claimed_at = now() WHERE id = :id", id=retried)
    ran = run(office, set_id)
    assert ran.moved_count == 1
    assert {each.id: each.reason for each in ran.skipped} == {
        sent: "it is sent now",
        retried: "it was tried again since it was shown",
        queued: "it is waiting now",
    }
    assert states(office) == {kept: "queued", sent: "sent", retried: "dead", queued: "queued"}


@pytest.mark.parametrize("change", list(SOURCES))
def test_what_changes_while_the_set_waits_for_it_is_skipped_too(office: visit.Office, change: Change) -> None:
    send_id = MAKE[SOURCES[change]](office)
    set_id = freeze(office, change, send_id)
    with ThreadPoolExecutor(1) as pool:
        with transaction(office.engine) as session:
            session.execute(text("UPDATE sends SET claimed_at = now()"))
            running = pool.submit(run, office, set_id)
            with pytest.raises(TimeoutError):
                running.result(timeout=0.5)
        ran = running.result(timeout=10)
    assert (ran.moved_count, [each.id for each in ran.skipped]) == (0, [send_id])
    assert states(office) == {send_id: SOURCES[change]}


@pytest.mark.parametrize("change", list(SOURCES))
def test_two_people_running_the_same_set_at_once_move_it_once(office: visit.Office, change: Change) -> None:
    campaign_id = office.campaign("sending")
    rows = [MAKE[SOURCES[change]](office, campaign_id, email=f"r{n}@example.com") for n in range(20)]
    set_id = freeze(office, change, *rows)
    results = _at_once(lambda: run(office, set_id), lambda: run(office, set_id, by="ada"))
    lost = [each for each in results if isinstance(each, Conflict)]
    assert len(lost) == 1
    assert f"Set {set_id} was run already, by " in str(lost[0])
    assert "20 of 20 messages moved" in str(lost[0])
    assert [len(decisions(office, row)) for row in rows] == [1] * 20
    assert sql(office, "SELECT count(*) FROM audit_entries WHERE action ~ 'dead_letters|in_doubt'") == [(1,)]
    check_counts(office)


def test_two_sets_with_the_same_sends_at_once_move_each_send_once(office: visit.Office) -> None:
    campaigns_of = [office.campaign("sending"), office.campaign("sent")]
    rows = [dead(office, campaigns_of[n % 2], email=f"r{n}@example.com") for n in range(20)]
    one, other = freeze(office, Change.REVIVE, *rows), freeze(office, Change.REVIVE, *reversed(rows))
    results = _at_once(lambda: run(office, one), lambda: run(office, other, by="ada"))
    assert sorted(each.moved_count for each in results) == [0, 20]
    assert [len(decisions(office, row)) for row in rows] == [1] * 20
    check_counts(office)


def test_a_sent_campaign_is_being_sent_again_until_its_row_is_through(office: visit.Office) -> None:
    campaign_id = office.campaign("sent", finished_at="2027-01-02 10:00Z")
    send_id = dead(office, campaign_id)
    settled(office, Change.REVIVE, send_id)
    row = office.row(campaign_id)
    assert (row.status, row.finished_at) == ("sending", None)
    with transaction(office.engine) as session:
        assert campaign_store.finish_done(session) == []
    sql(office, "UPDATE sends SET status = 'sent'")
    sql(office, "UPDATE campaign_counts SET sent = sent + 1 WHERE slot = 0")
    sql(office, "UPDATE campaign_counts SET queued = queued - 1 WHERE slot = 15")
    with transaction(office.engine) as session:
        assert campaign_store.finish_done(session) == [(office.account_id, campaign_id)]


@pytest.mark.parametrize("change", [Change.SETTLE_SENT, Change.SETTLE_FAILED])
def test_a_sent_campaign_stays_sent_when_nothing_is_sent_again(office: visit.Office, change: Change) -> None:
    campaign_id = office.campaign("sent")
    settled(office, change, doubtful(office, campaign_id))
    assert office.row(campaign_id).status == "sent"


@pytest.mark.parametrize("change", [Change.REVIVE, Change.SETTLE_RESEND])
def test_nothing_of_a_cancelled_campaign_is_sent_again_and_the_reason_is_given(
    office: visit.Office, change: Change
) -> None:
    cancelled, sending = office.campaign("sending"), office.campaign("sending")
    stopped, other = MAKE[SOURCES[change]](office, cancelled), MAKE[SOURCES[change]](office, sending)
    set_id = freeze(office, change, stopped, other)
    with transaction(office.engine) as session:
        campaigns.cancel(session, office.account_id, cancelled, user_id=office.users["oda"])
    ran = run(office, set_id)
    assert ran.moved_count == 1
    assert [(each.id, each.reason) for each in ran.skipped] == [(stopped, "its campaign is cancelled")]
    assert states(office) == {stopped: SOURCES[change], other: "queued"}
    assert office.row(cancelled).status == "cancelled"
    check_counts(office)


@pytest.mark.parametrize("change", [Change.SETTLE_SENT, Change.SETTLE_FAILED])
def test_what_a_cancelled_campaign_left_in_doubt_can_be_settled(office: visit.Office, change: Change) -> None:
    send_id = doubtful(office, office.campaign("sending"))
    sql(office, "UPDATE campaigns SET status = 'cancelled'")
    assert settled(office, change, send_id).moved_count == 1


def test_a_campaign_cannot_be_finished_over_a_row_that_is_just_being_put_back(office: visit.Office) -> None:
    """The tick that finishes campaigns waits for nobody and overlooks nothing: it passes the campaign over."""
    campaign_id = office.campaign("sending")
    set_id = freeze(office, Change.REVIVE, dead(office, campaign_id))
    with transaction(office.engine) as session:
        settle.run(session, office.account_id, set_id, user_id=office.users["oda"], reason="x")
        with transaction(office.engine) as tick:
            tick.execute(text("SET LOCAL lock_timeout = '2s'"))
            assert campaign_store.finish_done(tick) == []
    assert office.row(campaign_id).status == "sending"


def test_a_row_put_back_while_its_campaign_is_being_finished_opens_it_again(office: visit.Office) -> None:
    campaign_id = office.campaign("sending")
    set_id = freeze(office, Change.REVIVE, dead(office, campaign_id))
    with ThreadPoolExecutor(1) as pool:
        with transaction(office.engine) as tick:
            assert campaign_store.finish_done(tick) == [(office.account_id, campaign_id)]
            running = pool.submit(run, office, set_id)
            with pytest.raises(TimeoutError):
                running.result(timeout=0.5)
        assert running.result(timeout=10).moved_count == 1
    assert office.row(campaign_id).status == "sending"


def test_a_refused_message_is_no_dead_letter(office: visit.Office) -> None:
    failed = office.send(campaign_id=office.campaign("sending"), status="failed")
    ran = settled(office, Change.REVIVE, failed)
    assert (ran.moved_count, [each.reason for each in ran.skipped]) == (0, ["it is failed now"])
    assert states(office) == {failed: "failed"}


def test_a_whole_class_or_campaign_is_frozen_and_nothing_else(office: visit.Office) -> None:
    one, two = office.campaign("sending"), office.campaign("sending")
    grey = dead(office, one)
    old = dead(office, one, error_class="too-old", email="old@example.com")
    other = dead(office, two, error_class="too-old", email="old@example.com")
    doubtful(office, one, error_class="too-old", email="x@example.com")
    for chosen, wanted in (
        (Chosen(State.DEAD), {grey, old, other}),
        (Chosen(State.DEAD, error_class="too-old"), {old, other}),
        (Chosen(State.DEAD, campaign_id=one), {grey, old}),
        (Chosen(State.DEAD, error_class="too-old", campaign_id=two), {other}),
    ):
        set_id = freeze(office, Change.REVIVE, chosen=chosen)
        rows = sql(office, "SELECT send_id FROM frozen_rows WHERE set_id = :id", id=set_id)
        assert {row[0] for row in rows} == wanted, chosen


def test_a_set_holds_so_many_and_says_that_there_are_more(
    office: visit.Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settle, "SET_ROWS", 2)
    for number in range(3):
        dead(office, None, email=f"r{number}@example.com")
    set_id = freeze(office, Change.REVIVE, chosen=Chosen(State.DEAD))
    assert sql(office, "SELECT row_count, has_more FROM frozen_sets WHERE id = :id", id=set_id) == [(2, True)]
    assert run(office, set_id).moved_count == 2
    set_id = freeze(office, Change.REVIVE, chosen=Chosen(State.DEAD))
    assert sql(office, "SELECT row_count, has_more FROM frozen_sets WHERE id = :id", id=set_id) == [(1, False)]


def test_an_empty_list_makes_no_set(office: visit.Office) -> None:
    with transaction(office.engine) as session:
        made = settle.freeze(
            session, office.account_id, user_id=office.users["oda"], change=Change.REVIVE, chosen=Chosen(State.DEAD)
        )
    assert made is None
    assert sql(office, "SELECT FROM frozen_sets") == []


def test_numbers_that_the_account_has_not_freeze_nothing(office: visit.Office) -> None:
    other = visit.office(office.engine, slug="other", app=office.app)
    mine, theirs = dead(office), dead(other)
    for wrong in (theirs, 999_999):
        with pytest.raises(NotFound, match=f"There is no send {wrong} in this account, so nothing was chosen"):
            freeze(office, Change.REVIVE, mine, wrong)
    with pytest.raises(InvalidInput, match="Choose at least one"):
        freeze(office, Change.REVIVE)
    assert sql(office, "SELECT FROM frozen_sets") == []


def test_a_set_of_another_account_is_not_there(office: visit.Office) -> None:
    other = visit.office(office.engine, slug="other", app=office.app)
    set_id = freeze(other, Change.REVIVE, dead(other))
    with pytest.raises(NotFound):
        run(office, set_id)
    assert run(other, set_id).moved_count == 1


@pytest.mark.parametrize("name", sorted(visit.PEOPLE))
def test_only_operators_and_admins_settle(office: visit.Office, name: str) -> None:
    send_id = dead(office)
    set_id = freeze(office, Change.REVIVE, send_id)
    if name in ("oda", "ada"):
        run(office, freeze(office, Change.REVIVE, send_id, by=name), by=name)
        return
    with pytest.raises(Forbidden, match="may not settle messages"):
        run(office, set_id, by=name)
    with pytest.raises(Forbidden, match="may not settle messages"):
        freeze(office, Change.REVIVE, send_id, by=name)
    assert states(office) == {send_id: "dead"}


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_a_reason_is_needed_and_the_set_can_still_be_run(office: visit.Office, reason: str) -> None:
    set_id = freeze(office, Change.REVIVE, dead(office))
    with pytest.raises(InvalidInput) as refused:
        run(office, set_id, reason=reason)
    assert refused.value.field == "reason"
    assert run(office, set_id).moved_count == 1


def test_a_set_that_nobody_ran_within_a_day_is_forgotten_and_one_that_was_run_is_kept(office: visit.Office) -> None:
    first, second = dead(office), dead(office, email="b@example.com")
    stale, ran = freeze(office, Change.REVIVE, first), freeze(office, Change.REVIVE, second)
    run(office, ran)
    sql(office, "UPDATE frozen_sets SET shown_at = now() - interval '25 hours'")
    fresh = freeze(office, Change.REVIVE, first)
    assert {row[0] for row in sql(office, "SELECT id FROM frozen_sets")} == {ran, fresh}
    with pytest.raises(NotFound, match="forgotten"):
        run(office, stale)


def test_workers_are_told_that_there_is_work(office: visit.Office, database_url: str) -> None:
    set_id = freeze(office, Change.REVIVE, dead(office, office.campaign("sending")))
    with office.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        listener = connection.connection.driver_connection
        assert listener is not None
        listener.execute("LISTEN sendonce_work")
        run(office, set_id)
        assert len(list(listener.notifies(timeout=2, stop_after=1))) == 1
