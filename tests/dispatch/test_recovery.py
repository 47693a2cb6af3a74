"""What becomes of the rows of a worker that died: the table in the design's ledger.md, line by line."""

import psycopg
import pytest
from dispatch.ask import Hand, Sending, counters_differ, rows, sending, sent, statuses
from sqlalchemy import Engine, text

from console.db import transaction
from console.dispatch import store, work_store
from console.dispatch.outcomes import given_back, outcome_of
from console.dispatch.recorder import Claimed, Outcome
from console.providers.base import Refused, Reply
from console.sends.states import State


def _recover(hand: Hand, *, interruption_cap: int = 5) -> tuple[int, int, int]:
    store.declare_dead(hand.connection, dead_after_s=0.001)
    return store.recover(hand.connection, provider="smtp", interruption_cap=interruption_cap, spread_s=0)


def _frozen_after_the_mark(where: Sending, database_url: str) -> tuple[Hand, Hand, list[Claimed]]:
    """A worker that stood still between mark and answer until recovery had its rows; another one; those rows."""
    frozen, other = Hand(database_url), Hand(database_url)
    claimed, _ = frozen.claim(where)
    frozen.record(where, marks=claimed)
    frozen.die()
    _recover(other)
    return frozen, other, claimed


def test_unmarked_rows_go_back_and_cost_no_attempt(engine: Engine, database_url: str) -> None:
    where = sending(engine)
    dead, alive = Hand(database_url), Hand(database_url)
    dead.claim(where)
    dead.die()
    assert _recover(alive) == (3, 0, 0)
    assert set(rows(database_url, "status", "attempt_no").values()) == {("queued", 0)}
    assert not counters_differ(database_url)
    assert len(alive.claim(where)[0]) == 3


def test_marked_rows_are_in_doubt_by_default(engine: Engine, database_url: str) -> None:
    where = sending(engine)
    dead, alive = Hand(database_url), Hand(database_url)
    claimed, _ = dead.claim(where)
    dead.record(where, marks=claimed[:1])
    dead.die()
    assert _recover(alive) == (3, 1, 0)
    assert statuses(database_url) == {
        "r0@example.com": "in_doubt",
        "r1@example.com": "queued",
        "r2@example.com": "queued",
    }
    with psycopg.connect(database_url) as connection:
        attempts = connection.execute("SELECT send_id, outcome, phase FROM attempts").fetchall()
    assert attempts == [(claimed[0].id, "no_answer", "recovery")]
    assert not counters_differ(database_url)


def test_marked_rows_of_a_resend_type_go_back_with_their_attempt_counted(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=1)
    with transaction(engine) as session:
        session.execute(text("UPDATE message_types SET in_doubt_policy = 'resend'"))
    dead, alive = Hand(database_url), Hand(database_url)
    claimed, _ = dead.claim(where)
    dead.record(where, marks=claimed)
    dead.die()
    _recover(alive)
    assert rows(database_url, "status", "attempt_no")["r0@example.com"] == ("queued", 1)
    again, _ = alive.claim(where)
    assert again[0].message_id == claimed[0].message_id
    assert not counters_differ(database_url)


def test_a_worker_with_a_heartbeat_keeps_its_rows(engine: Engine, database_url: str) -> None:
    where = sending(engine)
    slow, other = Hand(database_url), Hand(database_url)
    slow.claim(where)
    assert store.heartbeat(slow.connection, slow.worker_id)
    assert store.declare_dead(other.connection, dead_after_s=60) == []
    assert store.recover(other.connection, provider="smtp", interruption_cap=5, spread_s=0) == (0, 0, 0)


def test_a_worker_is_declared_dead_by_one_reaper_only(engine: Engine, database_url: str) -> None:
    dead, one, two = Hand(database_url), Hand(database_url), Hand(database_url)
    dead.die()
    declared = [store.declare_dead(hand.connection, dead_after_s=1) for hand in (one, two)]
    assert sorted(declared) == [[], [dead.worker_id]]
    assert not store.heartbeat(dead.connection, dead.worker_id)


