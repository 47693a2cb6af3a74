"""Leaving a list by the link in a mail: the token, the page, and the mail program's own button."""

from dataclasses import dataclass

import pytest
import visit
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from console.audience import store
from console.audience.unsubscribe import Ticket, make_token, read_token
from console.db import transaction
from console.errors import InvalidInput

KEY = "k" * 40
IDS = st.integers(1, 2**63 - 1)
ONE_CLICK = {"List-Unsubscribe": "One-Click"}


@given(IDS, IDS, IDS, IDS)
def test_a_token_says_what_was_put_into_it(account_id: int, list_id: int, subscriber_id: int, send_id: int) -> None:
    token = make_token(KEY, account_id=account_id, list_id=list_id, subscriber_id=subscriber_id, send_id=send_id)
    assert read_token(KEY, token) == Ticket(account_id, list_id, subscriber_id, send_id)
    assert token.replace("-", "").replace("_", "").isalnum()


@given(st.integers(0, 63), st.sampled_from("AZaz09-_=~é"))
def test_a_changed_token_is_refused(place: int, character: str) -> None:
    token = make_token(KEY, account_id=1, list_id=2, subscriber_id=3, send_id=4)
    changed = token[:place] + character + token[place + 1 :]
    if changed != token:
        with pytest.raises(InvalidInput):
            read_token(KEY, changed)


@pytest.mark.parametrize("token", ["", "x", "A" * 64, "A" * 63, "A" * 65, "=" * 64, "é" * 64])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidInput):
        read_token(KEY, token)


def test_a_token_made_with_another_key_is_refused() -> None:
    token = make_token(KEY, account_id=1, list_id=2, subscriber_id=3, send_id=4)
    with pytest.raises(InvalidInput):
        read_token("other" * 10, token)


@dataclass(frozen=True)
class Reader:
    """Somebody with a mail of the list in front of them."""

    client: FlaskClient
    engine: Engine
    account_id: int
    list_id: int
    path: str

    def stops(self) -> list[tuple]:
        query = "SELECT email_lower, list_id, kind, send_id FROM suppressions ORDER BY id"
        with transaction(self.engine) as session:
            return [tuple(row) for row in session.execute(text(query))]


@pytest.fixture
def reader(engine: Engine) -> Reader:
    office = visit.office(engine)
    with transaction(engine) as session:
        person = store.subscribers_of(session, office.account_id, "rita@example.com")[0]
    token = make_token(
        office.app.config["SECRET_KEY"],
        account_id=office.account_id, list_id=office.list_id, subscriber_id=person.id, send_id=77,
    )  # fmt: skip
    client = office.app.test_client()
    return Reader(client, engine, office.account_id, office.list_id, f"/audience/unsubscribe/{token}")


def test_looking_at_the_link_changes_nothing_however_often(reader: Reader) -> None:
    """C47: mail scanners open every link; a GET shows a page with one button."""
    for _ in range(5):
        answer = reader.client.get(reader.path)
        assert answer.status_code == 200
    for headers in ({"Purpose": "prefetch"}, {"User-Agent": "Mozilla/5.0 (compatible; Scanner/1.0)"}):
        assert reader.client.get(reader.path, headers=headers).status_code == 200
    assert [reader.client.head(reader.path).status_code for _ in range(2)] == [200, 200]
    assert reader.stops() == []
    page = reader.client.get(reader.path).get_data(as_text=True)
    assert page.count("<button") == 1
    assert 'method="post"' in page
    assert "News" in page
    assert "rita@example.com" in page


def test_the_pages_button_takes_the_person_off_the_list_once(reader: Reader) -> None:
    """C47, C50: leaving is for one list; the suppression names the send that carried the link."""
    for _ in range(2):
        answer = reader.client.post(reader.path, data=ONE_CLICK)
        assert answer.status_code == 200
        assert "You are unsubscribed" in answer.get_data(as_text=True)
    assert reader.stops() == [("rita@example.com", reader.list_id, "unsubscribed", 77)]
    assert "You are unsubscribed" in reader.client.get(reader.path).get_data(as_text=True)


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_mail_programs_own_button_works_without_cookies_token_or_redirect(reader: Reader, content_type: str) -> None:
    """C47: RFC 8058, 3.2: an HTTPS POST with List-Unsubscribe=One-Click, no cookies, no redirect."""
    answer = reader.client.post(reader.path, data=ONE_CLICK, content_type=content_type)
    assert answer.status_code == 200
    assert "Set-Cookie" not in answer.headers
    assert [stop[:3] for stop in reader.stops()] == [("rita@example.com", reader.list_id, "unsubscribed")]


def test_somebody_who_is_signed_in_elsewhere_needs_no_form_token_either(reader: Reader) -> None:
    with reader.client.session_transaction() as session:
        session["csrf_token"] = "of another page"
    assert reader.client.post(reader.path, data=ONE_CLICK).status_code == 200
    assert len(reader.stops()) == 1


def test_a_person_who_is_stopped_for_another_reason_is_told_so_and_offered_nothing(reader: Reader) -> None:
    with transaction(reader.engine) as session:
        store.suppress(
            session, reader.account_id, email_lower="rita@example.com", kind="complained", reason="reported as spam"
        )
    page = reader.client.get(reader.path).get_data(as_text=True)
    assert "has been stopped already" in page
    assert "<button" not in page


@pytest.mark.parametrize("path", ["/audience/unsubscribe/nonsense", "/audience/unsubscribe/" + "A" * 64])
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_broken_link_says_in_plain_words_that_nothing_was_changed(reader: Reader, path: str, method: str) -> None:
    answer = getattr(reader.client, method)(path)
    assert answer.status_code == 404
    assert "Nothing was changed" in answer.get_data(as_text=True)
    assert reader.stops() == []
