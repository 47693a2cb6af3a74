"""The approver's page: what is shown is what is approved, to start at once or at a time."""

from datetime import UTC, date, datetime, timedelta

import pytest
import visit
from sqlalchemy import Engine

from console import clock
from console.campaigns import service
from console.db import transaction


def test_the_page_shows_what_goes_out_to_how_many_by_whom_with_its_fingerprint(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("submitted")
    answer = office.browser("abe").get(f"/campaigns/{campaign_id}/approve")
    shown = visit.words(answer)
    assert "about 2 recipients on the list News" in shown
    assert "Mia, submitted" in shown
    assert "News for Rita" in shown
    assert "Acme <news@example.com>" in shown
    assert (office.row(campaign_id).fingerprint or "none") in shown
    assert f'src="/campaigns/{campaign_id}/message' in answer.get_data(as_text=True)
    assert office.row(campaign_id).status == "submitted"


def test_an_approval_for_now_is_due_at_once(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("submitted")
    answer = office.browser("abe").post(f"/campaigns/{campaign_id}/approve", {"when": "now"})
    assert (answer.status_code, answer.location) == (303, f"/campaigns/{campaign_id}")
    campaign = office.row(campaign_id)
    assert (campaign.status, campaign.approver_name) == ("approved", "Abe")
    assert campaign.scheduled_for is not None
    assert abs(campaign.scheduled_for - clock.now()) < timedelta(minutes=1)


def test_with_htmx_the_moving_part_comes_back(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("submitted")
    answer = office.browser("abe").post(f"/campaigns/{campaign_id}/approve", {"when": "now"}, headers=visit.HTMX)
    assert answer.status_code == 200
    assert "Scheduled" in visit.words(answer)


def test_a_time_is_read_in_its_zone_and_remembered_for_the_next_approval(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("submitted")
    one = office.browser("abe")
    year = clock.now().year + 1
    fields = {"when": "later", "date": f"{year}-07-01", "time": "10:30", "zone": "Europe/Berlin"}
    assert one.post(f"/campaigns/{campaign_id}/approve", fields).status_code == 303
    campaign = office.row(campaign_id)
    assert campaign.scheduled_for == datetime(year, 7, 1, 8, 30, tzinfo=UTC)
    assert campaign.schedule_zone == "Europe/Berlin"
    page = one.get(f"/campaigns/{office.campaign('submitted')}/approve").get_data(as_text=True)
    assert '<option selected value="Europe/Berlin">' in page


def test_the_time_can_be_seen_in_utc_before_anything_is_approved(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("submitted")
    year = clock.now().year + 1
    fields = {"when": "later", "date": f"{year}-12-01", "time": "09:00", "zone": "Asia/Kolkata", "check": "1"}
    answer = office.browser("abe").post(f"/campaigns/{campaign_id}/approve", fields)
    assert answer.status_code == 200
    assert f"09:00 Asia/Kolkata is 1 Dec {year}, 03:30:00 UTC. Nothing is approved yet." in visit.words(answer)
    assert f'value="{year}-12-01"' in answer.get_data(as_text=True)
    assert office.row(campaign_id).status == "submitted"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"when": "later"}, "Choose the date."),
        ({"when": "later", "date": "2999-01-01"}, "Choose the time."),
        ({"when": "later", "date": "2020-01-01", "time": "10:00"}, "1 Jan 2020, 10:00 UTC and is over"),
        ({"when": "later", "date": "2999-01-01", "time": "10:00", "zone": "Mars/Olympus"}, "Not a valid choice"),
        ({"when": "later", "date": "never", "time": "10:00"}, "Not a valid date"),
        ({"when": "now", "date": "2999-01-01"}, "but chose to start at once"),
        ({"when": "now", "fingerprint": ""}, "it lacks the fingerprint"),
    ],
)
def test_wrong_input_approves_nothing_and_says_what_is_wrong(engine: Engine, fields: dict, words: str) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("submitted")
    answer = office.browser("abe").post(f"/campaigns/{campaign_id}/approve", {"zone": "UTC", **fields})
    assert answer.status_code == 422
    assert words in visit.words(answer)
    assert office.row(campaign_id).status == "submitted"


@pytest.mark.parametrize(("month", "words"), [(3, "skip"), (10, "twice")])
def test_a_time_that_clocks_skip_or_repeat_is_refused_with_a_way_out(engine: Engine, month: int, words: str) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("submitted")
    # Berlin's clocks change on the last Sunday of March and October.
    last = date(clock.now().year + 1, month, 31)
    sunday = last - timedelta(days=(last.weekday() + 1) % 7)
    fields = {"when": "later", "date": sunday.isoformat(), "time": "02:30", "zone": "Europe/Berlin"}
    answer = office.browser("abe").post(f"/campaigns/{campaign_id}/approve", fields)
    assert answer.status_code == 422
    assert words in visit.words(answer)
    assert "you can also choose the zone UTC" in visit.words(answer)
    assert office.row(campaign_id).status == "submitted"


def test_a_page_loaded_before_an_edit_approves_nothing(engine: Engine) -> None:
    """C67 (g)."""
    office = visit.office(engine)
    campaign_id = office.campaign("submitted")
    one = office.browser("abe")
    stale = one.hidden(f"/campaigns/{campaign_id}/approve")
    draft = service.Draft("Spring news", office.list_id, "Other", "news@example.com", "<p>v2</p>")
    with transaction(engine) as session:
        service.edit(session, office.account_id, campaign_id, author_id=office.users["mia"], draft=draft)
        service.submit(session, office.account_id, campaign_id, user_id=office.users["mia"])
    answer = one.client.post(f"/campaigns/{campaign_id}/approve", data={**stale, "when": "now"})
    assert answer.status_code == 409
    assert "has changed since you opened this page" in visit.words(answer)
    assert office.row(campaign_id).status == "submitted"


def test_a_form_that_comes_back_says_when_the_campaign_has_changed_meanwhile(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("submitted")
    one = office.browser("abe")
    answer = one.post(f"/campaigns/{campaign_id}/approve", {"when": "later", "fingerprint": "what was there before"})
    assert answer.status_code == 422
    assert "The campaign has changed since you opened this page. Nothing was approved." in visit.words(answer)


def test_an_editor_may_not_approve_whatever_is_posted(engine: Engine) -> None:
    """C67 (f)."""
    office = visit.office(engine)
    campaign_id = office.campaign("submitted")
    fingerprint = office.row(campaign_id).fingerprint
    for name in ("mia", "max", "sue", "oda"):
        answer = office.browser(name).post(
            f"/campaigns/{campaign_id}/approve", {"when": "now", "fingerprint": fingerprint}, form_at="/"
        )
        assert answer.status_code == 403, name
    assert office.row(campaign_id).status == "submitted"


def test_the_author_may_not_approve_even_as_an_admin(engine: Engine) -> None:
    """C67 (e)."""
    office = visit.office(engine)
    campaign_id = office.campaign("submitted", author="ada")
    one = office.browser("ada")
    shown = visit.words(one.get(f"/campaigns/{campaign_id}/approve"))
    assert "another approver must approve it" in shown
    fields = {"when": "now", "fingerprint": office.row(campaign_id).fingerprint}
    answer = one.post(f"/campaigns/{campaign_id}/approve", fields, form_at="/")
    assert answer.status_code == 403
    assert "somebody else has to approve it" in visit.words(answer)
    assert office.row(campaign_id).status == "submitted"


def test_of_two_approvals_of_one_page_one_loses_with_words(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("submitted")
    one = office.browser("abe")
    fields = one.hidden(f"/campaigns/{campaign_id}/approve") | {"when": "now"}
    path = f"/campaigns/{campaign_id}/approve"
    assert one.client.post(path, data=fields).status_code == 303
    answer = one.client.post(path, data=fields)
    assert answer.status_code == 409
    assert "approved" in visit.words(answer)
