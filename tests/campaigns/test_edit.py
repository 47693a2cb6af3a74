"""Changing a campaign before it is sent."""

import pytest
import visit
from sqlalchemy import Engine

CHANGE = {
    "name": "Changed",
    "sender": "Acme <news@example.com>",
    "subject": "Changed",
    "html": "<p>Changed</p>",
    "text": "",
}


@pytest.mark.parametrize("status", ["draft", "submitted", "approved"])
def test_an_edit_makes_a_new_version_and_a_draft_of_it(engine: Engine, status: str) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign(status)
    answer = office.browser("mia").post(f"/campaigns/{campaign_id}/edit", CHANGE | {"list_id": str(office.list_id)})
    assert (answer.status_code, answer.location) == (303, f"/campaigns/{campaign_id}")
    campaign = office.row(campaign_id)
    assert (campaign.status, campaign.version, campaign.subject, campaign.approver_id) == ("draft", 2, "Changed", None)


def test_the_page_warns_that_an_approval_becomes_void(engine: Engine) -> None:
    """C67 (a)."""
    office = visit.office(engine)
    shown = visit.words(office.browser("mia").get(f"/campaigns/{office.campaign('approved')}/edit"))
    assert "Saving makes this a draft again. The approval by Abe becomes void" in shown
    assert "becomes void" not in visit.words(office.browser("mia").get(f"/campaigns/{office.campaign()}/edit"))


@pytest.mark.parametrize("status", ["sending", "paused", "sent", "cancelled"])
def test_what_is_being_sent_can_not_be_changed_any_more(engine: Engine, status: str) -> None:
    """C67 (d)."""
    office = visit.office(engine)
    campaign_id = office.campaign(status)
    one = office.browser("mia")
    path = f"/campaigns/{campaign_id}/edit"
    assert one.get(path).status_code == 409
    answer = one.post(path, CHANGE | {"list_id": str(office.list_id)}, form_at="/")
    assert answer.status_code == 409
    assert "can't be changed any more" in visit.words(answer)
    assert office.row(campaign_id).version == 1


def test_a_text_that_was_made_from_the_html_is_made_anew_from_the_new_html(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign()
    path = f"/campaigns/{campaign_id}/edit"
    one = office.browser("mia")
    assert "Hello" in office.row(campaign_id).text
    page = one.get(path).get_data(as_text=True)
    text = page.split('name="text"')[1].split(">")[1].split("<")[0].strip()
    assert text == ""
    one.post(path, CHANGE | {"list_id": str(office.list_id)})
    assert office.row(campaign_id).text.strip() == "Changed"


def test_wrong_input_changes_nothing(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign()
    answer = office.browser("mia").post(f"/campaigns/{campaign_id}/edit", CHANGE | {"subject": ""})
    assert answer.status_code == 422
    assert "Fill in the subject." in visit.words(answer)
    assert office.row(campaign_id).version == 1
