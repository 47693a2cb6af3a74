"""Changing a campaign before it is sent."""

import make
import pytest
import visit
from sqlalchemy import Engine

from console.campaigns import service
from console.db import transaction

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


def _unchanged(office: visit.Office, campaign_id: int) -> dict[str, str]:
    now = office.row(campaign_id)
    return {
        "name": now.name,
        "list_id": str(now.list_id),
        "sender": now.sender,
        "subject": now.subject,
        "html": now.html,
        "text": now.text,
    }


def test_a_new_name_by_a_colleague_leaves_the_author_who_may_still_not_approve(engine: Engine) -> None:
    """C67 (e)."""
    office = visit.office(engine)
    campaign_id = office.campaign(author="ada")
    same = _unchanged(office, campaign_id) | {"name": "Only the name"}
    assert office.browser("mia").post(f"/campaigns/{campaign_id}/edit", same).status_code == 303
    campaign = office.row(campaign_id)
    assert (campaign.name, campaign.version, campaign.author_name) == ("Only the name", 2, "Ada")
    one = office.browser("ada")
    assert one.post(f"/campaigns/{campaign_id}/submit").status_code == 303
    fields = {"when": "now", "fingerprint": office.row(campaign_id).fingerprint}
    assert one.post(f"/campaigns/{campaign_id}/approve", fields, form_at="/").status_code == 403
    assert office.row(campaign_id).status == "submitted"


def test_line_ends_as_browsers_send_them_make_nobody_the_author(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign(author="ada")
    lines = _unchanged(office, campaign_id) | {"html": "<p>One</p>\n<p>Two</p>\n", "text": "\nOne\nTwo\n"}
    draft = service.Draft(**{**lines, "list_id": office.list_id})
    with transaction(engine) as session:
        service.edit(session, office.account_id, campaign_id, author_id=office.users["ada"], draft=draft)
    sent = {**lines, "html": lines["html"].replace("\n", "\r\n"), "text": "One\r\nTwo\r\n"}
    assert office.browser("mia").post(f"/campaigns/{campaign_id}/edit", sent).status_code == 303
    campaign = office.row(campaign_id)
    assert (campaign.version, campaign.author_name) == (3, "Ada")


@pytest.mark.parametrize("field", ["list_id", "sender", "subject", "html", "text"])
def test_who_changes_what_is_sent_or_to_whom_becomes_the_author(engine: Engine, field: str) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign(author="ada")
    with transaction(engine) as session:
        other_list = make.mailing_list(session, office.account_id, name="Other", emails=["ron@example.com"])
    change = str(other_list) if field == "list_id" else CHANGE[field] or "Changed"
    change = "Acme <other@example.com>" if field == "sender" else change
    fields = _unchanged(office, campaign_id) | {field: change}
    assert office.browser("mia").post(f"/campaigns/{campaign_id}/edit", fields).status_code == 303
    assert office.row(campaign_id).author_name == "Mia"


def test_who_only_submits_the_words_of_another_may_approve_them(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign(author="mia")
    one = office.browser("ada")
    assert one.post(f"/campaigns/{campaign_id}/submit").status_code == 303
    assert one.post(f"/campaigns/{campaign_id}/approve", {"when": "now"}).status_code == 303
    assert office.row(campaign_id).approver_name == "Ada"


def test_wrong_input_changes_nothing(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign()
    answer = office.browser("mia").post(f"/campaigns/{campaign_id}/edit", CHANGE | {"subject": ""})
    assert answer.status_code == 422
    assert "Fill in the subject." in visit.words(answer)
    assert office.row(campaign_id).version == 1
