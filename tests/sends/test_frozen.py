"""The page of a frozen set: what it is for, before; what it did, after."""

import re

import pytest
import visit
from settling import check_counts, dead, doubtful, freeze, run, sql, states
from sqlalchemy import Engine

from console.sends.states import Change


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


def test_it_names_the_count_and_shows_the_exact_set_before_anything_happens(office: visit.Office) -> None:
    shown = [dead(office, email=f"r{n}@example.com") for n in range(2)]
    set_id = freeze(office, Change.REVIVE, *shown)
    dead(office, email="later@example.com")
    words = visit.words(office.browser("oda").get(f"/sends/frozen/{set_id}"))
    assert "Send again: 2 messages?" in words
    assert "Exactly the 2 messages listed below, as they stood when they were shown to Oda, " in words
    assert "r0@example.com" in words
    assert "r1@example.com" in words
    assert "later@example.com" not in words
    assert set(states(office).values()) == {"dead"}


def test_sending_again_what_is_in_doubt_says_that_it_may_come_twice(office: visit.Office) -> None:
    set_id = freeze(office, Change.SETTLE_RESEND, doubtful(office))
    assert "then the person gets it twice" in visit.words(office.browser("oda").get(f"/sends/frozen/{set_id}"))


def test_running_it_moves_the_set_and_shows_what_it_did(office: visit.Office) -> None:
    campaign_id = office.campaign("sending")
    moved, changed = dead(office, campaign_id), dead(office, campaign_id, email="changed@example.com")
    set_id = freeze(office, Change.REVIVE, moved, changed)
    sql(office, "UPDATE sends SET claimed_at = now() WHERE id = :id", id=changed)
    browser = office.browser("ada")
    answer = browser.post(f"/sends/frozen/{set_id}", {"reason": "The relay is back."})
    assert (answer.status_code, answer.location) == (303, f"/sends/frozen/{set_id}")
    assert states(office) == {moved: "queued", changed: "dead"}
    check_counts(office)
    page = browser.get(f"/sends/frozen/{set_id}")
    words = visit.words(page)
    assert "1 message of 2 put back into the queue" in words
    assert "By Ada," in words
    assert "The relay is back." in words
    assert "Skipped: it was tried again since it was shown" in words
    assert "<button" not in page.get_data(as_text=True).split("<h1>")[1]
    skipped = visit.words(browser.get(f"/sends/frozen/{set_id}?skipped=1"))
    assert "changed@example.com" in skipped
    assert "rita@example.com" not in skipped


def test_htmx_is_led_to_the_result(office: visit.Office) -> None:
    set_id = freeze(office, Change.SETTLE_SENT, doubtful(office))
    answer = office.browser("oda").post(f"/sends/frozen/{set_id}", {"reason": "It is in the log."}, headers=visit.HTMX)
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, f"/sends/frozen/{set_id}")
    assert set(states(office).values()) == {"sent"}


def test_the_sends_page_tells_who_decided_what_and_why(office: visit.Office) -> None:
    send_id = doubtful(office)
    run(office, freeze(office, Change.SETTLE_FAILED, send_id), reason="<b>Never</b> mind.")
    page = office.browser("sue").get(f"/sends/{send_id}")
    assert "Oda" in visit.words(page)
    assert "given up, because: <b>Never</b> mind." in visit.words(page)
    assert "<b>Never" not in page.get_data(as_text=True)


@pytest.mark.parametrize("headers", [{}, visit.HTMX], ids=["plain", "htmx"])
def test_a_second_press_does_nothing_and_says_who_was_faster(office: visit.Office, headers: dict[str, str]) -> None:
    send_id = dead(office)
    set_id = freeze(office, Change.REVIVE, send_id)
    browser = office.browser("oda")
    fields = {**browser.hidden(f"/sends/frozen/{set_id}"), "reason": "x"}
    run(office, set_id, by="ada")
    sql(office, "UPDATE sends SET status = 'dead'")
    answer = browser.client.post(f"/sends/frozen/{set_id}", data=fields, headers=headers)
    assert answer.status_code == 409
    assert f"Set {set_id} was run already, by Ada" in visit.words(answer)
    assert states(office) == {send_id: "dead"}


@pytest.mark.parametrize("reason", ["", "   ", "x" * 501, "a\x00b"])
def test_a_wrong_reason_comes_back_with_its_field_and_the_set_stays(office: visit.Office, reason: str) -> None:
    send_id = dead(office)
    set_id = freeze(office, Change.REVIVE, send_id)
    browser = office.browser("oda")
    answer = browser.post(f"/sends/frozen/{set_id}", {"reason": reason})
    assert answer.status_code == 422
    assert "Please look at: Reason" in visit.words(answer)
    assert browser.post(f"/sends/frozen/{set_id}", {"reason": reason}, headers=visit.HTMX).status_code == 422
    assert states(office) == {send_id: "dead"}
    assert browser.post(f"/sends/frozen/{set_id}", {"reason": "It is back."}).status_code == 303


def test_a_form_without_its_token_moves_nothing(office: visit.Office) -> None:
    send_id = dead(office)
    set_id = freeze(office, Change.REVIVE, send_id)
    answer = office.browser("oda").client.post(f"/sends/frozen/{set_id}", data={"reason": "x"})
    assert answer.status_code == 400
    assert states(office) == {send_id: "dead"}


@pytest.mark.parametrize("name", sorted(set(visit.PEOPLE) - {"oda", "ada"}))
def test_other_roles_neither_see_nor_run_it(office: visit.Office, name: str) -> None:
    send_id = dead(office)
    set_id = freeze(office, Change.REVIVE, send_id)
    browser = office.browser(name)
    assert browser.get(f"/sends/frozen/{set_id}").status_code == 403
    assert browser.post(f"/sends/frozen/{set_id}", {"reason": "x"}, form_at="/").status_code == 403
    assert states(office) == {send_id: "dead"}


def test_another_account_finds_no_such_set(office: visit.Office) -> None:
    set_id = freeze(office, Change.REVIVE, dead(office))
    stranger = visit.office(office.engine, slug="other", app=office.app).browser("ada")
    assert stranger.get(f"/sends/frozen/{set_id}").status_code == 404
    assert stranger.post(f"/sends/frozen/{set_id}", {"reason": "x"}, form_at="/").status_code == 404


def test_a_long_set_is_shown_page_by_page(office: visit.Office) -> None:
    rows = [dead(office, email=f"r{n}@example.com") for n in range(60)]
    set_id = freeze(office, Change.REVIVE, *rows)
    browser = office.browser("oda")
    first = browser.get(f"/sends/frozen/{set_id}").get_data(as_text=True)
    link = first.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    second = browser.get(link).get_data(as_text=True)
    pages = [re.findall(r'class="address" href="/sends/(\d+)"', page) for page in (first, second)]
    assert [len(page) for page in pages] == [50, 10]
    assert [int(number) for page in pages for number in page] == rows
