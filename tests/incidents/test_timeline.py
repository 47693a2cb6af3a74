"""The screen "they got it twice": who may see it, what it says, and what it answers to wrong input."""

from datetime import timedelta
from pathlib import Path

import doorway
import pytest
import visit
from scene import RITA, Scene, scene
from sqlalchemy import Engine
from visit import Office

from console import clock
from console.incidents.comparing import columns

PATH = "/incidents/timeline"


def _double(at: Scene) -> None:
    """Two clicks that each made a token, and both mails went out."""
    for token in ("7781", "7782"):
        at.asks(f"reset:7:{token}", order=token, message_type="reset", event="password.reset", code_path="auth.reset",
                correlation=f"click-{token}", entities={"user_id": "7", "reset_token_id": token})  # fmt: skip
    at.sends()


def test_support_reads_verdict_answers_comparison_and_sentences(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with scene(engine, database_url, tmp_path) as at:
        _double(at)
        answer = at.shop.office.browser("sue").get(PATH, query_string={"recipient": RITA})
        compared = columns(at.timeline().copies)
    assert answer.status_code == 200
    read = visit.words(answer)
    assert "The event was created twice" in read
    assert "Which code path asked? web_request auth.reset" in read
    assert "What was enqueued? 2 messages" in read
    assert "How often was one accepted? Twice" in read
    assert "later: a web request from auth.reset asked, about password.reset" in read
    assert compared is not None
    telling = {row.name: row.differs for row in compared.rows}
    assert telling == {"Subject": True, "Enqueued": False, "Accepted": False, "About": True, "Dedupe key": True,
                       "Correlation id": True, "Message-ID": False, "Provider's id": False}  # fmt: skip
    for row in compared.rows[:1] + compared.rows[3:7]:
        for value in row.values:
            assert value in read
    assert "Subject differs" in read


def test_it_is_linked_from_a_send_and_from_the_search_and_its_links_lead_on(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with scene(engine, database_url, tmp_path) as at:
        _double(at)
        send_id = at.shop.sends()[0].id
        browser = at.shop.office.browser("sue")
        assert f'href="{PATH}?recipient={send_id}"' in browser.get(f"/sends/{send_id}").get_data(as_text=True)
        assert f'href="{PATH}?recipient=rita@example.com"' in browser.get(
            "/sends/", query_string={"recipient": RITA}
        ).get_data(as_text=True)
        shown = browser.get(PATH, query_string={"recipient": send_id}).get_data(as_text=True)
        text = browser.get(PATH, query_string={"recipient": send_id, "as": "text"})
        document = browser.get(PATH, query_string={"recipient": send_id, "as": "json"}).get_json()
        assert f"/sends/{send_id}" in shown
        assert "as=text" in shown
    assert text.mimetype == "text/plain"
    assert "The event was created twice." in text.get_data(as_text=True)
    assert document["verdict"]["cause"] == "event_created_twice"
    # Whoever opens the page by a link gets the same window from its form.
    assert 'value="rita@example.com"' in shown


@pytest.fixture
def office(engine: Engine) -> Office:
    return visit.office(engine)


def test_only_support_and_operators_may_see_it(office: Office) -> None:
    for name, status in (("sue", 200), ("oda", 200), ("ada", 200), ("mia", 403), ("abe", 403)):
        assert office.browser(name).get(PATH).status_code == status, name
    assert "Got it twice" not in visit.words(office.browser("mia").get("/"))


def test_without_a_recipient_it_asks_for_one(office: Office) -> None:
    answer = office.browser("sue").get(PATH)
    assert "They got it twice, or not at all" in visit.words(answer)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"recipient": "nothing-like-it"}, "is no address, and no message of this account has it"),
        ({"recipient": "x" * 501}, "Field cannot be longer than 500 characters"),
        ({"recipient": "a\x00b"}, "Take out the zero character"),
        ({"recipient": RITA, "from": "yesterday"}, "Not a valid datetime value"),
        ({"recipient": RITA, "from": "2026-12-07T10:00", "to": "2026-12-07T09:00"}, "ends before it begins"),
        ({"recipient": RITA, "from": "2020-01-01T10:00", "to": "2026-12-07T09:00"}, "has more than 92 days"),
        ({"recipient": RITA, "type": "no such type"}, "Not a valid choice"),
    ],
)
def test_wrong_input_is_told_beside_its_field(office: Office, query: dict[str, str], words: str) -> None:
    answer = office.browser("sue").get(PATH, query_string=query)
    assert answer.status_code == 422
    assert words in visit.words(answer)


def test_an_empty_window_says_what_to_do_next(office: Office) -> None:
    answer = office.browser("sue").get(PATH, query_string={"recipient": "nobody@example.com"})
    assert "Nothing was asked for, and nothing was sent, in this window. Widen it" in visit.words(answer)


def test_nobody_sees_another_accounts_messages_by_any_id(engine: Engine, office: Office) -> None:
    other = doorway.doorway(engine, "other")
    receipt = other.accept(to="stranger@example.com", correlation_id="secret-click")
    browser = office.browser("sue")
    day = {"from": (clock.now() - timedelta(1)).isoformat()[:19], "to": (clock.now() + timedelta(1)).isoformat()[:19]}
    for wanted in (str(receipt.id), receipt.message_id, receipt.dedupe_key, "secret-click", "stranger@example.com"):
        for shape in ({}, {"as": "text"}, {"as": "json"}):
            read = browser.get(PATH, query_string={"recipient": wanted, **day, **shape}).get_data(as_text=True)
            assert "Your order" not in read
            assert "Receipt" not in read
            assert receipt.message_id.strip("<>") not in read.replace(wanted.strip("<>"), "")


def test_what_applications_say_is_text_and_no_markup(engine: Engine, office: Office) -> None:
    made = doorway.Doorway(engine, office.account_id)
    made.template()
    made.type()
    made.accept(code_path="<script>alert(1)</script>", event="<b>x</b>", correlation_id="<i>")
    read = office.browser("sue").get(PATH, query_string={"recipient": RITA}).get_data(as_text=True)
    assert "<script>alert(1)" not in read
    assert "&lt;script&gt;alert(1)" in read
    assert "<b>x</b>" not in read
