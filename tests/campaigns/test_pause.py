"""Pausing a campaign."""

import visit
from sqlalchemy import Engine


def test_the_question_says_how_many_messages_it_touches_and_changes_nothing(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    for status, count in {"queued": 3, "sending": 2, "sent": 1}.items():
        for number in range(count):
            office.send(campaign_id=campaign_id, status=status, email=f"{status}{number}@example.com")
    shown = visit.words(office.browser("oda").get(f"/campaigns/{campaign_id}/pause"))
    assert "3 waiting messages will stay in the queue" in shown
    assert "Up to 2 messages being handed over at this moment may still go out" in shown
    assert "1 already sent are not touched" in shown
    assert office.row(campaign_id).status == "sending"


def test_a_paused_campaign_shows_its_reason(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    one = office.browser("oda")
    answer = one.post(f"/campaigns/{campaign_id}/pause", {"reason": "Too fast"})
    assert (answer.status_code, answer.location) == (303, f"/campaigns/{campaign_id}")
    assert office.row(campaign_id).status == "paused"
    assert "Note: Too fast" in visit.words(one.get(answer.location))


def test_with_htmx_the_moving_part_comes_back_and_the_question_goes(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    answer = office.browser("oda").post(f"/campaigns/{campaign_id}/pause", headers=visit.HTMX)
    page = answer.get_data(as_text=True)
    assert answer.status_code == 200
    assert 'id="act-resume"' in page
    assert '<div id="confirm-slot" hx-swap-oob="true"></div>' in page
    assert "<html" not in page


def test_pausing_what_is_not_being_sent_loses_with_the_present_state(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("paused")
    one = office.browser("oda")
    assert "in its present state: Paused" in visit.words(one.get(f"/campaigns/{campaign_id}/pause"))
    answer = one.post(f"/campaigns/{campaign_id}/pause", form_at="/")
    assert answer.status_code == 409
    assert "it is paused" in visit.words(answer)
    assert f'href="/campaigns/{campaign_id}"' in answer.get_data(as_text=True)


def test_a_reason_that_is_too_long_is_refused(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    assert office.browser("oda").post(f"/campaigns/{campaign_id}/pause", {"reason": "x" * 501}).status_code == 422
    assert office.row(campaign_id).status == "sending"
