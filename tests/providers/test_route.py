"""Setting a route on the screen."""

import visit
from providers.configure import provider
from sqlalchemy import Engine

from console.db import transaction
from console.providers import store


def test_a_route_is_set_and_shown_and_changed(engine: Engine) -> None:
    office = visit.office(engine)
    provider(engine, office.account_id)
    browser = office.browser("ada")
    answer = browser.post("/providers/route", {"name": "codes", "providers": "main, smtp"})
    assert answer.status_code == 303
    assert "codes main, then smtp" in visit.words(browser.get(answer.location))
    assert 'value="main, smtp"' in browser.get("/providers/route?name=codes").get_data(as_text=True)
    browser.post("/providers/route", {"name": "codes", "providers": "smtp"})
    with transaction(engine) as session:
        assert store.route(session, office.account_id, "codes") == ("smtp",)


def test_what_is_wrong_is_said_beside_its_field(engine: Engine) -> None:
    answer = visit.office(engine).browser("ada").post("/providers/route", {"name": "codes", "providers": "nobody"})
    assert answer.status_code == 422
    assert 'id="providers-error"' in answer.get_data(as_text=True)


def test_only_admins_may(engine: Engine) -> None:
    office = visit.office(engine)
    answer = office.browser("mia").post("/providers/route", {"name": "default", "providers": "smtp"}, form_at="/")
    assert answer.status_code == 403
