"""POST /inbox/close/<endpoint_id>."""

import post
import visit
from sqlalchemy import Engine


def test_a_closed_endpoint_takes_nothing_and_says_so_to_its_people(engine: Engine) -> None:
    office = visit.office(engine)
    made = post.endpoint(office)
    page, path = f"/inbox/endpoint/{made.endpoint_id}", f"/inbox/close/{made.endpoint_id}"
    assert office.browser("oda").post(path, form_at="/inbox/").status_code == 403
    assert post.event(office.app, made, b"{}").status_code == 200
    one = office.browser("ada")
    assert one.post(path, form_at=page).headers["Location"] == page
    assert post.event(office.app, made, b"{}").status_code == 404
    assert "It is closed." in visit.words(one.get(page))
    assert post.rows(office, "SELECT action FROM audit_entries ORDER BY id DESC LIMIT 1") == [("inbox.endpoint.close",)]
