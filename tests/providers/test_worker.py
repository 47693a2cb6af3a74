"""Providers with an HTTP API under real workers: messages go out once, wait through trouble, and end as is known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from house import House, house
from peers import dialects
from peers.sink import Sink
from peers.vendor import SECRET, Fault, Said, Vendor
from providers import told
from sqlalchemy import Engine, text

from console.db import transaction
from console.providers import resend_reports, service
from console.providers.service import Draft
from console.sends import message_types, outcome
from console.sends.intake import Rendered, Request, accept
from console.sends.type_store import TypeRow

NOTE = TypeRow(
    name="note", lane="normal", template=None, sender="Shop <shop@example.com>", window_s=None, mode="enforce",
    on_conflict="refuse", key_pattern=None, in_doubt_policy="hold", attempt_cap=6, age_cap_s=3600,
)  # fmt: skip


@pytest.fixture
def own() -> Any:
    with Sink() as sink:
        yield sink


def at_vendor(
    engine: Engine, database_url: str, folder: Path, own: Sink, vendor: Vendor, *, secret: str = SECRET
) -> House:
    """An installation whose messages go by Resend, as `vendor` speaks it."""
    at = house(engine, database_url, folder, emails=["c@example.com"], smtp_url=own.url)
    draft = Draft(name="main", kind="resend", secret=secret, settings={"base_url": vendor.url, "timeout_s": "1"})
    with transaction(engine) as session:
        account_id = at.stage.account_id
        service.add(session, account_id, user_id=None, draft=draft, secret_key=at.settings().secret_key)
        service.set_route(session, account_id, user_id=None, name="default", providers=["main"])
        message_types.put_type(session, account_id, replace(NOTE, route=None))
    return at


def ask(at: House, count: int = 1) -> None:
    with transaction(at.engine) as session:
        for number in range(count):
            asked = Request(
                to=f"u{number}@example.com",
                message_type="note",
                rendered=Rendered(subject="Hello", html="<p>Hello</p>"),
                dedupe_key=f"note:{number}",
            )
            accept(session, at.stage.account_id, asked)


def is_through(at: House) -> bool:
    return not any(status in ("queued", "sending") for status in at.statuses().values())


def attempts(at: House) -> list[tuple]:
    with transaction(at.engine) as session:
        rows = session.execute(text("SELECT provider, outcome, phase, code FROM attempts ORDER BY send_id, attempt_no"))
        return [tuple(row) for row in rows]


def test_messages_go_out_once_each_with_their_keys_and_tags(
    engine: Engine, database_url: str, tmp_path: Path, own: Sink
) -> None:
    with Vendor(dialects.Resend()) as vendor:
        at = at_vendor(engine, database_url, tmp_path, own, vendor)
        ask(at, 20)
        with at.sending():
            at.wait_until(lambda: is_through(at))
        assert set(at.statuses().values()) == {"sent"}
        assert sorted(each.recipient for each in vendor.taken) == sorted(at.statuses())
        assert vendor.sends == 20
        assert len({each.key for each in vendor.taken}) == len({each.tag for each in vendor.taken}) == 20
        assert set(at.rows("provider_id").values()) == {each.id for each in vendor.taken}
        assert not own.datas


def test_a_wrong_key_burns_no_attempt_and_a_right_one_lets_all_go(
    engine: Engine, database_url: str, tmp_path: Path, own: Sink
) -> None:
    with Vendor(dialects.Resend()) as vendor:
        at = at_vendor(engine, database_url, tmp_path, own, vendor, secret="not-the-right-one")
        ask(at, 3)
        with at.sending():
            at.wait_until(lambda: vendor.questions > 0)
            at.wait_until(lambda: broken(at))
            assert set(at.rows("status", "attempt_no").values()) == {("queued", 0)}
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
    engine: Engine, database_url: str, tmp_path: Path, own: Sink
) -> None:
    with Vendor(dialects.Resend()) as vendor:
        at = at_vendor(engine, database_url, tmp_path, own, vendor)
        vendor.faults.append(Fault("skip", said=Said(403, {"message": "The domain is not verified"})))
        ask(at)
        with at.sending():
            at.wait_until(lambda: is_through(at), timeout_s=30)
        assert set(at.rows("status", "attempt_no").values()) == {("sent", 1)}
        assert attempts(at) == [(f"{at.stage.account_id}/main", "accepted", "response", 200)]
        assert (vendor.sends, len(vendor.taken)) == (2, 1)


def test_an_outage_holds_all_rows_and_they_go_when_it_is_over(
    engine: Engine, database_url: str, tmp_path: Path, own: Sink
) -> None:
    with Vendor(dialects.Resend()) as vendor:
        at = at_vendor(engine, database_url, tmp_path, own, vendor)
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
    engine: Engine, database_url: str, tmp_path: Path, own: Sink
) -> None:
    with Vendor(dialects.Resend()) as vendor:
        at = at_vendor(engine, database_url, tmp_path, own, vendor)
        vendor.faults.append(Fault("take", "drop"))
        ask(at)
        with at.sending():
            at.wait_until(lambda: set(at.statuses().values()) <= {"in_doubt", "sent"})
            [taken] = vendor.taken
            [report] = resend_reports.read(told.resend("sent", tag=taken.tag))
            with transaction(engine) as session:
                outcome.report(session, at.stage.account_id, report, provider="main", event_key="e1")
            at.wait_until(lambda: set(at.statuses().values()) == {"sent"})
        assert len(vendor.taken) == 1
