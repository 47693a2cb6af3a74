"""Claim, mark and outcome against a real database: who may move a row, and when."""

import make
import psycopg
import pytest
from dispatch.ask import Hand, counters_differ, rows, sending, sent, statuses
from sqlalchemy import Engine, text

from console.audience.store import suppress
from console.db import transaction
from console.dispatch import store
from console.dispatch.outcomes import given_back
from console.dispatch.recorder import Outcome
from console.sends.states import State

HOUR = "now() - interval '1 hour'"


def test_two_claims_take_disjoint_rows(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=10)
    first, second = Hand(database_url), Hand(database_url)
    mine, _ = first.claim(where, limit=6)
    theirs, _ = second.claim(where, limit=6)
    assert len(mine) == 6
    assert len(theirs) == 4
    assert not {c.id for c in mine} & {c.id for c in theirs}
    assert not counters_differ(database_url)


def test_a_claim_skips_rows_that_another_transaction_holds(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=4)
    with psycopg.connect(database_url) as other:
        held = other.execute("SELECT id FROM sends ORDER BY due_at, id LIMIT 2 FOR UPDATE").fetchall()
        claimed, _ = Hand(database_url).claim(where)
        assert len(claimed) == 2
        assert not {c.id for c in claimed} & {id_ for (id_,) in held}


