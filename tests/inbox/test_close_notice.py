"""POST /inbox/close-notice/<notice_id>."""

import post
import visit
from sqlalchemy import Engine


def test_a_closed_notice_is_gone_and_comes_again_when_the_same_is_noticed_again(engine: Engine) -> None:
    shop = post.shop(engine)
    other = post.endpoint(shop.office, name="old-shop")
    for made in (shop.made, other):
        shop.post(made=made)
    shop.read()
    one = shop.office.browser("oda")
    [(notice_id,)] = post.rows(shop.office, "SELECT id FROM inbox_notices")
    path = f"/inbox/close-notice/{notice_id}"
    assert shop.office.browser("sue").post(path, form_at="/inbox/").status_code == 403
    stranger = visit.office(engine, slug="other", app=shop.office.app)
    post.endpoint(stranger)
    stranger.browser("oda").post(path, form_at="/sends/dead-letters")
    assert "Duplicate subscription?" in visit.words(one.get("/inbox/"))
    assert one.post(path, form_at="/inbox/").headers["Location"] == "/inbox/"
    assert "Duplicate subscription?" not in visit.words(one.get("/inbox/"))
    [(closed_by,)] = post.rows(shop.office, "SELECT closed_by FROM inbox_notices")
    assert closed_by == shop.office.users["oda"]
    for made in (shop.made, other):
        shop.post(id="evt_2", made=made)
    shop.read()
    assert "Duplicate subscription?" in visit.words(one.get("/inbox/"))
