"""Signing in: who gets in, where they land, what strangers learn, and how often they may try."""

import re

import make
import pytest
import visit
from sqlalchemy import Engine, text

from console import clock
from console.db import transaction
from console.web.guards import safe_next


def test_a_person_signs_in_and_lands_on_the_page_that_was_asked_for(engine: Engine) -> None:
    one = visit.Browser(visit.office(engine).app)
    asked = one.get("/campaigns/?status=sent")
    assert asked.status_code == 303
    answer = one.sign_in(path=asked.location)
    assert (answer.status_code, answer.location) == (303, "/campaigns/?status=sent")
    assert one.get("/campaigns/?status=sent").status_code == 200


@pytest.mark.parametrize("field", ["account", "email", "password"])
def test_what_was_wrong_is_told_in_the_same_words_whatever_it_was(engine: Engine, field: str) -> None:
    one = visit.Browser(visit.office(engine).app)
    answer = one.sign_in(**{field: "nobody@example.com"})
    assert answer.status_code == 422
    assert "Account, address and password don't fit together." in visit.words(answer)
    assert one.get("/").status_code == 303


def test_an_empty_form_names_each_field(engine: Engine) -> None:
    answer = visit.Browser(visit.office(engine).app).sign_in(account="", email="", password="")
    assert answer.status_code == 422
    shown = visit.words(answer)
    assert "Fill in the account's name." in shown
    assert "Fill in your e-mail address." in shown
    assert "Fill in your password." in shown
    assert 'aria-describedby="email-error"' in answer.get_data(as_text=True)


def test_somebody_who_was_made_inactive_is_out_at_once_and_gets_in_no_more(engine: Engine) -> None:
    office = visit.office(engine)
    one = office.browser("mia")
    with transaction(engine) as session:
        session.execute(text("UPDATE users SET is_active = false"))
    assert one.get("/").status_code == 303
    assert visit.Browser(office.app).sign_in().status_code == 422


def test_a_new_password_ends_the_sessions_that_the_old_one_began(engine: Engine) -> None:
    one = visit.office(engine).browser("mia")
    assert one.get("/").status_code == 200
    with transaction(engine) as session:
        session.execute(text("UPDATE users SET password_hash = password_hash || 'x'"))
    assert one.get("/").status_code == 303


def test_a_session_ends_12_hours_after_its_sign_in_however_much_it_is_used(engine: Engine) -> None:
    one = visit.office(engine).browser("mia")
    for hours, status in ((11.9, 200), (12.1, 303)):
        with one.client.session_transaction() as session:
            session["signed_in_at"] = int(clock.now().timestamp() - hours * 3600)
        assert one.get("/").status_code == status, hours


def test_looking_at_pages_does_not_make_a_session_younger(engine: Engine) -> None:
    one = visit.office(engine).browser("mia")
    moment = int(clock.now().timestamp() - 3600)
    with one.client.session_transaction() as session:
        session["signed_in_at"] = moment
    assert one.get("/").status_code == 200
    with one.client.session_transaction() as session:
        assert session["signed_in_at"] == moment


def test_a_session_that_does_not_say_when_it_began_is_over(engine: Engine) -> None:
    one = visit.office(engine).browser("mia")
    with one.client.session_transaction() as session:
        del session["signed_in_at"]
    assert one.get("/").status_code == 303


def test_the_only_account_need_not_be_typed_but_one_of_several_must(engine: Engine) -> None:
    office = visit.office(engine)
    assert 'value="acme"' in visit.Browser(office.app).get("/accounts/sign-in").get_data(as_text=True)
    with transaction(engine) as session:
        make.account(session, "other")
    assert 'value="acme"' not in visit.Browser(office.app).get("/accounts/sign-in").get_data(as_text=True)


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "/\t/evil.example",
        "/\n//evil.example",
        "javascript:alert(1)",
        "///evil.example",
        "/.//evil.example",
        "/..//evil.example",
        " https://evil.example",
        "",
    ],
)
def test_the_way_after_signing_in_never_leads_to_another_site(engine: Engine, target: str) -> None:
    app = visit.office(engine).app
    with app.test_request_context("/"):
        assert safe_next(target) == "/"
        assert safe_next("/campaigns/7?after=3") == "/campaigns/7?after=3"
    answer = visit.Browser(app).client.get("/accounts/sign-in", query_string={"next": target})
    assert answer.status_code == 200
    one = visit.Browser(app)
    fields = {**one.hidden("/accounts/sign-in"), "account": "acme", "email": "mia@example.com"}
    signed_in = one.client.post(
        "/accounts/sign-in", query_string={"next": target}, data={**fields, "password": make.PASSWORD}
    )
    assert (signed_in.status_code, signed_in.location) == (303, "/")


