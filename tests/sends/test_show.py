"""One send with its attempts."""

from datetime import UTC, datetime

import visit
from doorway import Doorway
from sqlalchemy import Engine, update

from console import clock
from console.db import transaction
from console.dispatch.models import Doubt, LookUp
from console.sends.models import Attempt


def test_a_send_shows_its_state_its_attempts_with_replies_and_its_ids(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending", name="Spring sale")
    send_id = office.send(
        campaign_id=campaign_id,
        status="sent",
        provider_reply="250 2.0.0 Ok: queued as 4XyZ",
        message_id="<m1@mail.example.com>",
        correlation_id="corr-1",
        provider_id="4XyZ",
        attempt_no=2,
    )
    with transaction(engine) as session:
        for number, outcome, code, reply in (
            (1, "deferred", 451, "451 4.7.1 Greylisted\n451 come back later"),
            (2, "accepted", 250, "250 2.0.0 Ok: queued as 4XyZ"),
        ):
            session.add(
                Attempt(
                    account_id=office.account_id,
                    send_id=send_id,
                    attempt_no=number,
                    worker_id=7,
                    provider="smtp",
                    outcome=outcome,
                    phase="rcpt" if number == 1 else "end",
                    code=code,
                    reply=reply,
                    handed_over_at=clock.now() if number == 2 else None,
                )
            )
    shown = visit.words(office.browser("sue").get(f"/sends/{send_id}"))
    assert "Sent" in shown
    assert "451 4.7.1 Greylisted 451 come back later" in shown
    assert shown.index("Put off: to be tried again") < shown.index("Accepted")
    for proof in ("<m1@mail.example.com>", "corr-1", "4XyZ", f"campaign:{campaign_id}:", "Spring sale", "worker 7"):
        assert proof in shown, proof


def test_a_send_in_doubt_is_explained(engine: Engine) -> None:
    office = visit.office(engine)
    send_id = office.send(status="in_doubt", handed_over_at=clock.now())
    shown = visit.words(office.browser("sue").get(f"/sends/{send_id}"))
    assert "In doubt" in shown
    assert "It is not sent again by itself, because that could send it twice." in shown


def test_a_send_in_doubt_shows_what_its_provider_was_asked_and_what_comes_next(engine: Engine) -> None:
    office = visit.office(engine)
    send_id = office.send(status="in_doubt", attempt_no=1)
    keys = {"account_id": office.account_id, "send_id": send_id, "attempt_no": 1, "provider": "1/main"}
    with transaction(engine) as session:
        session.add(Doubt(**keys, first_at=clock.now(), due_at=datetime(2027, 1, 2, 10, tzinfo=UTC)))
        session.add(LookUp(**keys, asked="so-7-ab", answer="unknown", words="no answer in time"))
        session.add(LookUp(**keys, asked="so-7-ab", answer="found", words="HTTP 200: found", provider_id="pm-1"))
    shown = visit.words(office.browser("sue").get(f"/sends/{send_id}"))
    assert "Sendonce asks 1/main about it" in shown
    assert "2 Jan 2027, 10:00:00 UTC at the earliest" in shown
    assert "1/main, about attempt 1 for so-7-ab could not tell no answer in time" in shown
    assert "has it as pm-1 HTTP 200: found" in shown
    with transaction(engine) as session:
        session.execute(update(Doubt).values(due_at=None))
    assert "Sendonce does nothing more about it" in visit.words(office.browser("sue").get(f"/sends/{send_id}"))


def test_a_send_that_waits_says_when_it_is_due(engine: Engine) -> None:
    office = visit.office(engine)
    send_id = office.send(due_at="2027-01-02 10:00:03Z")
    assert "It is due 2 Jan 2027, 10:00:03 UTC" in visit.words(office.browser("sue").get(f"/sends/{send_id}"))


def test_a_reply_that_looks_like_html_is_shown_as_text(engine: Engine) -> None:
    office = visit.office(engine)
    send_id = office.send(status="failed", provider_reply="<img src=x onerror=alert(1)>")
    page = office.browser("sue").get(f"/sends/{send_id}").get_data(as_text=True)
    assert "<img" not in page
    assert "&lt;img src=x" in page


def test_a_send_that_is_not_there_says_how_to_find_it(engine: Engine) -> None:
    answer = visit.office(engine).browser("sue").get("/sends/999")
    assert answer.status_code == 404
    assert "Look for the recipient's address instead." in visit.words(answer)


def test_a_single_message_says_who_asked_for_it_and_how_it_is_treated(engine: Engine) -> None:
    office = visit.office(engine)
    door = Doorway(engine, office.account_id)
    door.template()
    door.type(window_s=3600)
    send = door.accept(
        code_path="shop.pay",
        event="order.paid",
        entities={"order_id": "1001"},
        request_id="req-7",
        correlation_id="c-1",
    )
    door.accept(code_path="shop.hook", trigger_source="webhook", correlation_id="c-2")
    answer = office.browser("sue").get(f"/sends/{send.id}")
    words = visit.words(answer)
    assert "Accepted api shop.pay order.paid order_id 1001 c-1 request req-7" in words
    assert "Repeat: no second message webhook shop.hook – c-2" in words
    assert "order_receipt, lane normal" in words
    assert "taken until" in words