def test_nobody_is_declared_dead_just_after_the_server_came_back(engine: Engine, database_url: str) -> None:
    """Nobody could reach it meanwhile; everybody gets the same time again."""
    hand = Hand(database_url)
    hand.die()
    row = hand.connection.execute("SELECT extract(epoch FROM now() - pg_postmaster_start_time())::float8").fetchone()
    assert row is not None
    dead_after_s = row[0] + 5
    hand.connection.execute(
        "UPDATE workers SET heartbeat_at = now() - make_interval(secs => %s) WHERE id = %s",
        (dead_after_s + 60, hand.worker_id),
    )
    assert store.declare_dead(hand.connection, dead_after_s=dead_after_s) == []


def test_a_message_that_ends_its_workers_becomes_a_dead_letter(engine: Engine, database_url: str) -> None:
    """C74: tries count even when the worker can't write an end."""
    where = sending(engine, recipients=1)
    for _ in range(5):
        dead = Hand(database_url)
        assert len(dead.claim(where)[0]) == 1
        dead.die()
        _recover(Hand(database_url))
    status, attempts, reply = rows(database_url, "status", "attempt_no", "provider_reply")["r0@example.com"]
    assert (status, attempts) == ("dead", 0)
    assert "5 times" in reply
    assert not counters_differ(database_url)


def test_a_late_accept_turns_in_doubt_into_sent(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=1)
    frozen, _other, claimed = _frozen_after_the_mark(where, database_url)
    assert frozen.record(where, outcomes=[sent(claimed[0])]) == ([], [])
    store.settle_late(frozen.connection, sent(claimed[0]), slot=1)
    assert rows(database_url, "status", "attempt_no")["r0@example.com"] == ("sent", 1)
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT outcome, reply FROM attempts").fetchall() == [("accepted", "250 ok")]
    assert not counters_differ(database_url)


def test_a_late_refusal_is_proof_too(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=1)
    frozen, other, claimed = _frozen_after_the_mark(where, database_url)
    job = work_store.jobs(other.connection)[0]
    refused = outcome_of(
        Refused(Reply("end", 554, None, "554 no")), claimed[0], job, was_marked=True, retry_base_s=1, dice=0
    )
    store.settle_late(frozen.connection, refused, slot=1)
    assert statuses(database_url)["r0@example.com"] == "failed"
    assert not counters_differ(database_url)


@pytest.mark.parametrize("was_marked", [True, False])
def test_a_worker_that_never_sent_the_dot_gives_its_row_back(
    engine: Engine, database_url: str, was_marked: bool
) -> None:
    """The database went away while the mark was written: whether it went through or not, no dot followed."""
    where = sending(engine, recipients=1)
    hand = Hand(database_url)
    claimed, _ = hand.claim(where)
    if was_marked:
        hand.record(where, marks=claimed)
    outcome = given_back(claimed[0], was_marked=True)
    if hand.record(where, outcomes=[outcome]) == ([], []):
        store.settle_late(hand.connection, outcome, slot=1)
    assert rows(database_url, "status", "attempt_no")["r0@example.com"] == ("queued", 0)
    assert not counters_differ(database_url)


def test_a_row_given_back_after_recovery_doubted_it_waits_again(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=1)
    frozen, _other, claimed = _frozen_after_the_mark(where, database_url)
    store.settle_late(frozen.connection, given_back(claimed[0], was_marked=True), slot=1)
    assert rows(database_url, "status", "attempt_no")["r0@example.com"] == ("queued", 0)
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM attempts").fetchone() == (0,)
    assert not counters_differ(database_url)


def test_a_row_given_back_after_its_campaign_ended_makes_it_send_again(engine: Engine, database_url: str) -> None:
    """The campaign was sent with this row in doubt; queued in a campaign that does not send it would wait for ever."""
    where = sending(engine, recipients=1)
    frozen, other, claimed = _frozen_after_the_mark(where, database_url)
    with transaction(engine) as session:
        session.execute(text("UPDATE campaigns SET status = 'sent', finished_at = now()"))
    store.settle_late(frozen.connection, given_back(claimed[0], was_marked=True), slot=1)
    assert len(other.claim(where)[0]) == 1


def test_a_late_word_on_an_earlier_attempt_changes_nothing(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=1)
    with transaction(engine) as session:
        session.execute(text("UPDATE message_types SET in_doubt_policy = 'resend'"))
    frozen, other, claimed = _frozen_after_the_mark(where, database_url)
    again, _ = other.claim(where)
    other.record(where, marks=again)
    store.settle_late(frozen.connection, sent(claimed[0]), slot=1)
    assert statuses(database_url)["r0@example.com"] == "sending"


