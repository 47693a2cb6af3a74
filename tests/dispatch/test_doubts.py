"""Messages that a provider did not answer about are settled as its abilities allow: the design's providers.md, 4.2."""

from datetime import timedelta
from pathlib import Path

import pytest
from at_vendor import ask, attempts, doubts, look_ups, pass_time, pass_time_until, route, vendor_house
from dispatch.ask import counters_differ
from house import House
from peers.vendor import Fault, Said
from sqlalchemy import Engine, text

from console.db import transaction
from console.dispatch import doubt_store
from console.dispatch.asker import connect
from console.dispatch.doubts import Ways, settle
from console.providers.names import names_of

LOST = Fault("take", "drop")
SKIPPED = Fault("skip", "drop")


def sql(at: House, statement: str) -> None:
    with transaction(at.engine) as session:
        session.execute(text(statement))


def sends(at: House, *columns: str) -> tuple:
    [row] = at.rows(*columns).values()
    return row


def is_held(at: House) -> bool:
    """Whether it is in doubt, and waits for a report or a person."""
    found = doubts(at)
    return bool(found) and found[0].is_held and set(at.statuses().values()) == {"in_doubt"}


def asked_for(at: House) -> str:
    send_id, message_id = sends(at, "id", "message_id")
    return names_of(at.stage.account_id, send_id, message_id).tag


@pytest.mark.parametrize("fault", [LOST, SKIPPED], ids=["taken", "not taken"])
@pytest.mark.parametrize("policy", ["hold", "resend"])
def test_the_same_key_goes_again_where_it_makes_no_second_message(
    engine: Engine, database_url: str, tmp_path: Path, fault: Fault, policy: str
) -> None:
    with vendor_house(engine, database_url, tmp_path, policy=policy) as (at, vendor):
        vendor.faults.append(fault)
        ask(at)
        with at.sending():
            at.wait_until(lambda: set(at.statuses().values()) == {"sent"})
            pass_time_until(at, 60, lambda: not doubts(at))
        [taken] = vendor.taken
        assert vendor.sends == 2
        assert sends(at, "provider_id", "attempt_no") == (taken.id, 2)
        assert [(outcome, code) for _, outcome, _, code in attempts(at)] == [("no_answer", None), ("accepted", 200)]
        assert not look_ups(at)


