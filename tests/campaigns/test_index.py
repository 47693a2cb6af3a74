"""The list of campaigns."""

import visit
from sqlalchemy import Engine


def test_the_list_shows_the_newest_first_with_state_list_and_author(engine: Engine) -> None:
    office = visit.office(engine)
    office.campaign(name="First")
    office.campaign("submitted", name="Second")
    shown = visit.words(office.browser("sue").get("/campaigns/"))
    assert shown.index("Second") < shown.index("First")
    assert "Waits for approval" in shown
    assert "News Mia" in shown


def test_the_list_of_one_state_has_its_own_address(engine: Engine) -> None:
    office = visit.office(engine)
    office.campaign(name="Still a draft")
    office.campaign("paused", name="Held up")
    one = office.browser("mia")
    shown = visit.words(one.get("/campaigns/?status=paused"))
    assert "Held up" in shown
    assert "Still a draft" not in shown
    answer = one.get("/campaigns/?status=lost")
    assert answer.status_code == 422
    assert "'lost' is no state of a campaign" in visit.words(answer)


def test_pages_follow_one_another_without_gap_or_repeat_while_campaigns_are_added(engine: Engine) -> None:
    office = visit.office(engine)
    names = [f"Number {number:03}" for number in range(60)]
    for name in names:
        office.campaign(name=name)
    one = office.browser("mia")
    first = one.get("/campaigns/").get_data(as_text=True)
    office.campaign(name="Latecomer")
    second = one.get(_next(first)).get_data(as_text=True)
    on_first = {name for name in names if name in first}
    on_second = {name for name in names if name in second}
    assert len(on_first) == 50
    assert on_first | on_second == set(names)
    assert not on_first & on_second
    assert "Older campaigns" not in second


def test_a_damaged_cursor_is_refused_with_words(engine: Engine) -> None:
    one = visit.office(engine).browser("mia")
    for cursor in ("x", "9" * 5000, "-1", "9223372036854775808", "1%00", "٣"):
        answer = one.get(f"/campaigns/?before={cursor}")
        assert answer.status_code == 422, cursor


def test_an_empty_list_says_what_to_do_next_to_those_who_may(engine: Engine) -> None:
    office = visit.office(engine)
    assert "Write the first one." in visit.words(office.browser("mia").get("/campaigns/"))
    shown = visit.words(office.browser("sue").get("/campaigns/"))
    assert "Write the first one." not in shown
    assert "A marketer of your account can write one." in shown
    assert "Show all campaigns." in visit.words(office.browser("sue").get("/campaigns/?status=sent"))


def _next(page: str) -> str:
    return page.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