def test_a_late_word_of_the_same_worker_on_an_earlier_attempt_changes_nothing(
    engine: Engine, database_url: str
) -> None:
    """Only the attempt number tells the two apart."""
    where = sending(engine, recipients=1)
    hand, other = Hand(database_url), Hand(database_url)
    first, _ = hand.claim(where)
    hand.record(where, marks=first)
    deferred = Outcome(first[0], State.QUEUED, True, outcome="deferred", phase="end", code=451, wait_s=0)
    hand.record(where, outcomes=[deferred])
    second, _ = hand.claim(where)
    hand.record(where, marks=second)
    hand.die()
    _recover(other)
    store.settle_late(hand.connection, sent(first[0]), slot=1)
    assert statuses(database_url)["r0@example.com"] == "in_doubt"
    store.settle_late(hand.connection, sent(second[0]), slot=1)
    assert statuses(database_url)["r0@example.com"] == "sent"


def test_rows_claimed_without_the_worker_hearing_of_it_go_back(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=4)
    hand = Hand(database_url)
    claimed, _ = hand.claim(where)
    hand.record(where, marks=claimed[:1])
    assert store.release_unheld(hand.connection, hand.worker_id, held_ids=[claimed[1].id], slot=1) == 2
    assert list(statuses(database_url).values()) == ["sending", "sending", "queued", "queued"]
    assert not counters_differ(database_url)


def test_recovery_touches_every_account(engine: Engine, database_url: str) -> None:
    one, two = sending(engine, slug="one"), sending(engine, slug="two", prefix="s")
    dead = Hand(database_url)
    dead.claim(one)
    dead.claim(two)
    dead.die()
    assert _recover(Hand(database_url)) == (6, 0, 0)
    assert not counters_differ(database_url)


def test_a_marked_row_at_its_last_attempt_is_a_dead_letter_where_the_type_resends(
    engine: Engine, database_url: str
) -> None:
    where = sending(engine, recipients=1)
    with transaction(engine) as session:
        session.execute(text("UPDATE message_types SET in_doubt_policy = 'resend', attempt_cap = 1"))
    dead = Hand(database_url)
    claimed, _ = dead.claim(where)
    dead.record(where, marks=claimed)
    dead.die()
    assert _recover(Hand(database_url)) == (1, 0, 1)
    assert statuses(database_url)["r0@example.com"] == "dead"


@pytest.mark.parametrize(
    ("policy", "is_marked", "attempt_base", "left"),
    [
        ("hold", True, 0, ("in_doubt", "no-answer-recovery")),
        ("resend", True, 0, ("dead", "no-answer-recovery")),
        # The attempts from before a person put it back don't count.
        ("resend", True, 3, ("queued", "")),
        ("hold", False, 0, ("dead", "worker-died")),
    ],
)
def test_what_recovery_leaves_for_a_person_carries_its_error_class(
    engine: Engine, database_url: str, policy: str, is_marked: bool, attempt_base: int, left: tuple[str, str]
) -> None:
    where = sending(engine, recipients=1)
    with transaction(engine) as session:
        session.execute(text("UPDATE message_types SET in_doubt_policy = :policy, attempt_cap = 4"), {"policy": policy})
        session.execute(text("UPDATE sends SET attempt_no = 3, attempt_base = :base"), {"base": attempt_base})
    dead, alive = Hand(database_url), Hand(database_url)
    claimed, _ = dead.claim(where)
    if is_marked:
        dead.record(where, marks=claimed)
    dead.die()
    _recover(alive, interruption_cap=1)
    assert rows(database_url, "status", "error_class")["r0@example.com"] == left
    assert not counters_differ(database_url)


def test_a_late_word_that_buries_a_row_gives_its_error_class_and_one_that_settles_it_takes_it_away(
    engine: Engine, database_url: str
) -> None:
    where = sending(engine, recipients=2)
    frozen, _other, claimed = _frozen_after_the_mark(where, database_url)
    late = Outcome(
        claimed[0], State.DEAD, was_marked=True, outcome="deferred", phase="end", code=451, enhanced="4.3.0", reply="x"
    )
    store.settle_late(frozen.connection, late, slot=1)
    store.settle_late(frozen.connection, sent(claimed[1]), slot=1)
    assert list(rows(database_url, "status", "error_class").values()) == [("dead", "451-4.3.0-end"), ("sent", "")]
