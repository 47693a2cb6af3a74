"""GET /inbox/endpoints."""

import post
import visit
from sqlalchemy import Engine


def test_endpoints_are_listed_with_what_is_worth_knowing(engine: Engine) -> None:
    shop = post.shop(engine)
    signed = post.endpoint(shop.office, name="billing", scheme="standard_webhooks", secret=post.WEBHOOK_SECRET)
    for _ in range(3):
        post.event(shop.office.app, signed, b"{}")
    shop.post()
    shown = visit.words(shop.office.browser("sue").get("/inbox/endpoints"))
    assert "billing Standard Webhooks (webhook-signature, svix-signature) 0 none yet 3" in shown
    assert "shop None: the secret part of the address is all 1" in shown
    assert "New endpoint" not in shown
    assert "New endpoint" in visit.words(shop.office.browser("ada").get("/inbox/endpoints"))
    assert shop.office.browser("mia").get("/inbox/endpoints").status_code == 403


def test_without_endpoints_it_says_what_one_is(engine: Engine) -> None:
    office = visit.office(engine)
    assert "There is no endpoint yet." in visit.words(office.browser("oda").get("/inbox/endpoints"))
    post.endpoint(visit.office(engine, slug="other", app=office.app), name="theirs")
    assert "theirs" not in visit.words(office.browser("ada").get("/inbox/endpoints"))