def test_a_provider_that_refuses_a_known_key_proves_that_it_has_the_message(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with vendor_house(engine, database_url, tmp_path, kind="brevo") as (at, vendor):
        vendor.faults.append(LOST)
        ask(at)
        with at.sending():
            at.wait_until(lambda: set(at.statuses().values()) == {"sent"})
        assert (len(vendor.taken), vendor.sends) == (1, 2)


def test_outside_its_keys_window_nothing_goes_again_and_the_provider_is_asked_instead(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """Brevo remembers a key for 15 minutes; a quarter of an hour later a second request is a second message."""
    with vendor_house(engine, database_url, tmp_path, kind="brevo") as (at, vendor):
        vendor.faults.append(LOST)
        ask(at)
        with at.sending(RETRY_BASE_SECONDS="600"):
            at.wait_until(lambda: len(doubts(at)) == 1)
            pass_time_until(at, 13 * 60, lambda: set(at.statuses().values()) == {"sent"})
        assert vendor.sends == 1
        assert [(answer, provider_id) for *_, answer, _, provider_id in look_ups(at)] == [("found", "id-1")]


@pytest.mark.parametrize("kind", ["postmark", "mailjet"])
def test_a_look_up_that_finds_the_message_settles_it_with_the_providers_id(
    engine: Engine, database_url: str, tmp_path: Path, kind: str
) -> None:
    with vendor_house(engine, database_url, tmp_path, kind=kind) as (at, vendor):
        vendor.faults.append(LOST)
        ask(at)
        with at.sending():
            at.wait_until(lambda: len(doubts(at)) == 1)
            # Not before the provider's records have settled.
            assert not look_ups(at)
            pass_time_until(at, 150, lambda: set(at.statuses().values()) == {"sent"})
            at.wait_until(lambda: not doubts(at))
        [taken] = vendor.taken
        assert vendor.sends == 1
        assert taken.id.endswith(sends(at, "provider_id"))
        [(provider, asked, answer, words, provider_id)] = look_ups(at)
        assert (provider, asked, answer) == (f"{at.stage.account_id}/main", asked_for(at), "found")
        assert "found" in words
        assert taken.id.endswith(provider_id)
        assert not counters_differ(database_url)


def test_a_message_that_is_not_found_is_asked_for_ever_more_rarely_and_then_held(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with vendor_house(engine, database_url, tmp_path, kind="postmark") as (at, vendor):
        vendor.faults.append(SKIPPED)
        ask(at)
        with at.sending():
            at.wait_until(lambda: len(doubts(at)) == 1)
        waits, ways = [], Ways(at.settings())
        with connect(database_url) as connection:
            pass_time(at, 2)
            while True:
                while settle(connection, at.settings(), ways):
                    pass
                if is_held(at):
                    break
                waits.append(round((doubts(at)[0].due_at - doubts(at)[0].first_at).total_seconds()))
                pass_time(at, waits[-1])
        assert waits[:4] == [60, 120, 240, 480]
        assert {answer for *_, answer, _, _ in look_ups(at)} == {"absent"}
        assert (vendor.sends, vendor.taken) == (1, [])
        assert sends(at, "attempt_no") == 1


def test_whoever_may_get_two_gets_it_again_after_one_look_up_in_vain(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with vendor_house(engine, database_url, tmp_path, kind="postmark", policy="resend") as (at, vendor):
        vendor.faults.append(SKIPPED)
        ask(at)
        with at.sending():
            at.wait_until(lambda: len(doubts(at)) == 1)
            assert vendor.sends == 1
            pass_time_until(at, 90, lambda: set(at.statuses().values()) == {"sent"})
        assert (vendor.sends, len(vendor.taken)) == (2, 1)
        assert [answer for *_, answer, _, _ in look_ups(at)] == ["absent"]


def test_nothing_is_done_about_what_a_provider_without_any_of_this_did_not_answer(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with vendor_house(engine, database_url, tmp_path, kind="ses") as (at, vendor):
        vendor.faults.append(LOST)
        ask(at)
        with at.sending():
            at.wait_until(lambda: set(at.statuses().values()) == {"in_doubt"})
            with connect(database_url) as connection:
                assert settle(connection, at.settings(), Ways(at.settings())) == 0
        assert (vendor.sends, doubts(at), look_ups(at)) == (1, [], [])


def test_a_provider_that_can_not_be_asked_says_why_and_is_asked_again(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with vendor_house(engine, database_url, tmp_path, kind="postmark") as (at, vendor):
        vendor.faults.append(LOST)
        ask(at)
        with at.sending():
            at.wait_until(lambda: len(doubts(at)) == 1)
            vendor.answers_all = Said(503, {"Message": "maintenance"})
            pass_time_until(at, 61, lambda: len(look_ups(at)) > 0)
            vendor.answers_all = None
            pass_time_until(at, 120, lambda: set(at.statuses().values()) == {"sent"})
        first, *_, last = look_ups(at)
        assert first[2] == "unknown"
        assert "503" in first[3]
        assert last[2] == "found"
        assert vendor.sends == 1


def test_an_opt_out_stops_the_same_key_too(engine: Engine, database_url: str, tmp_path: Path) -> None:
    with vendor_house(engine, database_url, tmp_path) as (at, vendor):
        vendor.faults.append(SKIPPED)
        ask(at)
        with at.sending(RETRY_BASE_SECONDS="60"):
            at.wait_until(lambda: len(doubts(at)) == 1)
            sql(
                at,
                "INSERT INTO suppressions (account_id, email_lower, kind, reason)"
                f" VALUES ({at.stage.account_id}, 'u0@example.com', 'complained', 'x')",
            )
            pass_time_until(at, 120, lambda: is_held(at))
        assert vendor.sends == 1


def test_a_bound_message_goes_to_no_other_provider_of_the_route(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """By its attempts it would be the second one's turn; only the first makes no second message of it."""
    with vendor_house(engine, database_url, tmp_path) as (at, vendor):
        route(at, "main", "smtp")
        vendor.faults.append(LOST)
        ask(at)
        with at.sending():
            at.wait_until(lambda: set(at.statuses().values()) == {"sent"})
        assert (vendor.sends, len(vendor.taken)) == (2, 1)


def test_what_waits_too_long_for_its_second_hand_over_is_in_doubt_again(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    """Nobody claims it after its window; the row says what is known."""
    with vendor_house(engine, database_url, tmp_path) as (at, vendor):
        vendor.faults.append(LOST)
        ask(at)
        with at.sending(RETRY_BASE_SECONDS="60"):
            at.wait_until(lambda: len(doubts(at)) == 1)
        with connect(database_url) as connection:
            ways = Ways(at.settings())
            pass_time(at, 120)
            assert settle(connection, at.settings(), ways) == 1
            assert sends(at, "status", "bound_to") == ("queued", "main")
            pass_time(at, 24 * 3600)
            with at.sending():
                at.wait_until(lambda: is_held(at))
        assert vendor.sends == 1
        assert not counters_differ(database_url)


@pytest.mark.parametrize(
    ("answer", "status"),
    [(Said(422, {"message": "to is wrong"}), "in_doubt"), (Said(429, {"message": "slow down"}), "queued")],
    ids=["refused", "deferred"],
)
def test_no_word_on_the_second_hand_over_ends_the_doubt_about_the_first(
    engine: Engine, database_url: str, tmp_path: Path, answer: Said, status: str
) -> None:
    """A refusal comes before the key is looked at; the first may have been taken all the same."""
    with vendor_house(engine, database_url, tmp_path) as (at, vendor):
        vendor.faults += [SKIPPED, Fault("skip", said=answer)]
        ask(at)
        with at.sending():
            at.wait_until(lambda: vendor.sends == 2)
            if status == "queued":
                at.wait_until(lambda: set(at.statuses().values()) == {"sent"})
                assert len(vendor.taken) == 1
            else:
                at.wait_until(lambda: is_held(at))
        assert vendor.sends == (2 if status == "in_doubt" else 3)


def test_the_last_attempt_without_an_answer_is_held(engine: Engine, database_url: str, tmp_path: Path) -> None:
    with vendor_house(engine, database_url, tmp_path, attempt_cap=2) as (at, vendor):
        vendor.faults += [SKIPPED, SKIPPED, SKIPPED]
        ask(at)
        with at.sending():
            at.wait_until(lambda: vendor.sends == 2 and is_held(at), timeout_s=40)
        assert sends(at, "attempt_no") == 2


def test_two_processes_never_take_the_same_step(engine: Engine, database_url: str, tmp_path: Path) -> None:
    with vendor_house(engine, database_url, tmp_path, kind="postmark") as (at, vendor):
        vendor.faults += [LOST] * 3
        ask(at, 3)
        with at.sending():
            at.wait_until(lambda: len(doubts(at)) == 3)
        pass_time(at, 90)
        with connect(database_url) as one, connect(database_url) as two:
            taken = [doubt_store.take(each, limit=2, lease_s=60) for each in (one, two)]
            assert [len(each) for each in taken] == [2, 1]
            assert len({doubt.send_id for each in taken for doubt in each}) == 3
            # Whoever took them and died leaves them to the next after the lease.
            assert doubt_store.take(one, limit=2, lease_s=60) == []
            pass_time(at, 61)
            assert len(doubt_store.take(two, limit=5, lease_s=60)) == 3


def test_a_message_that_a_report_settled_meanwhile_is_left_alone(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with vendor_house(engine, database_url, tmp_path, kind="postmark") as (at, vendor):
        vendor.faults.append(LOST)
        ask(at)
        with at.sending():
            at.wait_until(lambda: len(doubts(at)) == 1)
        pass_time(at, 90)
        with connect(database_url) as connection:
            [doubt] = doubt_store.take(connection, limit=5, lease_s=60)
            sql(at, "UPDATE sends SET status = 'sent', provider_reply = 'reported'")
            assert not doubt_store.record_look_up(connection, doubt, asked="t", answer="found", words="found")
            assert not doubt_store.queue_again(
                connection, doubt, route_name="main", until=doubt.now, follow_after=timedelta()
            )
            assert sends(at, "status", "provider_reply") == ("sent", "reported")
            settle(connection, at.settings(), Ways(at.settings()))
        assert doubts(at) == []
