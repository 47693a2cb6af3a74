"""POST /inbox/rule/<rule_id>/switch-off."""

import post
import visit
from sqlalchemy import Engine


def test_a_rule_that_is_off_leaves_its_events_without_a_rule(engine: Engine) -> None:
    shop = post.shop(engine)
    page = f"/inbox/rule/{shop.rule_id}"
    assert shop.office.browser("oda").post(f"{page}/switch-off", form_at="/inbox/").status_code == 403
    one = shop.office.browser("ada")
    assert one.post(f"{page}/switch-off", form_at=page).headers["Location"] == page
    event_id = shop.post()
    shop.read()
    assert shop.row(event_id).status == "no_rule"
    again = one.post(f"{page}/switch-off", form_at=page)
    assert again.status_code == 409
    assert "is not on" in visit.words(again)
