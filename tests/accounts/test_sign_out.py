"""Signing out."""

import visit
from sqlalchemy import Engine


def test_signing_out_ends_the_session(engine: Engine) -> None:
    one = visit.office(engine).browser("mia")
    answer = one.post("/accounts/sign-out", form_at="/")
    assert (answer.status_code, answer.location) == (303, "/accounts/sign-in")
    assert "You have signed out." in visit.words(one.get("/accounts/sign-in"))
    assert one.get("/campaigns/").status_code == 303


def test_a_link_can_not_sign_anybody_out(engine: Engine) -> None:
    one = visit.office(engine).browser("mia")
    assert one.get("/accounts/sign-out").status_code == 405
    assert one.client.post("/accounts/sign-out").status_code == 400
    assert one.get("/").status_code == 200
