"""POST /inbox/rule/<rule_id>/switch-on."""

import post
import pytest
import visit
from sqlalchemy import Engine


@pytest.fixture
def shop(engine: Engine) -> post.Shop:
    return post.shop(engine, is_on=False)


def test_a_rule_that_was_tried_out_is_on_and_the_other_for_its_type_off(shop: post.Shop) -> None:
    event_id = shop.post()
    shop.on(shop.draft("older"))
    page = f"/inbox/rule/{shop.rule_id}"
    one = shop.office.browser("ada")
    early = one.post(f"{page}/switch-on", {"version": "1"}, form_at=page)
    assert early.status_code == 409
    assert "Try it out on a stored event first." in visit.words(early)
    one.post(f"{page}/try-out", {"event_id": event_id}, form_at=page)
    assert one.post(f"{page}/switch-on", form_at=page).headers["Location"] == page
    assert "The rule older, which was on for the same type, is off." in visit.words(one.get(page))
    assert dict(post.rows(shop.office, "SELECT name, status FROM inbox_rules")) == {"receipt": "on", "older": "off"}


def test_a_page_that_is_out_of_date_switches_nothing(shop: post.Shop) -> None:
    page = f"/inbox/rule/{shop.rule_id}"
    one = shop.office.browser("ada")
    for version, status in (("2", 409), ("x", 422), ("", 422)):
        assert one.post(f"{page}/switch-on", {"version": version}, form_at=page).status_code == status
    assert shop.office.browser("oda").post(f"{page}/switch-on", {"version": "1"}, form_at="/inbox/").status_code == 403
    assert post.rows(shop.office, "SELECT status FROM inbox_rules") == [("draft",)]
