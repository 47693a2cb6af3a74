"""Revoking an API key on screen."""

import visit
from sqlalchemy import Engine, text

from console.accounts import keys
from console.accounts.keys import NewKey
from console.db import transaction


def _made(engine: Engine, account_id: int) -> NewKey:
    with transaction(engine) as session:
        return keys.add_key(session, account_id, scopes=["send"], name="the shop")


def test_a_key_is_revoked_after_the_page_has_asked(engine: Engine) -> None:
    office = visit.office(engine)
    made = _made(engine, office.account_id)
    one = office.browser("ada")
    path = f"/accounts/api-keys/{made.id}/revoke"
    assert "the shop" in visit.words(one.get(path))
    with transaction(engine) as session:
        assert keys.key_holder(session, made.text) is not None
    answer = one.post(path)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/accounts/api-keys")
    with transaction(engine) as session:
        assert keys.key_holder(session, made.text) is None
        who = session.execute(text("SELECT user_id FROM audit_entries WHERE action = 'api_key.revoke'")).scalar_one()
    assert who == office.users["ada"]
    assert "Revoked" in visit.words(one.get("/accounts/api-keys"))
    assert "is revoked" in visit.words(one.get(path))


def test_htmx_is_led_back_to_the_list(engine: Engine) -> None:
    office = visit.office(engine)
    made = _made(engine, office.account_id)
    answer = office.browser("ada").post(f"/accounts/api-keys/{made.id}/revoke", headers=visit.HTMX)
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, "/accounts/api-keys")


def test_a_second_revocation_says_that_somebody_was_faster(engine: Engine) -> None:
    office = visit.office(engine)
    made = _made(engine, office.account_id)
    one = office.browser("ada")
    fields = one.hidden(f"/accounts/api-keys/{made.id}/revoke")
    for status in (303, 409):
        assert one.client.post(f"/accounts/api-keys/{made.id}/revoke", data=fields).status_code == status


def test_only_admins_of_the_account_revoke(engine: Engine) -> None:
    office, other = visit.office(engine), visit.office(engine, slug="other")
    made = _made(engine, office.account_id)
    path = f"/accounts/api-keys/{made.id}/revoke"
    assert office.browser("oda").get(path).status_code == 403
    assert other.browser("ada").get(path).status_code == 404
    assert other.browser("ada").post(path, form_at="/accounts/new-api-key").status_code == 404
    with transaction(engine) as session:
        assert keys.key_holder(session, made.text) is not None
