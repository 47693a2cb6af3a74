"""The list of providers and routes."""

import visit
from providers.configure import provider
from sqlalchemy import Engine, text

from console.db import transaction


def _broken(engine: Engine, name: str, error: str) -> None:
    with transaction(engine) as session:
        session.execute(
            text("INSERT INTO provider_states (name, breaker, failure_count, error) VALUES (:name, 'open', 3, :error)"),
            {"name": name, "error": error},
        )


def test_an_admin_sees_providers_and_routes_and_no_secret(engine: Engine) -> None:
    office = visit.office(engine)
    provider(engine, office.account_id, name="main")
    provider(engine, visit.office(engine, slug="other", app=office.app).account_id, name="theirs")
    answer = office.browser("ada").get("/providers/")
    words = visit.words(answer)
    assert "main Resend" in words
    assert "smtp SMTP server, the installation's own" in words
    assert "default smtp" in words
    assert "theirs" not in words
    assert "swordfish" not in answer.get_data(as_text=True)


def test_trouble_is_shown_to_those_whose_it_is(engine: Engine) -> None:
    office = visit.office(engine)
    other = visit.office(engine, slug="other", app=office.app)
    provider(engine, office.account_id, name="main")
    provider(engine, other.account_id, name="main")
    _broken(engine, f"{office.account_id}/main", "HTTP 401: no such key")
    _broken(engine, "smtp", "connection refused")
    ours, theirs = (visit.words(each.browser("ada").get("/providers/")) for each in (office, other))
    assert "HTTP 401: no such key" in ours
    assert "HTTP 401: no such key" not in theirs
    assert "connection refused" in ours
    assert "connection refused" in theirs
    for path in ("/",):
        assert "401" not in visit.words(other.browser("ada").get(path))


def test_nobody_else_sees_them(engine: Engine) -> None:
    office = visit.office(engine)
    for name in ("mia", "abe", "sue", "oda"):
        browser = office.browser(name)
        assert browser.get("/providers/").status_code == 403
        assert 'href="/providers/"' not in browser.get("/").get_data(as_text=True)
    assert 'href="/providers/"' in office.browser("ada").get("/").get_data(as_text=True)
