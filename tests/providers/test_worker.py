"""Providers with an HTTP API under real workers: messages go out once, wait through trouble, and end as is known."""

from pathlib import Path

from at_vendor import ask, attempts, is_through, vendor_house
from house import House
from peers.vendor import SECRET, Fault, Said
from providers import told
from sqlalchemy import Engine, text

from console.db import transaction
from console.providers import resend_reports, service
from console.sends import outcome


def test_messages_go_out_once_each_with_their_keys_and_tags(engine: Engine, database_url: str, tmp_path: Path) -> None:
    with vendor_house(engine, database_url, tmp_path) as (at, vendor):
        ask(at, 20)
        with at.sending():
            at.wait_until(lambda: is_through(at))
        assert set(at.statuses().values()) == {"sent"}
        assert sorted(each.recipient for each in vendor.taken) == sorted(at.statuses())
        assert vendor.sends == 20
        assert len({each.key for each in vendor.taken}) == len({each.tag for each in vendor.taken}) == 20
        assert set(at.rows("provider_id").values()) == {each.id for each in vendor.taken}


def test_a_wrong_key_burns_no_attempt_and_a_right_one_lets_all_go(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with vendor_house(engine, database_url, tmp_path, secret="not-the-right-one") as (at, vendor):
        ask(at, 3)
        with at.sending():
            at.wait_until(lambda: vendor.questions > 0)
            at.wait_until(lambda: broken(at))
            at.wait_until(lambda: set(at.rows("status", "attempt_no").values()) == {("queued", 0)})
            with transaction(engine) as session:
                [row] = service.store.configured(session, at.stage.account_id)
                service.edit(
                    session, at.stage.account_id, row.id, user_id=None, version=row.version, settings={},
                    secret=SECRET, secret_key=at.settings().secret_key,
                )  # fmt: skip
            at.wait_until(lambda: is_through(at), timeout_s=30)
        assert set(at.rows("status", "attempt_no").values()) == {("sent", 1)}
        assert vendor.sends == 3


def broken(at: House) -> bool:
    with transaction(at.engine) as session:
        found = session.execute(text("SELECT name FROM provider_states WHERE breaker = 'open'")).scalars().all()
    return found == [f"{at.stage.account_id}/main"]


def test_the_account_s_trouble_after_the_hand_over_puts_the_message_back_without_an_attempt(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with vendor_house(engine, database_url, tmp_path) as (at, vendor):
        vendor.faults.append(Fault("skip", said=Said(403, {"message": "The domain is not verified"})))
        ask(at)
        with at.sending():
            at.wait_until(lambda: is_through(at), timeout_s=30)
        assert set(at.rows("status", "attempt_no").values()) == {("sent", 1)}
        assert attempts(at) == [(f"{at.stage.account_id}/main", "accepted", "response", 200)]
        assert (vendor.sends, len(vendor.taken)) == (2, 1)


def test_an_outage_holds_all_rows_and_they_go_when_it_is_over(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with vendor_house(engine, database_url, tmp_path) as (at, vendor):
        vendor.answers_all = Said(500, {"message": "down"})
        ask(at, 5)
        with at.sending():
            at.wait_until(lambda: broken(at))
            at.wait_until(lambda: set(at.rows("status", "attempt_no").values()) == {("queued", 0)})
            vendor.answers_all = None
            at.wait_until(lambda: is_through(at), timeout_s=30)
        assert set(at.rows("status", "attempt_no").values()) == {("sent", 1)}
        assert vendor.sends == 5


def test_a_lost_answer_never_makes_a_second_message_and_a_report_settles_it(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with vendor_house(engine, database_url, tmp_path) as (at, vendor):
        vendor.faults.append(Fault("take", "drop"))
        ask(at)
        with at.sending(RETRY_BASE_SECONDS="600"):
            at.wait_until(lambda: set(at.statuses().values()) == {"in_doubt"})
            [taken] = vendor.taken
            [report] = resend_reports.read(told.resend("sent", tag=taken.tag))
            with transaction(engine) as session:
                outcome.report(session, at.stage.account_id, report, provider="main", event_key="e1")
            at.wait_until(lambda: set(at.statuses().values()) == {"sent"})
        assert len(vendor.taken) == vendor.sends == 1
