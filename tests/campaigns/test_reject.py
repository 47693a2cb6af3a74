"""Sending a campaign back to its author."""

import pytest
import visit
from sqlalchemy import Engine


@pytest.mark.parametrize("status", ["submitted", "approved"])
def test_a_rejected_campaign_is_a_draft_with_the_reason_on_its_page(engine: Engine, status: str) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign(status)
    answer = office.browser("abe").post(f"/campaigns/{campaign_id}/reject", {"reason": "Wrong prices"})
    assert (answer.status_code, answer.location) == (303, f"/campaigns/{campaign_id}")
    assert office.row(campaign_id).status == "draft"
    assert "Note: Wrong prices" in visit.words(office.browser("mia").get(f"/campaigns/{campaign_id}"))


def test_without_a_reason_nothing_is_rejected(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("submitted")
    path = f"/campaigns/{campaign_id}/reject"
    answer = office.browser("abe").post(path, {"reason": "  "})
    assert answer.status_code == 422
    assert "Say what must be changed" in visit.words(answer)
    fragment = office.browser("abe").post(path, {"reason": ""}, headers=visit.HTMX)
    assert fragment.status_code == 422
    assert "Say what must be changed" in visit.words(fragment)
    assert "<html" not in fragment.get_data(as_text=True)
    assert office.row(campaign_id).status == "submitted"


def test_with_htmx_the_moving_part_comes_back(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("submitted")
    answer = office.browser("abe").post(f"/campaigns/{campaign_id}/reject", {"reason": "No"}, headers=visit.HTMX)
    assert (answer.status_code, "Draft" in visit.words(answer)) == (200, True)


def test_what_is_being_sent_can_be_paused_but_not_rejected(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    one = office.browser("abe")
    assert one.get(f"/campaigns/{campaign_id}/reject").status_code == 409
    assert one.post(f"/campaigns/{campaign_id}/reject", {"reason": "No"}, form_at="/").status_code == 409
    assert office.row(campaign_id).status == "sending"
