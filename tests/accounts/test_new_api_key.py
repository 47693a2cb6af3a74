"""Making an API key on screen: shown once, to admins only."""

import re

import visit
from sqlalchemy import Engine, text

from console.accounts import keys
from console.db import transaction

FIELDS = {"name": "the shop", "scopes": ["send", "read"], "calls_per_minute": "600"}


def _key_on(page: str) -> str:
    found = re.search(r"so_\d+_[A-Za-z0-9_-]{43}", page)
    assert found, page
    return found[0]


def test_a_new_key_is_shown_once_and_works(engine: Engine) -> None:
    office = visit.office(engine)
    one = office.browser("ada")
    answer = one.post("/accounts/new-api-key", FIELDS)
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    key = _key_on(answer.get_data(as_text=True))
    with transaction(engine) as session:
        held = keys.key_holder(session, key)
    assert held is not None
    assert (held.account_id, held.scopes, held.calls_per_minute) == (office.account_id, {"send", "read"}, 600)
    for path in ("/accounts/api-keys", "/accounts/new-api-key", "/"):
        assert key not in one.get(path).get_data(as_text=True)
    assert key not in str(answer.headers)


def test_who_made_it_stands_in_the_audit_log(engine: Engine) -> None:
    office = visit.office(engine)
    office.browser("ada").post("/accounts/new-api-key", FIELDS)
    with engine.connect() as connection:
        row = connection.execute(
            text("SELECT user_id, details->>'name' FROM audit_entries WHERE action = 'api_key.add'")
        ).one()
    assert tuple(row) == (office.users["ada"], "the shop")


def test_only_admins_make_keys(engine: Engine) -> None:
    office = visit.office(engine)
    for name in ("mia", "abe", "sue", "oda"):
        assert office.browser(name).get("/accounts/new-api-key").status_code == 403
        assert office.browser(name).post("/accounts/new-api-key", FIELDS, form_at="/campaigns/").status_code == 403
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM api_keys")).scalar_one() == 0


def test_what_is_missing_or_wrong_is_told_at_its_field(engine: Engine) -> None:
    one = visit.office(engine).browser("ada")
    answer = one.post("/accounts/new-api-key", {"name": "", "calls_per_minute": "many"})
    assert answer.status_code == 422
    words = visit.words(answer)
    assert "Say what the key is for" in words
    assert "Choose what the key may do" in words
    forged = one.post("/accounts/new-api-key", {**FIELDS, "scopes": ["send", "all"]})
    assert forged.status_code == 422


def test_a_form_of_another_site_makes_no_key(engine: Engine) -> None:
    answer = visit.office(engine).browser("ada").client.post("/accounts/new-api-key", data=FIELDS)
    assert answer.status_code == 400
