"""POST /inbox/replay: chosen events are read once more."""

import post
import pytest
import visit
from sqlalchemy import Engine

from console.db import transaction
from console.inbox import rules


@pytest.fixture
def shop(engine: Engine) -> post.Shop:
    return post.shop(engine)


def test_chosen_events_wait_again_and_make_their_messages_once(shop: post.Shop) -> None:
    with transaction(shop.engine) as session:
        rules.switch_off(session, shop.office.account_id, shop.rule_id, user_id=None)
    events = [shop.post(id=f"evt_{number}") for number in range(3)]
    shop.read()
    shop.on(shop.rule_id)
    one = shop.office.browser("sue")
    answer = one.post("/inbox/replay", {"event_id": events[:2]}, form_at="/inbox/")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/inbox/")
    assert "Events that will be read again in a moment: 2." in visit.words(one.get("/inbox/"))
    shop.read()
    assert [shop.row(number).status for number in events] == ["done", "done", "no_rule"]
    answer = one.post("/inbox/replay", {"event_id": [events[0]]}, form_at="/inbox/")
    assert answer.headers["Location"] == f"/inbox/{events[0]}"
    shop.read()
    assert len(shop.sends()) == 2


def test_with_htmx_the_browser_is_sent_on(shop: post.Shop) -> None:
    event_id = shop.post()
    shop.read()
    answer = shop.office.browser("oda").post(
        "/inbox/replay", {"event_id": event_id}, form_at="/inbox/", headers=visit.HTMX
    )
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, f"/inbox/{event_id}")


@pytest.mark.parametrize("chosen", [[], ["x"], ["-1"], ["9" * 30], ["1" for _ in range(1001)]])
def test_a_choice_that_is_none_is_refused_with_words(shop: post.Shop, chosen: list[str]) -> None:
    shop.post()
    assert shop.office.browser("sue").post("/inbox/replay", {"event_id": chosen}, form_at="/inbox/").status_code == 422


def test_who_may_not_read_them_may_not_read_them_again(shop: post.Shop) -> None:
    event_id = shop.post()
    shop.read()
    one = shop.office.browser("mia")
    assert one.post("/inbox/replay", {"event_id": event_id}, form_at="/campaigns/new").status_code == 403
    assert shop.office.browser("sue").client.post("/inbox/replay", data={"event_id": event_id}).status_code == 400
    assert shop.row(event_id).status == "done"
