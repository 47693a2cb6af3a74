"""The list of messages in doubt, each with its evidence."""

import pytest
import visit
from settling import dead, doubtful, sql
from sqlalchemy import Engine

from console.db import transaction
from console.sends.models import Attempt


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


def test_each_says_when_by_whom_and_what_was_last_heard(office: visit.Office) -> None:
    campaign_id = office.campaign("sending", name="Spring sale")
    [(worker_id,)] = sql(office, "INSERT INTO workers (host, pid, status) VALUES ('mail-2', 9, 'dead') RETURNING id")
    send_id = doubtful(
        office, campaign_id, claimed_by=worker_id, message_id="<m1@mail.example.com>",
        handed_over_at="2027-01-02 10:00:03Z",
    )  # fmt: skip
    with transaction(office.engine) as session:
        session.add(
            Attempt(
                account_id=office.account_id,
                send_id=send_id,
                attempt_no=1,
                worker_id=worker_id,
                provider="smtp",
                outcome="no_answer",
                phase="end",
                ended_at="2027-01-02 10:00:09Z",
            )
        )
    dead(office, campaign_id, email="dead@example.com")
    shown = visit.words(office.browser("oda").get("/sends/in-doubt"))
    assert f"Handed over 2 Jan 2027, 10:00:03 UTC by worker {worker_id} on mail-2, dead since." in shown
    for evidence in (
        "rita@example.com",
        "Spring sale",
        "No answer after the whole message",
        "1 attempt, by smtp, since 2 Jan 2027, 10:00:09 UTC",
        "no answer after the hand-over: connection lost",
        "<m1@mail.example.com>",
    ):
        assert evidence in shown, evidence
    assert "dead@example.com" not in shown


def test_there_is_a_button_for_each_way_to_settle(office: visit.Office) -> None:
    doubtful(office)
    page = office.browser("oda").get("/sends/in-doubt").get_data(as_text=True)
    for change in ("settle_sent", "settle_resend", "settle_failed"):
        assert page.count(f'name="change" value="{change}"') == 2, change


def test_a_cancelled_or_paused_campaign_is_named_so(office: visit.Office) -> None:
    doubtful(office, office.campaign("paused"))
    assert "paused: waits until it is resumed" in visit.words(office.browser("oda").get("/sends/in-doubt"))
    sql(office, "UPDATE campaigns SET status = 'cancelled'")
    assert "Spring news cancelled" in visit.words(office.browser("oda").get("/sends/in-doubt"))


def test_an_empty_list_says_when_there_would_be_something(office: visit.Office) -> None:
    shown = visit.words(office.browser("oda").get("/sends/in-doubt"))
    assert "No message is in doubt." in shown
    assert "between a message's end and the mail server's answer" in shown


def test_today_leads_operators_to_both_lists(office: visit.Office) -> None:
    campaign_id = office.campaign("sending")
    doubtful(office, campaign_id)
    dead(office, campaign_id, email="b@example.com")
    page = office.browser("oda").get("/").get_data(as_text=True)
    assert '<a href="/sends/in-doubt">1</a>' in page
    assert '<a href="/sends/dead-letters">1</a>' in page
    assert f'href="/sends/in-doubt?campaign={campaign_id}"' in page
    assert f'href="/sends/dead-letters?campaign={campaign_id}"' in page
    other = office.browser("sue").get("/").get_data(as_text=True)
    assert f'href="/sends/campaign/{campaign_id}?status=dead"' in other
