"""Configuring a provider on the screen."""

import visit
from providers.configure import SECRET_KEY
from sqlalchemy import Engine

from console.db import transaction
from console.providers import store
from console.secrets import unseal


def rows(office: visit.Office) -> list[store.Configured]:
    with transaction(office.engine) as session:
        return store.configured(session, office.account_id)


def test_the_kind_is_asked_for_first(engine: Engine) -> None:
    page = visit.office(engine).browser("ada").get("/providers/new").get_data(as_text=True)
    assert 'href="/providers/new?kind=postmark"' in page
    assert "<form" not in page.partition("<main")[2]


def test_a_provider_is_added(engine: Engine) -> None:
    office = visit.office(engine)
    browser = office.browser("ada")
    fields = {"name": "post", "set_stream": "outbound", "set_timeout_s": "30", "secret": "swordfish-1"}
    answer = browser.post("/providers/new?kind=postmark", fields)
    assert answer.status_code == 303
    [row] = rows(office)
    assert (row.name, row.kind, row.settings["timeout_s"]) == ("post", "postmark", "30")
    assert unseal(SECRET_KEY, row.sealed_secret) == "swordfish-1"
    assert "post Postmark" in visit.words(browser.get(answer.location))


def test_with_htmx_the_browser_is_led_to_the_list(engine: Engine) -> None:
    browser = visit.office(engine).browser("ada")
    answer = browser.post("/providers/new?kind=file", {"name": "outbox"}, headers=visit.HTMX)
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, "/providers/")


def test_what_is_wrong_is_said_beside_its_field_and_no_secret_comes_back(engine: Engine) -> None:
    office = visit.office(engine)
    answer = office.browser("ada").post(
        "/providers/new?kind=smtp", {"name": "relay", "set_host": "not a host", "secret": "swordfish-1"}
    )
    page = answer.get_data(as_text=True)
    assert answer.status_code == 422
    assert 'id="set_host-error"' in page
    assert "not a host" in page
    assert "swordfish" not in page
    assert rows(office) == []


def test_the_address_of_an_api_is_not_on_the_form_and_not_taken_from_it(engine: Engine) -> None:
    office = visit.office(engine)
    browser = office.browser("ada")
    assert "base_url" not in browser.get("/providers/new?kind=resend").get_data(as_text=True)
    browser.post(
        "/providers/new?kind=resend", {"name": "x", "secret": "swordfish-1", "set_base_url": "http://10.0.0.1"}
    )
    assert rows(office)[0].settings["base_url"] == "https://api.resend.com"


def test_only_admins_may(engine: Engine) -> None:
    office = visit.office(engine)
    assert office.browser("oda").post("/providers/new?kind=file", {"name": "x"}, form_at="/").status_code == 403
    assert rows(office) == []