def test_the_sixth_wrong_password_of_one_person_is_not_even_looked_at(engine: Engine) -> None:
    office = visit.office(engine)
    one = visit.Browser(office.app)
    assert [one.sign_in(password="wrong").status_code for _ in range(5)] == [422] * 5
    answer = one.sign_in()
    assert answer.status_code == 429
    assert "Wait 5 minutes and try again" in visit.words(answer)
    assert int(answer.headers["Retry-After"]) > 0
    assert one.sign_in(email="abe@example.com").status_code == 303, "another person is not kept out"


@pytest.mark.parametrize(
    "spelling",
    [
        {"account": "acme "},
        {"account": " ACME"},
        {"email": "MIA@Example.com"},
        {"email": "\u200bmia@example.com"},
        {"email": "\u200b" * 300 + "mia@example.com"},
        {"email": " " * 400 + "mia@example.com"},
        {"account": " " * 200 + "acme"},
    ],
    ids=[
        "blank after",
        "case of the account",
        "case of the address",
        "invisible",
        "many invisible",
        "blanks",
        "blanks before",
    ],
)
def test_a_person_is_locked_however_account_and_address_are_spelt(engine: Engine, spelling: dict) -> None:
    one = visit.Browser(visit.office(engine).app)
    assert [one.sign_in(password="wrong").status_code for _ in range(5)] == [422] * 5
    assert one.sign_in(**spelling).status_code == 429


def test_other_spellings_use_up_the_same_tries(engine: Engine) -> None:
    one = visit.Browser(visit.office(engine).app)
    spellings = [
        {"account": "acme" + " " * number, "email": "\u200b" * number + "mia@example.com"} for number in range(5)
    ]
    assert [one.sign_in(**spelling, password="wrong").status_code for spelling in spellings] == [422] * 5
    assert one.sign_in().status_code == 429


def _spray(office: visit.Office, *, machine: str, proxy: str = "127.0.0.1") -> list[int]:
    """Tries 60 people from one machine behind a proxy; gives the statuses."""
    one = visit.Browser(office.app)
    way = {"headers": {"X-Forwarded-For": machine}, "environ_base": {"REMOTE_ADDR": proxy}}
    return [one.sign_in(email=f"guess{number}@example.com", account="", **way).status_code for number in range(60)]


def test_one_machine_that_tries_many_people_is_stopped_before_the_password_is_looked_at(engine: Engine) -> None:
    office = visit.office(engine)
    assert _spray(office, machine="") == [422] * 60
    answer = visit.Browser(office.app).sign_in()
    assert answer.status_code == 429, "with the right password too: it may be the one that the spraying found"
    assert "Wait 5 minutes and try again" in visit.words(answer)
    assert int(answer.headers["Retry-After"]) > 0


def test_a_machine_behind_a_trusted_proxy_locks_out_itself_and_nobody_else(engine: Engine) -> None:
    office = visit.office(engine, trusted_proxies=1)
    assert _spray(office, machine="203.0.113.7") == [422] * 60
    one = visit.Browser(office.app)
    assert one.sign_in(headers={"X-Forwarded-For": "203.0.113.7"}).status_code == 429
    assert one.sign_in(headers={"X-Forwarded-For": "203.0.113.8"}).status_code == 303


def test_what_a_client_itself_says_about_its_address_counts_for_nothing(engine: Engine) -> None:
    office = visit.office(engine, trusted_proxies=1)
    assert _spray(office, machine="198.51.100.1, 203.0.113.7") == [422] * 60
    forged = {"X-Forwarded-For": "198.51.100.2, 203.0.113.7"}
    assert visit.Browser(office.app).sign_in(headers=forged).status_code == 429


def test_without_trusted_proxies_the_header_counts_for_nothing(engine: Engine) -> None:
    office = visit.office(engine)
    assert _spray(office, machine="203.0.113.7") == [422] * 60
    assert visit.Browser(office.app).sign_in(headers={"X-Forwarded-For": "203.0.113.8"}).status_code == 429


def test_signing_in_well_uses_up_no_tries(engine: Engine) -> None:
    office = visit.office(engine)
    assert {visit.Browser(office.app).sign_in().status_code for _ in range(7)} == {303}


def test_the_session_of_a_sign_in_is_a_new_one(engine: Engine) -> None:
    one = visit.Browser(visit.office(engine).app)
    before = one.hidden("/accounts/sign-in")["csrf_token"]
    one.sign_in()
    page = one.get("/").get_data(as_text=True)
    assert before not in page
    with one.client.session_transaction() as session:
        assert re.fullmatch(r"\d+:\d+:[0-9a-f]{16}", session["_user_id"])
        assert "next" not in session
