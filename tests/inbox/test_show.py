"""GET /inbox/<event_id>: one event as it came, its deliveries, what was done."""

import json

import post
import pytest
import visit
from sqlalchemy import Engine


@pytest.fixture
def shop(engine: Engine) -> post.Shop:
    return post.shop(engine)


def test_one_event_is_shown_with_all_that_proves_it(shop: post.Shop) -> None:
    event_id = shop.post()
    post.event(shop.office.app, shop.made, post.ORDER, headers={"X-Request-ID": "req-2"})
    post.event(shop.office.app, shop.made, {**post.ORDER, "data": 1}, headers={"X-Request-ID": "req-3"})
    shop.read()
    page = shop.office.browser("sue").get(f"/inbox/{event_id}")
    shown = visit.words(page)
    event = shop.row(event_id)
    for words in (
        "order.paid evt_1",
        "receipt, version 1",
        f"Send {event.send_id}",
        "It came 3 times.",
        "req-2",
        "req-3",
        "another one under the same id",
        event.correlation_id,
        event.request_id,
        "from the body",
    ):
        assert words in shown, words
    # Indented, as people read it.
    assert "&#34;customer&#34;: {\n" in page.get_data(as_text=True)
    assert f'href="/sends/{event.send_id}"' in page.get_data(as_text=True)


def test_headers_with_secrets_are_masked(shop: post.Shop) -> None:
    answer = post.event(
        shop.office.app, shop.made, b"{}", headers={"Authorization": "Bearer abc123", "X-Shop": "north"}
    )
    assert answer.json is not None
    shown = visit.words(shop.office.browser("ada").get(f"/inbox/{answer.json['id']}"))
    assert "abc123" not in shown
    assert "authorization ***" in shown
    assert "x-shop north" in shown


@pytest.mark.parametrize(
    ("body", "shown"),
    [(b"", "It is empty."), (b"a=1&b=2", "a=1&b=2"), (b"\x00\xff", "\u2400\ufffd"), (b"[" * 3000, "[[["),
     (b"[" * 900 + b"]" * 900, "[ [ ["), (b'"\\ud800"', '"?"'), (json.dumps({"a": "<i>"}).encode(), '{ "a": "<i>" }'),
     (json.dumps(["x" * 90] * 10_000).encode(), "This is its beginning")],
)  # fmt: skip
def test_any_body_can_be_looked_at(shop: post.Shop, body: bytes, shown: str) -> None:
    event_id = shop.post(body)
    page = shop.office.browser("sue").get(f"/inbox/{event_id}")
    assert page.status_code == 200
    # Tags of the body are text, so they are looked for before tags are taken out.
    plain = " ".join(visit.html.unescape(page.get_data(as_text=True)).split())
    assert " ".join(shown.split()) in plain


def test_an_event_without_an_id_says_what_stands_for_it(shop: post.Shop) -> None:
    event_id = shop.post({"type": "ping"})
    shown = visit.words(shop.office.browser("sue").get(f"/inbox/{event_id}"))
    assert "no id was found, so the body's hash stands for it" in shown


def test_why_it_failed_and_reading_it_again_stand_there(shop: post.Shop) -> None:
    event_id = shop.post(data={})
    one = shop.office.browser("sue")
    assert "Read again" not in visit.words(one.get(f"/inbox/{event_id}"))
    shop.read()
    shown = visit.words(one.get(f"/inbox/{event_id}"))
    assert "nothing at $.data." in shown
    assert "Read again" in shown


def test_an_event_of_another_account_is_not_there(shop: post.Shop) -> None:
    event_id = shop.post()
    other = visit.office(shop.engine, slug="other", app=shop.office.app)
    assert other.browser("ada").get(f"/inbox/{event_id}").status_code == 404
    assert shop.office.browser("ada").get("/inbox/999999").status_code == 404
    assert shop.office.browser("mia").get(f"/inbox/{event_id}").status_code == 403
