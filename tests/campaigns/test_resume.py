"""Letting a paused campaign go on."""

import visit
from sqlalchemy import Engine


def test_a_resumed_campaign_sends_on(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("paused")
    office.send(campaign_id=campaign_id)
    one = office.browser("oda")
    shown = visit.words(one.get(f"/campaigns/{campaign_id}/resume"))
    assert "1 waiting message will be sent" in shown
    assert office.row(campaign_id).status == "paused"
    answer = one.post(f"/campaigns/{campaign_id}/resume")
    assert (answer.status_code, answer.location) == (303, f"/campaigns/{campaign_id}")
    assert office.row(campaign_id).status == "sending"


def test_a_campaign_that_was_held_because_it_was_late_says_that_it_starts_now(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("paused", started_at=None)
    shown = visit.words(office.browser("oda").get(f"/campaigns/{campaign_id}/resume"))
    assert "It starts now and goes to about 2 recipients on the list News" in shown


def test_with_htmx_the_moving_part_comes_back_and_moves(engine: Engine) -> None:
    office = visit.office(engine)
    answer = office.browser("oda").post(f"/campaigns/{office.campaign('paused')}/resume", headers=visit.HTMX)
    assert answer.status_code == 200
    assert 'hx-trigger="every 2s"' in answer.get_data(as_text=True)


def test_resuming_what_is_not_paused_loses_with_the_present_state(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("cancelled")
    answer = office.browser("oda").post(f"/campaigns/{campaign_id}/resume", form_at="/")
    assert answer.status_code == 409
    assert "it has been cancelled" in visit.words(answer)
