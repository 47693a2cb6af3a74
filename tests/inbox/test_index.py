"""GET /inbox/: events with their filters, paging and notices."""

import re

import post
import pytest
import visit
from sqlalchemy import Engine, text

from console.db import transaction


@pytest.fixture
def shop(engine: Engine) -> post.Shop:
    return post.shop(engine)


def _listed(answer) -> list[int]:
    return [int(number) for number in re.findall(r'name="event_id" value="(\d+)"', answer.get_data(as_text=True))]


def test_events_are_listed_with_what_was_done_newest_first(shop: post.Shop) -> None:
    done, no_rule, failed = shop.post(), shop.post(id="evt_2", type="order.lost"), shop.post(id="evt_3", data={})
    shop.post()
    shop.read()
    waiting = shop.post(id="evt_4")
    one = shop.office.browser("sue")
    page = one.get("/inbox/")
    assert page.status_code == 200
    assert _listed(page) == [waiting, failed, no_rule, done]
    shown = visit.words(page)
    for words in (
        "2 times, last",
        "No rule that is on is for events of the type order.lost",
        "nothing at $.data",
        "by receipt",
    ):
        assert words in shown
    assert f'href="/sends/{shop.row(done).send_id}"' in page.get_data(as_text=True)
    for status, event_id in (("stored", waiting), ("done", done), ("no_rule", no_rule), ("failed", failed)):
        assert _listed(one.get(f"/inbox/?status={status}")) == [event_id]
    assert "Failed 1" in shown
    assert "Waiting 1" in shown
    assert "No rule 1" in shown


def test_events_of_one_endpoint_alone(shop: post.Shop) -> None:
    other = post.endpoint(shop.office, name="billing")
    mine, others = shop.post(), shop.post(id="evt_2", made=other)
    one = shop.office.browser("oda")
    assert _listed(one.get(f"/inbox/?of={other.endpoint_id}")) == [others]
    assert _listed(one.get(f"/inbox/?of={shop.made.endpoint_id}&status=stored")) == [mine]


def test_the_pages_of_a_filter_hold_every_event_once(shop: post.Shop) -> None:
    wanted = [shop.post(id=f"evt_{number}", data={}) for number in range(60)]
    shop.post(id="other", type="x")
    shop.read()
    one = shop.office.browser("sue")
    first = one.get("/inbox/?status=failed")
    link = re.search(r'rel="next" href="([^"]*)"', first.get_data(as_text=True))
    assert link is not None
    second = one.get(link[1].replace("&amp;", "&"))
    assert _listed(first) + _listed(second) == wanted[::-1]
    assert "First page" in visit.words(second)


def test_a_notice_stands_above_until_somebody_closes_it(shop: post.Shop) -> None:
    other = post.endpoint(shop.office, name="old-shop")
    for made in (shop.made, other):
        shop.post(made=made)
    shop.read()
    shown = visit.words(shop.office.browser("sue").get("/inbox/"))
    assert "Duplicate subscription? The endpoints shop and old-shop got the same event id" in shown
    assert "Close this notice" not in shown
    assert "Close this notice" in visit.words(shop.office.browser("oda").get("/inbox/"))


def test_what_strangers_wrote_is_text_and_no_markup(shop: post.Shop) -> None:
    shop.post({"id": "<script>alert(1)</script>", "type": "<b>x</b>"})
    shop.read()
    page = shop.office.browser("sue").get("/inbox/").get_data(as_text=True)
    assert "<script>alert(1)</script>" not in page
    assert "<b>x</b>" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_an_empty_inbox_says_what_to_do(engine: Engine) -> None:
    office = visit.office(engine)
    assert "Make the first endpoint." in visit.words(office.browser("ada").get("/inbox/"))
    assert "An admin of your account can make an endpoint." in visit.words(office.browser("sue").get("/inbox/"))
    post.endpoint(office)
    assert "No event has come yet." in visit.words(office.browser("sue").get("/inbox/"))


@pytest.mark.parametrize("query", ["status=lost", "of=x", "before=-1", "before=9999999999999999999999"])
def test_a_filter_that_is_none_is_refused_with_words(engine: Engine, query: str) -> None:
    assert visit.office(engine).browser("sue").get(f"/inbox/?{query}").status_code == 422


def test_marketers_and_strangers_see_nothing(shop: post.Shop) -> None:
    shop.post()
    for name in ("mia", "abe"):
        answer = shop.office.browser(name).get("/inbox/")
        assert answer.status_code == 403
        assert "evt_1" not in answer.get_data(as_text=True)
    assert visit.Browser(shop.office.app).get("/inbox/").status_code == 303
    other = visit.office(shop.engine, slug="other", app=shop.office.app)
    assert _listed(other.browser("ada").get("/inbox/")) == []


def test_providers_reports_stand_apart_from_applications_events(shop: post.Shop) -> None:
    reports = post.endpoint(shop.office, name="reports-of-1")
    mine, theirs = shop.post(), shop.post(id="told_1", made=reports)
    with transaction(shop.engine) as session:
        session.execute(text("UPDATE inbox_endpoints SET reader = 'reports' WHERE name = 'reports-of-1'"))
        session.execute(text("UPDATE inbox_queue SET reader = 'reports' WHERE event_id = :id"), {"id": theirs})
    one = shop.office.browser("sue")
    for query in ("", "status=stored&"):
        assert _listed(one.get(f"/inbox/?{query}")) == [mine]
        assert _listed(one.get(f"/inbox/?{query}reports=1")) == [theirs]
    assert "Waiting 1" in visit.words(one.get("/inbox/"))
    assert f"reports to {reports.name}" in visit.words(one.get(f"/inbox/{theirs}"))
    assert one.get(f"/inbox/endpoint/{reports.endpoint_id}").status_code == 404
