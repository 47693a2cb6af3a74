"""The HTML part in its frame."""

import visit
from sqlalchemy import Engine, text

from console.db import transaction


def test_the_message_is_filled_for_the_first_person_of_the_list(engine: Engine) -> None:
    office = visit.office(engine)
    answer = office.browser("abe").get(f"/campaigns/{office.campaign()}/message")
    assert "<p>Hello <b>Rita</b></p>" in answer.get_data(as_text=True)


def test_a_message_can_run_nothing_load_nothing_and_be_framed_only_by_us(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign()
    with transaction(engine) as session:
        session.execute(text("UPDATE campaign_contents SET html = '<script>steal()</script><p>x</p>'"))
    headers = office.browser("abe").get(f"/campaigns/{campaign_id}/message").headers
    policy = [part.strip() for part in headers["Content-Security-Policy"].split(";")]
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert "frame-ancestors 'self'" in policy
    assert not [part for part in policy if part.startswith(("script-src", "connect-src", "form-action 'self'"))]
    assert headers["X-Frame-Options"] == "SAMEORIGIN"


def test_the_frame_on_the_page_is_a_sandbox(engine: Engine) -> None:
    office = visit.office(engine)
    page = office.browser("abe").get(f"/campaigns/{office.campaign()}").get_data(as_text=True)
    frame = page.split("<iframe")[1].split(">")[0]
    assert " sandbox " in frame
    assert "allow-" not in frame