def test_a_claim_takes_no_more_than_it_was_told_to(engine: Engine, database_url: str) -> None:
    """C15: whatever the planner believes about a table that was empty when it last looked."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("ANALYZE sends")
    where = sending(engine, recipients=50)
    claimed, _ = Hand(database_url).claim(where, limit=1)
    assert len(claimed) == 1
    assert list(statuses(database_url).values()).count("sending") == 1


def test_a_claim_goes_on_behind_the_last_one(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=5)
    hand = Hand(database_url)
    first, after = hand.claim(where, limit=2)
    assert after is not None
    hand.record(where, outcomes=[given_back(c, was_marked=False) for c in first])
    behind, after = hand.claim(where, limit=9, after=after)
    assert {c.id for c in behind}.isdisjoint({c.id for c in first})
    assert after is not None
    assert hand.claim(where, after=after) == ([], None)
    again, _ = hand.claim(where)
    assert {c.id for c in again} == {c.id for c in first}


@pytest.mark.parametrize("status", ["paused", "cancelled"])
def test_a_campaign_that_does_not_send_is_not_claimed_from(engine: Engine, database_url: str, status: str) -> None:
    where = sending(engine)
    _set_campaign(engine, status)
    assert Hand(database_url).claim(where) == ([], None)


def test_rows_that_are_not_due_wait(engine: Engine, database_url: str) -> None:
    where = sending(engine)
    _set_sends(engine, "due_at = now() + interval '1 hour'")
    assert Hand(database_url).claim(where) == ([], None)


def test_a_claim_buries_rows_that_are_too_old(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=1)
    _set_sends(engine, f"first_due_at = {HOUR}")
    claimed, last = Hand(database_url).claim(where, age_cap_s=60)
    assert claimed == []
    assert last is not None
    status, reply, error_class = rows(database_url, "status", "provider_reply", "error_class")["r0@example.com"]
    assert (status, error_class) == ("dead", "too-old")
    assert "too old" in reply
    assert not counters_differ(database_url)


@pytest.mark.parametrize("is_for_list", [True, False])
def test_an_opt_out_before_the_claim_stops_the_message(engine: Engine, database_url: str, is_for_list: bool) -> None:
    """C51: asked last, not only when the row was queued."""
    where = sending(engine)
    _opt_out(engine, where.account_id, "r1@example.com", where.list_id if is_for_list else None)
    claimed, _ = Hand(database_url).claim(where)
    assert [c.email for c in claimed] == ["r0@example.com", "r2@example.com"]
    status, reply = rows(database_url, "status", "provider_reply")["r1@example.com"]
    assert status == "suppressed"
    assert reply == "suppressed after queueing: unsubscribed: asked to"
    assert not counters_differ(database_url)


def test_an_opt_out_for_another_list_stops_nothing(engine: Engine, database_url: str) -> None:
    """C50: leaving is per list."""
    where = sending(engine)
    with transaction(engine) as session:
        other_id = make.mailing_list(session, where.account_id, name="Other")
    _opt_out(engine, where.account_id, "r1@example.com", other_id)
    assert len(Hand(database_url).claim(where)[0]) == 3


def test_an_opt_out_after_the_claim_and_before_the_mark_stops_the_message(engine: Engine, database_url: str) -> None:
    where = sending(engine)
    hand = Hand(database_url)
    claimed, _ = hand.claim(where)
    _opt_out(engine, where.account_id, "r1@example.com", where.list_id)
    marked, _ = hand.record(where, marks=claimed)
    assert marked == [c.id for c in claimed if c.email != "r1@example.com"]
    store.release(hand.connection, [(c, where.list_id) for c in claimed if c.id not in marked], slot=1)
    assert statuses(database_url)["r1@example.com"] == "suppressed"
    assert not counters_differ(database_url)


@pytest.mark.parametrize(("status", "goes_to"), [("paused", "queued"), ("cancelled", "cancelled")])
def test_a_campaign_stopped_after_the_claim_stops_unmarked_messages(
    engine: Engine, database_url: str, status: str, goes_to: str
) -> None:
    where = sending(engine, recipients=2)
    hand = Hand(database_url)
    claimed, _ = hand.claim(where)
    _set_campaign(engine, status)
    assert hand.record(where, marks=claimed) == ([], [])
    store.release(hand.connection, [(c, where.list_id) for c in claimed], slot=1)
    assert set(statuses(database_url).values()) == {goes_to}
    assert not counters_differ(database_url)


def test_a_mark_counts_the_attempt_and_an_outcome_writes_it_down(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=1)
    hand = Hand(database_url)
    claimed, _ = hand.claim(where)
    hand.record(where, marks=claimed)
    assert rows(database_url, "status", "attempt_no")["r0@example.com"] == ("sending", 1)
    assert hand.record(where, outcomes=[sent(claimed[0])]) == ([], [claimed[0].id])
    assert rows(database_url, "status", "attempt_no", "provider_reply")["r0@example.com"] == ("sent", 1, "250 ok")
    assert _attempts(database_url) == [(1, "accepted", True)]
    assert not counters_differ(database_url)


def test_a_row_is_marked_once(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=1)
    hand = Hand(database_url)
    claimed, _ = hand.claim(where)
    assert hand.record(where, marks=claimed)[0] == [claimed[0].id]
    assert hand.record(where, marks=claimed)[0] == []


def test_the_mark_of_a_worker_that_lost_its_row_comes_back_empty(engine: Engine, database_url: str) -> None:
    """The fence: frozen, declared dead, its row taken over; when it wakes it may send nothing."""
    where = sending(engine, recipients=1)
    frozen, other = Hand(database_url), Hand(database_url)
    claimed, _ = frozen.claim(where)
    frozen.die()
    store.declare_dead(other.connection, dead_after_s=0.001)
    store.recover(other.connection, provider="smtp", interruption_cap=5, spread_s=0)
    retaken, _ = other.claim(where)
    assert [c.id for c in retaken] == [c.id for c in claimed]
    assert frozen.record(where, marks=claimed) == ([], [])
    assert other.record(where, marks=retaken)[0] == [claimed[0].id]
    assert frozen.record(where, outcomes=[sent(claimed[0])]) == ([], [])


def test_the_mark_of_a_row_that_waits_again_comes_back_empty(engine: Engine, database_url: str) -> None:
    """Taken over by nobody yet: the row still names the frozen worker, and only its state says that it has moved on."""
    where = sending(engine, recipients=1)
    frozen, other = Hand(database_url), Hand(database_url)
    claimed, _ = frozen.claim(where)
    frozen.die()
    store.declare_dead(other.connection, dead_after_s=0.001)
    store.recover(other.connection, provider="smtp", interruption_cap=5, spread_s=0)
    assert frozen.record(where, marks=claimed) == ([], [])


def test_an_outcome_is_fenced_by_the_attempt(engine: Engine, database_url: str) -> None:
    """The same worker may hold the row a second time: the first attempt's late answer must not close the second."""
    where = sending(engine, recipients=1)
    hand = Hand(database_url)
    first, _ = hand.claim(where)
    hand.record(where, marks=first)
    words = {"outcome": "deferred", "phase": "end", "code": 451, "reply": "451 later", "wait_s": 0}
    later = Outcome(first[0], State.QUEUED, True, **words)
    hand.record(where, outcomes=[later])
    second, _ = hand.claim(where)
    hand.record(where, marks=second)
    assert hand.record(where, outcomes=[sent(first[0])]) == ([], [])
    assert statuses(database_url)["r0@example.com"] == "sending"
    assert hand.record(where, outcomes=[sent(second[0])])[1] == [second[0].id]
    assert _attempts(database_url) == [(1, "deferred", True), (2, "accepted", True)]


