"""POST /inbox/rule/<rule_id>/try-out."""

import post
import pytest
import visit
from sqlalchemy import Engine


@pytest.fixture
def shop(engine: Engine) -> post.Shop:
    return post.shop(engine, is_on=False)


def _try(shop: post.Shop, event_id: object, *, name: str = "ada"):
    path = f"/inbox/rule/{shop.rule_id}"
    return shop.office.browser(name).post(
        f"{path}/try-out", {"event_id": str(event_id)}, form_at="/inbox/" if name != "ada" else path
    )


def test_recipient_parameters_key_and_what_would_happen_are_shown_and_nothing_is_sent(shop: post.Shop) -> None:
    event_id = shop.post(
        {**post.ORDER, "data": {**post.ORDER["data"], "customer": {"email": "r@example.com", "name": "<b>R"}}}
    )
    answer = _try(shop, event_id)
    assert answer.status_code == 200
    shown = visit.words(answer)
    for words in (
        "What it would do with event",
        "A message would be made",
        "r@example.com",
        "webhook:shop:evt_1",
        "1001",
        "about: order 1001",
    ):
        assert words in shown, words
    assert "<b>R" not in answer.get_data(as_text=True)
    assert "Switch version 1 on" in shown
    assert shop.sends() == shop.triggers() == []


def test_why_it_would_fail_is_shown_and_it_can_not_be_switched_on(shop: post.Shop) -> None:
    event_id = shop.post(data={})
    shown = visit.words(_try(shop, event_id))
    assert f"It would fail on event {event_id}" in shown
    assert "nothing at $.data." in shown
    assert "Switch version" not in shown


def test_a_duplicate_is_said_to_be_one(shop: post.Shop) -> None:
    event_id = shop.post()
    shop.on(shop.rule_id)
    shop.read()
    shown = visit.words(_try(shop, event_id))
    assert f"there is one with this key: send {shop.row(event_id).send_id}" in shown


@pytest.mark.parametrize(("event_id", "status"), [("", 422), ("x", 422), ("0", 422), ("9" * 30, 422), ("999999", 404)])
def test_an_event_that_is_none_is_refused_with_words(shop: post.Shop, event_id: str, status: int) -> None:
    assert _try(shop, event_id).status_code == status


def test_only_admins_try_rules_out(shop: post.Shop) -> None:
    assert _try(shop, shop.post(), name="oda").status_code == 403
