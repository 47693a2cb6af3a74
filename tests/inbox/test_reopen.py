"""POST /inbox/reopen/<endpoint_id>."""

import post
import visit
from sqlalchemy import Engine


def test_an_endpoint_that_is_opened_again_takes_events_at_its_old_address(engine: Engine) -> None:
    office = visit.office(engine)
    made = post.endpoint(office)
    page = f"/inbox/endpoint/{made.endpoint_id}"
    one = office.browser("ada")
    one.post(f"/inbox/close/{made.endpoint_id}", form_at=page)
    assert post.event(office.app, made, b"{}").status_code == 404
    assert office.browser("oda").post(f"/inbox/reopen/{made.endpoint_id}", form_at="/inbox/").status_code == 403
    assert one.post(f"/inbox/reopen/{made.endpoint_id}", form_at=page).headers["Location"] == page
    assert post.event(office.app, made, b"{}").status_code == 200
