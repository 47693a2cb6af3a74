"""The rows of one campaign."""

import re

import pytest
import visit
from sqlalchemy import Engine

from console.sends.states import State


def _ids(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'class="address" href="/sends/(\d+)"', page)]


def _next(page: str) -> str | None:
    return page.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&") if 'rel="next"' in page else None


@pytest.mark.parametrize("status", [None, "queued", "sent", "failed", "sending"])
def test_pages_neither_repeat_nor_skip_a_row_while_rows_are_added(engine: Engine, status: str | None) -> None:
    """C09, run B: read page 1 (50 rows), add 10 messages, follow the link."""
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    rows = {office.send(campaign_id=campaign_id, status=status or "sent", email=f"a{n}@example.com") for n in range(60)}
    one = office.browser("sue")
    path = f"/sends/campaign/{campaign_id}" + (f"?status={status}" if status else "")
    first = one.get(path).get_data(as_text=True)
    for number in range(10):
        office.send(campaign_id=campaign_id, status=status or "sent", email=f"late{number}@example.com")
    link = _next(first)
    assert link is not None
    second = one.get(link).get_data(as_text=True)
    assert len(_ids(first)) == 50
    assert not set(_ids(first)) & set(_ids(second))
    assert rows <= set(_ids(first)) | set(_ids(second))


def test_each_state_has_its_own_address_and_shows_its_rows_only(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    rows = {state: office.send(campaign_id=campaign_id, status=state, email=f"{state}@example.com") for state in State}
    one = office.browser("sue")
    for state, row in rows.items():
        page = one.get(f"/sends/campaign/{campaign_id}?status={state}").get_data(as_text=True)
        assert _ids(page) == [row], state
    assert set(_ids(one.get(f"/sends/campaign/{campaign_id}").get_data(as_text=True))) == set(rows.values())


def test_the_filters_carry_the_figures_and_the_state_its_meaning(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    office.send(campaign_id=campaign_id, status="in_doubt", provider_reply="No answer after the final dot")
    shown = visit.words(office.browser("sue").get(f"/sends/campaign/{campaign_id}?status=in_doubt"))
    assert "In doubt 1" in shown
    assert "the mail server may have accepted it or not" in shown
    assert "No answer after the final dot" in shown


def test_another_campaigns_rows_are_not_among_them(engine: Engine) -> None:
    office = visit.office(engine)
    one, other = office.campaign("sending"), office.campaign("sending")
    office.send(campaign_id=other, status="sent")
    shown = office.browser("sue").get(f"/sends/campaign/{one}")
    assert not _ids(shown.get_data(as_text=True))
    assert "This campaign has no messages yet." in visit.words(shown)


def test_an_unknown_state_and_a_damaged_cursor_are_refused_with_words(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    one = office.browser("sue")
    answer = one.get(f"/sends/campaign/{campaign_id}?status=lost")
    assert answer.status_code == 422
    assert "'lost' is no state of a send" in visit.words(answer)
    for status, cursor in (("queued", "yesterday~1"), ("queued", "2027-01-01T00:00:00+00:00~x"), ("failed", "x")):
        answer = one.client.get(f"/sends/campaign/{campaign_id}", query_string={"status": status, "after": cursor})
        assert answer.status_code == 422, cursor


def test_names_that_look_like_html_are_shown_as_text(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending", name="<b>x</b>")
    office.send(campaign_id=campaign_id, status="failed", provider_reply="550 <script>alert(1)</script>")
    page = office.browser("sue").get(f"/sends/campaign/{campaign_id}").get_data(as_text=True)
    assert "<script>alert" not in page
    assert "<b>x" not in page
