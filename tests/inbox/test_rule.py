"""GET /inbox/rule/<rule_id>."""

import post
import visit
from sqlalchemy import Engine


def test_a_rule_shows_what_it_does_and_to_admins_how_to_try_it(engine: Engine) -> None:
    shop = post.shop(engine, is_on=False)
    path = f"/inbox/rule/{shop.rule_id}"
    shown = visit.words(shop.office.browser("sue").get(path))
    for words in (
        "Draft",
        "order.paid",
        "$.data.customer.email",
        "order_id $.data.order.id",
        "webhook:shop:",
        "inbox:shop/receipt",
    ):
        assert words in shown, words
    assert "Try it out" not in shown
    shown = visit.words(shop.office.browser("ada").get(path))
    assert "No event that it is for has come yet." in shown
    # It has not been tried out.
    assert "Switch version" not in shown
    shop.post(type="other")
    event_id = shop.post(id="evt_2")
    assert f"Newest events that it is for: {event_id} (order.paid" in visit.words(shop.office.browser("ada").get(path))


def test_a_rule_of_another_account_is_not_there(engine: Engine) -> None:
    shop = post.shop(engine)
    other = visit.office(engine, slug="other", app=shop.office.app)
    assert other.browser("ada").get(f"/inbox/rule/{shop.rule_id}").status_code == 404
    assert shop.office.browser("mia").get(f"/inbox/rule/{shop.rule_id}").status_code == 403
