"""The part of a campaign's page that moves."""

import visit
from sqlalchemy import Engine, event


def test_the_fragment_is_the_same_as_in_the_page_and_goes_on_asking_while_it_moves(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    office.send(campaign_id=campaign_id, status="sent")
    one = office.browser("sue")
    fragment = one.get(f"/campaigns/{campaign_id}/progress", headers=visit.HTMX).get_data(as_text=True)
    page = one.get(f"/campaigns/{campaign_id}").get_data(as_text=True)
    assert "<html" not in fragment
    assert fragment.split("</dl>")[0].strip() in page
    assert f'hx-get="/campaigns/{campaign_id}/progress' in fragment


def test_the_fragment_of_a_finished_campaign_asks_no_more(engine: Engine) -> None:
    office = visit.office(engine)
    fragment = office.browser("sue").get(f"/campaigns/{office.campaign('sent')}/progress").get_data(as_text=True)
    assert "hx-trigger" not in fragment


def test_readers_are_told_only_what_has_changed(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    office.send(campaign_id=campaign_id, status="sent", email="a@example.com")
    office.send(campaign_id=campaign_id, email="b@example.com")
    one = office.browser("sue")
    path = f"/campaigns/{campaign_id}/progress"
    assert 'role="status" id="spoken"' in one.get(f"{path}?said=Sending, 40 % done").get_data(as_text=True)
    assert 'role="status" id="spoken"' not in one.get(f"{path}?said=Sending, 50 % done").get_data(as_text=True)


def test_the_fragment_takes_few_queries_and_none_that_reads_the_ledger(engine: Engine) -> None:
    office = visit.office(engine)
    campaign_id = office.campaign("sending")
    one = office.browser("sue")
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    one.get(f"/campaigns/{campaign_id}/progress", headers=visit.HTMX)
    assert len(statements) <= 4, statements
    assert not [statement for statement in statements if "sends" in statement]
