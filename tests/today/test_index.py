"""The first page."""

import visit
from sqlalchemy import Engine, event, text

from console.db import transaction


def test_the_first_page_shows_what_is_sent_what_waits_and_what_needs_a_look(engine: Engine) -> None:
    office = visit.office(engine)
    sending = office.campaign("sending", name="Goes out")
    for status, count in {"sent": 4, "queued": 5, "in_doubt": 2, "dead": 1}.items():
        for number in range(count):
            office.send(campaign_id=sending, status=status, email=f"{status}{number}@example.com")
    office.campaign("submitted", name="Wants a look")
    shown = visit.words(office.browser("abe").get("/"))
    assert "Goes out ▶ Sending 58 % 4 of 12 recipients sent" in shown
    assert "Waiting to be sent 5" in shown
    assert "In doubt 2" in shown
    assert "Dead letters 1" in shown
    assert "Wants a look by Mia" in shown
    assert "2 messages in doubt · 1 dead letter" in shown


def test_an_approver_is_led_to_what_waits_but_not_to_the_own_campaign(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("submitted", author="ada")
    link = f'href="/campaigns/{campaign_id}/approve"'
    assert link in office.browser("abe").get("/").get_data(as_text=True)
    own = office.browser("ada").get("/")
    assert link not in own.get_data(as_text=True)
    assert "Yours: another person must approve it." in visit.words(own)
    assert link not in office.browser("mia").get("/").get_data(as_text=True)


def test_a_queue_without_a_worker_is_called_out(engine: Engine) -> None:
    office = visit.office(engine)
    office.send(campaign_id=office.campaign("sending"))
    one = office.browser("oda")
    assert "No worker is running, so nothing is sent." in visit.words(one.get("/"))
    with transaction(engine) as session:
        session.execute(text("INSERT INTO workers (host, pid, heartbeat_at) VALUES ('h', 1, now() - interval '1 h')"))
    assert "No worker is running" in visit.words(one.get("/"))
    with transaction(engine) as session:
        session.execute(text("INSERT INTO workers (host, pid) VALUES ('h', 2)"))
    shown = visit.words(one.get("/"))
    assert "No worker is running" not in shown
    assert "1 worker alive" in shown


def test_an_empty_account_is_not_an_empty_page(engine: Engine) -> None:
    shown = visit.words(visit.office(engine).browser("mia").get("/"))
    assert "Nothing is being sent." in shown
    assert "Nothing waits for approval." in shown
    assert "New campaign" in shown


def test_figures_are_of_the_own_account_only(engine: Engine) -> None:
    office = visit.office(engine)
    other = visit.office(engine, slug="other", app=office.app)
    other.send(campaign_id=other.campaign("sending", name="Secret plan"))
    shown = visit.words(office.browser("ada").get("/"))
    assert "Waiting to be sent 0" in shown
    assert "Secret plan" not in shown


def test_the_first_page_takes_few_queries_and_none_that_reads_the_ledger(engine: Engine) -> None:
    one = visit.office(engine).browser("ada")
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    one.get("/")
    assert len(statements) <= 9, statements
    assert not [statement for statement in statements if " sends" in statement]
