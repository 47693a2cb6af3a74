"""The part of the first page that moves."""

import visit
from sqlalchemy import Engine


def test_the_fragment_is_the_same_as_in_the_page(engine: Engine) -> None:
    office = visit.office(engine)
    office.send(campaign_id=office.campaign("sending"), status="sent")
    one = office.browser("sue")
    fragment = one.get("/today/progress", headers=visit.HTMX).get_data(as_text=True)
    assert "<html" not in fragment
    assert fragment.split("</section>")[0].strip() in one.get("/").get_data(as_text=True)


def test_it_asks_again_soon_while_something_is_sent_and_seldom_otherwise(engine: Engine) -> None:
    office = visit.office(engine)
    one = office.browser("sue")
    assert 'hx-trigger="every 10s"' in one.get("/today/progress").get_data(as_text=True)
    office.campaign("sending")
    assert 'hx-trigger="every 2s"' in one.get("/today/progress").get_data(as_text=True)
