"""GET and POST /inbox/renew/<endpoint_id>: a new address, shown once."""

import re

import post
import visit
from sqlalchemy import Engine


def test_the_new_address_takes_events_and_the_old_one_none(engine: Engine) -> None:
    office = visit.office(engine)
    made = post.endpoint(office)
    path = f"/inbox/renew/{made.endpoint_id}"
    one = office.browser("ada")
    assert "New address for shop?" in visit.words(one.get(path))
    assert post.event(office.app, made, b"{}").status_code == 200
    found = re.search(r"http://localhost(/inbox/shop/[A-Za-z0-9_-]{43})<", one.post(path).get_data(as_text=True))
    assert found is not None
    assert made.token not in found[1]
    assert post.event(office.app, made, b"{}").status_code == 404
    assert office.app.test_client().post(found[1], data=b"{}").status_code == 200


def test_only_admins_of_the_account_renew_it(engine: Engine) -> None:
    office = visit.office(engine)
    path = f"/inbox/renew/{post.endpoint(office).endpoint_id}"
    assert office.browser("oda").post(path, form_at="/inbox/").status_code == 403
    assert visit.office(engine, slug="other", app=office.app).browser("ada").get(path).status_code == 404
