"""Rules of accounts and people: passwords, and what a stranger can learn from how long a sign-in takes."""

import time

import make
import pytest
from sqlalchemy import Engine, text

from console.accounts import passwords, service, store
from console.db import transaction
from console.errors import Conflict, InvalidInput


def test_an_account_brings_the_message_type_of_its_campaigns(engine: Engine) -> None:
    with transaction(engine) as session:
        account = service.add_account(session, "acme", name="Acme Ltd")
        types = session.execute(text("SELECT account_id, name, lane, in_doubt_policy FROM message_types")).all()
    assert [tuple(row) for row in types] == [(account.id, "campaign", "bulk", "hold")]


@pytest.mark.parametrize("slug", ["", "A", "a b", "-a", "a-", "ä", "a" * 64, "a\n"])
def test_a_slug_is_what_fits_into_commands_and_addresses(engine: Engine, slug: str) -> None:
    with transaction(engine) as session, pytest.raises(InvalidInput):
        service.add_account(session, slug)


def test_one_address_is_one_user_of_an_account_in_whatever_case(engine: Engine) -> None:
    with transaction(engine) as session:
        account_id, other_id = make.account(session), make.account(session, "other")
        values = {"name": "", "roles": ["admin", "marketer"], "password": "long password"}
        user = service.add_user(session, account_id, email="Mia@Example.com", **values)
        assert (user.name, user.roles) == ("Mia", ["marketer", "admin"])
        with pytest.raises(Conflict):
            service.add_user(session, account_id, email="mia@example.com", **values)
        service.add_user(session, other_id, email="mia@example.com", **values)
        assert store.user_by_email(session, account_id, "MIA@example.com").id == user.id


def test_a_sign_in_is_written_down_and_a_cheap_hash_is_renewed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with transaction(engine) as session:
        account_id = make.account(session)
        values = {"name": "", "roles": ["admin"], "password": "long password"}
        before = service.add_user(session, account_id, email="mia@example.com", **values).password_hash
    dearer = passwords.PasswordHasher(time_cost=3, memory_cost=19 * 1024, parallelism=1)
    monkeypatch.setattr(passwords, "_HASHER", dearer)
    with transaction(engine) as session:
        user = service.authenticate(session, slug="acme", email="mia@example.com", password="long password")
        assert user is not None
    with transaction(engine) as session:
        after = store.user_by_email(session, account_id, "mia@example.com")
        assert after.signed_in_at is not None
        assert after.password_hash != before
        assert passwords.is_right("long password", after.password_hash)


def test_a_sign_in_takes_as_long_for_nobody_as_for_somebody(engine: Engine) -> None:
    with transaction(engine) as session:
        account_id = make.account(session)
        make.user(session, account_id, email="mia@example.com", roles=("admin",))
        service.add_user(
            session, account_id, email="max@example.com", name="", roles=["admin"], password="long password"
        )

    def took_s(slug: str, email: str) -> float:
        times = []
        for _ in range(7):
            with transaction(engine) as session:
                began = time.process_time()
                assert service.authenticate(session, slug=slug, email=email, password="wrong password") is None
                times.append(time.process_time() - began)
        return min(times)

    somebody_s = took_s("acme", "max@example.com")
    for slug, email in [("acme", "nobody@example.com"), ("nowhere", "max@example.com"), ("acme", "no address")]:
        assert took_s(slug, email) > somebody_s * 0.5


def test_generated_passwords_differ_and_are_long_enough() -> None:
    made = {passwords.generate() for _ in range(100)}
    assert len(made) == 100
    assert all(len(password) == 20 for password in made)