def test_a_retry_keeps_message_id_date_and_values(engine: Engine, database_url: str) -> None:
    """C20, promise 5: attempt 2 is made from the same things as attempt 1."""
    where = sending(engine, recipients=1)
    hand = Hand(database_url)
    first, _ = hand.claim(where)
    _set_sends(engine, "dated_at = dated_at - interval '1 hour'")
    hand.record(where, outcomes=[given_back(first[0], was_marked=False)])
    second, _ = hand.claim(where)
    assert second[0].message_id == first[0].message_id
    assert second[0].merge_values == first[0].merge_values
    assert (first[0].dated_at - second[0].dated_at).total_seconds() == 3600


def test_outcomes_and_marks_of_different_rows_share_one_commit(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=4)
    hand = Hand(database_url)
    claimed, _ = hand.claim(where)
    hand.record(where, marks=claimed[:2])
    marked, done = hand.record(where, marks=claimed[2:], outcomes=[sent(c) for c in claimed[:2]])
    assert sorted(marked) == [c.id for c in claimed[2:]]
    assert sorted(done) == [c.id for c in claimed[:2]]
    assert not counters_differ(database_url)


def test_words_of_any_kind_are_kept_as_they_came(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=1)
    hand = Hand(database_url)
    claimed, _ = hand.claim(where)
    words = "550 \"no\", {not} \\ here; 'quoted'\n550 NULL é ☃"
    hand.record(where, outcomes=[Outcome(claimed[0], State.FAILED, False, "refused", "rcpt", 550, "5.1.1", words)])
    assert rows(database_url, "status", "provider_reply")["r0@example.com"] == ("failed", words)


def test_the_claim_walks_the_queue_index_and_nothing_else_late_in_a_campaign(engine: Engine, database_url: str) -> None:
    """The index trap: ordered by anything but the partial index, a claim walks past every sent row."""
    where = sending(engine, recipients=1)
    with transaction(engine) as session:
        session.execute(text("ALTER TABLE sends DISABLE TRIGGER ALL"))
        session.execute(
            text(
                "INSERT INTO sends (account_id, campaign_id, subscriber_id, email, email_lower, lane, dedupe_key,"
                " status, message_id, correlation_id) SELECT :account_id, :campaign_id, 1000000 + n, n || '@e',"
                " n || '@e', 'bulk', n::text, 'sent', '<' || n || '@e>', 'c' FROM generate_series(1, 20000) n"
            ),
            {"account_id": where.account_id, "campaign_id": where.campaign_id},
        )
    hand = Hand(database_url)
    claimed, _ = hand.claim(where)
    assert len(claimed) == 1
    plans = hand.connection.execute(
        "EXPLAIN EXECUTE claim(1, 1, 'smtp', 1, '{0}', '-infinity', 0, 20, 1, 60, 1, 1, '{}')"
    ).fetchall()
    plan = "\n".join(line for (line,) in plans)
    picking = plan[: plan.index("CTE judged")]
    assert "sends_queued_idx" in picking
    assert "Sort" not in picking
    assert "Seq Scan on sends" not in plan


@pytest.mark.parametrize(("until_s", "is_marked"), [(60, True), (-1, False)])
def test_a_bound_row_is_marked_in_its_window_only(
    engine: Engine, database_url: str, until_s: int, is_marked: bool
) -> None:
    """Claimed in time, it may have waited for a free connection since; later the key is forgotten."""
    where = sending(engine, recipients=1)
    hand = Hand(database_url)
    bind = "UPDATE sends SET bound_to = 'smtp', bound_until = now() + make_interval(secs => %s)"
    hand.connection.execute(bind, (60,))
    claimed, _ = hand.claim(where)
    assert [each.is_bound for each in claimed] == [True]
    hand.connection.execute(bind, (until_s,))
    assert hand.record(where, marks=claimed) == ([claimed[0].id] if is_marked else [], [])


