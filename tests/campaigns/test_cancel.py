"""Stopping a campaign for good."""

import visit
from sqlalchemy import Engine


def test_a_cancelled_campaign_cancels_what_waits_and_keeps_what_was_sent(engine: Engine) -> None:
    """C07, run A: with a broken sender too, cancelling works at once."""
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    for number in range(3):
        office.send(campaign_id=campaign_id, email=f"r{number}@example.com")
    office.send(campaign_id=campaign_id, status="sent", email="sent@example.com")
    one = office.browser("oda")
    shown = visit.words(one.get(f"/campaigns/{campaign_id}/cancel"))
    assert "This can't be undone. 3 waiting messages will be cancelled" in shown
    assert "1 already sent stay sent" in shown
    assert office.row(campaign_id).status == "sending"
    answer = one.post(f"/campaigns/{campaign_id}/cancel", {"reason": "Wrong prices"})
    assert (answer.status_code, answer.location) == (303, f"/campaigns/{campaign_id}")
    shown = visit.words(one.get(answer.location))
    assert "Cancelled 3" in shown
    assert "Sent 1" in shown
    assert "Note: Wrong prices" in shown


def test_a_draft_can_be_cancelled_and_nothing_of_it_is_ever_sent(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign()
    one = office.browser("mia")
    assert "nothing of it has been sent; it never will be" in visit.words(one.get(f"/campaigns/{campaign_id}/cancel"))
    assert one.post(f"/campaigns/{campaign_id}/cancel").status_code == 303
    assert office.row(campaign_id).status == "cancelled"


def test_with_htmx_the_moving_part_comes_back(engine: Engine) -> None:
    office = visit.office(engine)
    answer = office.browser("oda").post(f"/campaigns/{office.campaign('paused')}/cancel", headers=visit.HTMX)
    assert (answer.status_code, "It was stopped for good." in visit.words(answer)) == (200, True)


def test_cancelling_what_has_been_sent_loses_with_the_present_state(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sent")
    one = office.browser("oda")
    assert one.get(f"/campaigns/{campaign_id}/cancel").status_code == 409
    answer = one.post(f"/campaigns/{campaign_id}/cancel", form_at="/", headers=visit.HTMX)
    assert (answer.status_code, answer.headers["HX-Retarget"]) == (409, "#problem-slot")
    assert "it has been sent" in visit.words(answer)
    assert office.row(campaign_id).status == "sent"
