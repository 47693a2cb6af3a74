"""Signing out."""

import visit
from sqlalchemy import Engine


def test_signing_out_ends_the_session(engine: Engine) -> None:
    one = visit.office(engine).browser("mia")
    answer = one.post("/accounts/sign-out", form_at="/")
    assert (answer.status_code, answer.location) == (303, "/accounts/sign-in")
    assert "You have signed out, in all browsers." in visit.words(one.get("/accounts/sign-in"))
    assert one.get("/campaigns/").status_code == 303


def test_a_link_can_not_sign_anybody_out(engine: Engine) -> None:
    one = visit.office(engine).browser("mia")
    assert one.get("/accounts/sign-out").status_code == 405
    assert one.client.post("/accounts/sign-out").status_code == 400
    assert one.get("/").status_code == 200


def test_a_copy_of_the_cookie_ends_with_the_sign_out_and_nobody_elses_does(engine: Engine) -> None:
    office = visit.office(engine)
    mia, abe = office.browser("mia"), office.browser("abe")
    thief, phone = visit.Browser(office.app), office.browser("mia")
    kept = mia.client.get_cookie("sendonce")
    assert kept is not None
    thief.client.set_cookie("sendonce", kept.value)
    assert (thief.get("/").status_code, phone.get("/").status_code) == (200, 200)
    mia.post("/accounts/sign-out", form_at="/")
    for one in (thief, phone):
        assert (one.get("/").status_code, one.get("/").location) == (303, "/accounts/sign-in")
    assert abe.get("/").status_code == 200
    assert office.browser("mia").get("/").status_code == 200


def test_a_sign_out_without_a_session_ends_nobodys(engine: Engine) -> None:
    office = visit.office(engine)
    mia, stranger = office.browser("mia"), visit.Browser(office.app)
    assert stranger.post("/accounts/sign-out", form_at="/accounts/sign-in").status_code == 303
    assert mia.get("/").status_code == 200
