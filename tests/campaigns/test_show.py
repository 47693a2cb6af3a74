"""One campaign's page."""

import pytest
import visit
from sqlalchemy import Engine, text

from console.db import transaction

ACTIONS = {
    "draft": {"mia": {"submit", "edit", "cancel"}, "abe": {"cancel"}, "sue": set(), "oda": {"cancel"}},
    "submitted": {
        "mia": {"edit", "cancel"},
        "abe": {"approve", "reject", "cancel"},
        "sue": set(),
        "ada": {"approve", "reject", "edit", "cancel"},
    },
    "approved": {"mia": {"edit", "cancel"}, "abe": {"reject", "cancel"}, "oda": {"cancel"}},
    "sending": {"mia": {"pause", "cancel"}, "oda": {"pause", "cancel"}, "sue": set()},
    "paused": {"mia": {"resume", "cancel"}, "abe": {"resume", "cancel"}, "sue": set()},
    "sent": {"ada": set()},
    "cancelled": {"ada": set()},
}


@pytest.mark.parametrize("status", sorted(ACTIONS))
def test_a_page_offers_what_the_person_may_do_to_the_campaign_as_it_is(engine: Engine, status: str) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign(status)
    for name, words in ACTIONS[status].items():
        page = office.browser(name).get(f"/campaigns/{campaign_id}").get_data(as_text=True)
        offered = {word for word in ("approve", "reject", "submit", "edit", "pause", "resume", "cancel")
                   if f'id="act-{word}"' in page}  # fmt: skip
        assert offered == words, name


def test_the_author_is_not_offered_to_approve(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("submitted", author="ada")
    assert 'id="act-approve"' not in office.browser("ada").get(f"/campaigns/{campaign_id}").get_data(as_text=True)


def test_the_page_shows_the_figures_of_each_state_and_leads_to_the_rows(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    for status, count in {"sent": 2, "queued": 3, "failed": 1, "in_doubt": 1, "suppressed": 1}.items():
        for number in range(count):
            office.send(campaign_id=campaign_id, status=status, email=f"{status}{number}@example.com")
    answer = office.browser("sue").get(f"/campaigns/{campaign_id}")
    shown = visit.words(answer)
    assert "2 of 8 recipients sent" in shown
    assert "Waiting 3" in shown
    assert "Failed 1" in shown
    assert "In doubt 1" in shown
    assert "the mail server may have accepted it or not" in shown
    assert f"/sends/campaign/{campaign_id}?status=in_doubt" in answer.get_data(as_text=True)


def test_a_broken_sender_shows_its_last_error_with_its_time_and_the_next_try(engine: Engine) -> None:
    """C07."""
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    for number in range(3):
        office.send(campaign_id=campaign_id, email=f"r{number}@example.com")
    with transaction(engine) as session:
        session.execute(
            text(
                "INSERT INTO provider_states (name, breaker, failure_count, error, error_at, next_try_at) VALUES"
                " ('smtp', 'open', 4, 'connection refused', '2027-01-02 10:00:03Z', '2027-01-02 10:00:33Z')"
            )
        )
    one = office.browser("mia")
    for path in (f"/campaigns/{campaign_id}", "/"):
        shown = visit.words(one.get(path))
        assert "0 of 3 recipients sent" in shown
        assert "Last error: connection refused, 2 Jan 2027, 10:00:03 UTC" in shown
        assert "Next try: 2 Jan 2027, 10:00:33 UTC" in shown


def test_a_provider_that_is_well_is_not_mentioned(engine: Engine) -> None:
    office = visit.office(engine)
    with transaction(engine) as session:
        session.execute(text("INSERT INTO provider_states (name, error) VALUES ('smtp', 'an old error')"))
    shown = visit.words(office.browser("mia").get(f"/campaigns/{office.campaign('sending')}"))
    assert "an old error" not in shown


def test_only_what_moves_is_asked_for_again(engine: Engine) -> None:
    office = visit.office(engine)
    one = office.browser("mia")
    assert 'hx-trigger="every 2s"' in one.get(f"/campaigns/{office.campaign('sending')}").get_data(as_text=True)
    assert "hx-trigger" not in one.get(f"/campaigns/{office.campaign('sent')}").get_data(as_text=True)


def test_a_schedule_is_shown_as_it_was_typed_and_in_utc(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("approved", scheduled_for="2027-07-01 08:30Z", schedule_zone="Europe/Berlin")
    shown = visit.words(office.browser("mia").get(f"/campaigns/{campaign_id}"))
    assert "Starts Thursday, 1 Jul 2027, 10:30 Europe/Berlin, that is 1 Jul 2027, 08:30:00 UTC" in shown


def test_an_example_person_whose_message_can_not_be_made_is_named_with_the_reason(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign()
    one = office.browser("mia")
    assert "News for Rita" in visit.words(one.get(f"/campaigns/{campaign_id}"))
    with transaction(engine) as session:
        session.execute(text("UPDATE subscribers SET attributes = '{}'"))
    shown = visit.words(one.get(f"/campaigns/{campaign_id}"))
    assert "This person would get no message: missing first_name." in shown


def test_names_and_notes_are_shown_as_text(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("paused", name="<script>alert(1)</script>", note="<img src=x>")
    page = office.browser("mia").get(f"/campaigns/{campaign_id}").get_data(as_text=True)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
