"""Campaigns by the API: read only."""

import programs
import visit
from sqlalchemy import Engine


def test_campaigns_are_listed_by_state_and_shown_with_their_figures(engine: Engine) -> None:
    office = visit.office(engine)
    program = programs.program(engine, office.app, office.account_id, scopes=["read"])
    draft, sending = office.campaign(), office.campaign("sending")
    office.send(campaign_id=sending, status="sent")
    listed = program.get("/campaigns").get_json()
    assert [(row["id"], row["status"]) for row in listed["items"]] == [(sending, "sending"), (draft, "draft")]
    assert [row["id"] for row in program.get("/campaigns?status=draft").get_json()["items"]] == [draft]
    shown = program.get(f"/campaigns/{sending}").get_json()
    assert shown["counts"]["sent"] == 1
    assert shown["list_name"] == "News"
    page = program.get("/campaigns?limit=1").get_json()
    assert page["next"] == sending
    assert [row["id"] for row in program.get(f"/campaigns?limit=1&after={sending}").get_json()["items"]] == [draft]


def test_another_accounts_campaigns_are_not_there(engine: Engine) -> None:
    office, other = visit.office(engine), visit.office(engine, slug="other")
    number = office.campaign()
    stranger = programs.program(engine, office.app, other.account_id)
    assert stranger.get(f"/campaigns/{number}").status_code == 404
    assert stranger.get("/campaigns").get_json()["items"] == []
