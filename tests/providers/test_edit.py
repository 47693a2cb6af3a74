"""Changing a provider on the screen."""

import visit
from providers.configure import SECRET_KEY, provider
from providers.test_new import rows
from sqlalchemy import Engine

from console.secrets import unseal


def test_the_form_shows_the_settings_and_never_the_secret(engine: Engine) -> None:
    office = visit.office(engine)
    made = provider(engine, office.account_id, kind="smtp", settings={"host": "mail.example.com", "user": "ann"})
    page = office.browser("ada").get(f"/providers/{made}/edit").get_data(as_text=True)
    assert 'value="mail.example.com"' in page
    assert "swordfish" not in page
    assert rows(office)[0].sealed_secret not in page


def test_a_change_is_saved_and_an_empty_secret_keeps_the_old_one(engine: Engine) -> None:
    office = visit.office(engine)
    made = provider(engine, office.account_id)
    answer = office.browser("ada").post(f"/providers/{made}/edit", {"set_timeout_s": "9", "secret": ""})
    assert answer.status_code == 303
    [row] = rows(office)
    assert row.settings["timeout_s"] == "9"
    assert unseal(SECRET_KEY, row.sealed_secret) == "swordfish-1"


def test_another_host_wants_the_password_again_beside_its_field(engine: Engine) -> None:
    office = visit.office(engine)
    made = provider(engine, office.account_id, kind="smtp", settings={"host": "mail.example.com", "user": "ann"})
    fields = {"set_host": "evil.example.com", "set_port": "587", "set_tls": "require", "set_verify": "yes"}
    answer = office.browser("ada").post(f"/providers/{made}/edit", {**fields, "set_user": "ann"})
    assert answer.status_code == 422
    assert 'id="secret-error"' in answer.get_data(as_text=True)


def test_a_page_that_is_out_of_date_changes_nothing(engine: Engine) -> None:
    office = visit.office(engine)
    made = provider(engine, office.account_id)
    browser = office.browser("ada")
    browser.post(f"/providers/{made}/edit", {"set_timeout_s": "9"})
    answer = browser.post(f"/providers/{made}/edit", {"set_timeout_s": "10", "version": "1"})
    assert answer.status_code == 409
    assert rows(office)[0].settings["timeout_s"] == "9"


def test_another_accounts_provider_is_not_there(engine: Engine) -> None:
    office = visit.office(engine)
    theirs = provider(engine, visit.office(engine, slug="other", app=office.app).account_id)
    browser = office.browser("ada")
    assert browser.get(f"/providers/{theirs}/edit").status_code == 404
    assert browser.post(f"/providers/{theirs}/check", form_at="/providers/").status_code == 404
    assert office.browser("oda").get(f"/providers/{theirs}/edit").status_code == 403
