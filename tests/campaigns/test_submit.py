"""Handing a draft to the approvers."""

import visit
from sqlalchemy import Engine, text

from console.db import transaction


def test_the_question_says_where_it_would_go_and_changes_nothing(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign()
    shown = visit.words(office.browser("mia").get(f"/campaigns/{campaign_id}/submit"))
    assert "Submit “Spring news”?" in shown
    assert "Nothing is sent before one of them approves it" in shown
    assert office.row(campaign_id).status == "draft"


def test_a_submitted_campaign_waits_on_the_first_page_of_approvers(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign()
    answer = office.browser("mia").post(f"/campaigns/{campaign_id}/submit")
    assert (answer.status_code, answer.location) == (303, f"/campaigns/{campaign_id}")
    assert office.row(campaign_id).status == "submitted"
    assert "Read and approve Spring news" in visit.words(office.browser("abe").get("/"))


def test_with_htmx_the_moving_part_comes_back(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign()
    answer = office.browser("mia").post(f"/campaigns/{campaign_id}/submit", headers=visit.HTMX)
    assert answer.status_code == 200
    assert "Waits for approval" in visit.words(answer)
    assert "<html" not in answer.get_data(as_text=True)


def test_a_second_click_loses_with_the_present_state(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign()
    one = office.browser("mia")
    fields = one.hidden(f"/campaigns/{campaign_id}/submit")
    path = f"/campaigns/{campaign_id}/submit"
    assert one.client.post(path, data=fields).status_code == 303
    answer = one.client.post(path, data=fields)
    assert answer.status_code == 409
    assert "waits for approval" in visit.words(answer)
    assert one.get(path).status_code == 409


def test_a_list_that_nobody_is_on_is_told_before_anything_waits(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign()
    with transaction(engine) as session:
        session.execute(text("DELETE FROM list_members"))
    answer = office.browser("mia").post(f"/campaigns/{campaign_id}/submit")
    assert answer.status_code == 422
    assert "has no confirmed subscriber" in visit.words(answer)
    assert office.row(campaign_id).status == "draft"