@pytest.mark.parametrize(("bound_to", "until_s"), [("other", 60), ("smtp", -1)])
def test_a_bound_row_is_claimed_by_its_provider_in_its_window_only(
    engine: Engine, database_url: str, bound_to: str, until_s: int
) -> None:
    where = sending(engine, recipients=2)
    hand = Hand(database_url)
    hand.connection.execute(
        "UPDATE sends SET bound_to = %s, bound_until = now() + make_interval(secs => %s) WHERE email LIKE 'r0@%%'",
        (bound_to, until_s),
    )
    assert [each.email for each in hand.claim(where)[0]] == ["r1@example.com"]


def test_neither_a_mark_nor_an_outcome_touches_an_index(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=3)
    hand = Hand(database_url)
    claimed, _ = hand.claim(where)
    before = _updates(hand)
    hand.record(where, marks=claimed)
    hand.record(where, outcomes=[sent(each) for each in claimed])
    updates, in_place = (after - first for after, first in zip(_updates(hand), before, strict=True))
    assert (updates, in_place) == (6, 6)


def test_a_claim_is_named_until_the_worker_says_that_it_is_through(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=3)
    hand = Hand(database_url)
    first, last = hand.claim(where, limit=2)
    assert last is not None
    assert _claims(hand) == [(where.campaign_id, sorted(each.id for each in first))]
    hand.record(where, marks=first)
    hand.record(where, outcomes=[sent(each) for each in first])
    second, _ = hand.claim(where, after=last, through_ids=[first[0].claim_id])
    assert _claims(hand) == [(where.campaign_id, [each.id for each in second])]


def test_nobody_ends_another_workers_claim(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=2)
    one, other = Hand(database_url), Hand(database_url)
    claimed, _ = one.claim(where, limit=1)
    other.claim(where, through_ids=[claimed[0].claim_id])
    assert len(_claims(one)) == 2


def _updates(hand: Hand) -> tuple[int, int]:
    """How many updates the table of sends has seen, and how many of them touched no index."""
    hand.connection.execute("SELECT pg_stat_force_next_flush()")
    row = hand.connection.execute(
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'sends'"
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def _claims(hand: Hand) -> list[tuple]:
    return hand.connection.execute("SELECT campaign_id, send_ids FROM claims ORDER BY id").fetchall()


def _attempts(database_url: str) -> list[tuple]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "SELECT attempt_no, outcome, handed_over_at IS NOT NULL FROM attempts ORDER BY attempt_no"
        ).fetchall()


def _set_campaign(engine: Engine, status: str) -> None:
    with transaction(engine) as session:
        session.execute(text("UPDATE campaigns SET status = :status"), {"status": status})


def _set_sends(engine: Engine, what: str) -> None:
    with transaction(engine) as session:
        session.execute(text(f"UPDATE sends SET {what}"))


def _opt_out(engine: Engine, account_id: int, email: str, list_id: int | None) -> None:
    with transaction(engine) as session:
        suppress(session, account_id, email_lower=email, kind="unsubscribed", reason="asked to", list_id=list_id)


@pytest.mark.parametrize(
    ("status", "code", "enhanced", "phase", "error_class"),
    [
        (State.DEAD, 451, "4.7.1", "rcpt", "451-4.7.1-rcpt"),
        (State.DEAD, 421, None, "mail", "421-mail"),
        (State.IN_DOUBT, None, None, "end", "no-answer-end"),
        (State.FAILED, 550, "5.1.1", "rcpt", ""),
        (State.QUEUED, 451, "4.7.1", "rcpt", ""),
    ],
)
def test_what_waits_for_a_person_carries_its_error_class(
    engine: Engine, database_url: str, status: State, code: int | None, enhanced: str | None, phase: str,
    error_class: str,
) -> None:  # fmt: skip
    where = sending(engine, recipients=1)
    hand = Hand(database_url)
    claimed, _ = hand.claim(where)
    outcome = Outcome(
        claimed[0], status, was_marked=False, outcome="deferred", phase=phase, code=code, enhanced=enhanced, wait_s=60
    )
    hand.record(where, outcomes=[outcome])
    assert rows(database_url, "status", "error_class")["r0@example.com"] == (status, error_class)


def test_a_claim_tells_how_many_attempts_no_longer_count(engine: Engine, database_url: str) -> None:
    where = sending(engine, recipients=1)
    _set_sends(engine, "attempt_no = 12, attempt_base = 12")
    [claimed], _ = Hand(database_url).claim(where)
    assert (claimed.attempt_no, claimed.attempt_base) == (12, 12)
