"""API keys: made, known again, revoked; the list for admins, and what is kept of them."""

import json
import os
import re
import subprocess
import sys

import pytest
import visit
from sqlalchemy import Engine, text

from console.accounts import key_store, keys
from console.accounts.keys import NewKey
from console.db import transaction
from console.errors import Conflict, InvalidInput, NotFound


def _made(engine: Engine, account_id: int, **columns) -> NewKey:
    with transaction(engine) as session:
        return keys.add_key(session, account_id, **{"scopes": ["send"], **columns})


def _holder(engine: Engine, presented: str) -> key_store.KeyHolder | None:
    with transaction(engine) as session:
        return keys.key_holder(session, presented)


def test_a_key_is_known_again_with_its_account_and_scopes(engine: Engine) -> None:
    office = visit.office(engine)
    made = _made(engine, office.account_id, scopes=["read", "send"], calls_per_minute=7)
    assert re.fullmatch(rf"so_{made.id}_[A-Za-z0-9_-]{{43}}", made.text)
    found = _holder(engine, made.text)
    assert found == key_store.KeyHolder(office.account_id, made.id, frozenset({"send", "read"}), 7)


def test_nothing_that_resembles_a_key_is_one(engine: Engine) -> None:
    office = visit.office(engine)
    one, other = _made(engine, office.account_id), _made(engine, office.account_id)
    secret = one.text.removeprefix(f"so_{one.id}_")
    for presented in (
        "", "so_", one.text[:-1], one.text + "A", one.text[:-2] + "--", one.text.upper(), f" {one.text}",
        f"so_{other.id}_{secret}", f"so_0{one.id}_{secret}", f"so_{2**64}_{secret}", secret, f"{one.text}\n",
    ):  # fmt: skip
        assert _holder(engine, presented) is None, presented


def test_only_a_hash_is_kept_and_no_repr_shows_the_key(engine: Engine) -> None:
    office = visit.office(engine)
    made = _made(engine, office.account_id, name="the shop")
    secret = made.text.rpartition(f"so_{made.id}_")[2]
    with engine.connect() as connection:
        kept = connection.execute(text("SELECT row_to_json(k)::text FROM api_keys k")).scalar_one()
        audit = connection.execute(
            text("SELECT row_to_json(a)::text FROM audit_entries a WHERE action LIKE 'api_key%'")
        ).scalar_one()
    for shown in (kept, audit, repr(made), str(made)):
        assert secret not in shown
    assert json.loads(audit)["details"] == {"name": "the shop", "scopes": ["send"], "calls_per_minute": 6000}


def test_a_revoked_key_is_refused_and_stays_on_record(engine: Engine) -> None:
    office = visit.office(engine)
    made = _made(engine, office.account_id)
    with transaction(engine) as session:
        keys.revoke_key(session, office.account_id, made.id)
    assert _holder(engine, made.text) is None
    with transaction(engine) as session:
        with pytest.raises(Conflict, match="revoked already"):
            keys.revoke_key(session, office.account_id, made.id)
        with pytest.raises(NotFound):
            keys.revoke_key(session, office.account_id, made.id + 1)
        shown = key_store.find_key(session, office.account_id, made.id)
    assert shown is not None
    assert shown.revoked_at is not None


def test_a_key_of_another_account_can_not_be_revoked(engine: Engine) -> None:
    office, other = visit.office(engine), visit.office(engine, slug="other")
    made = _made(engine, office.account_id)
    with transaction(engine) as session, pytest.raises(NotFound):
        keys.revoke_key(session, other.account_id, made.id)
    assert _holder(engine, made.text) is not None


def test_its_use_is_written_down_once_a_minute(engine: Engine) -> None:
    office = visit.office(engine)
    made = _made(engine, office.account_id)

    def used() -> tuple[object, object]:
        _holder(engine, made.text)
        with engine.connect() as connection:
            return tuple(connection.execute(text("SELECT last_used_at, xmin::text FROM api_keys")).one())

    first = used()
    assert first[0] is not None
    assert used() == first
    with engine.begin() as connection:
        connection.execute(text("UPDATE api_keys SET last_used_at = last_used_at - interval '61 seconds'"))
    assert used()[0] > first[0]


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"scopes": []}, "scopes"),
        ({"scopes": ["send", "everything"]}, "scopes"),
        ({"name": "x" * 101}, "name"),
        ({"name": "a\x00"}, "name"),
        ({"calls_per_minute": 0}, "calls_per_minute"),
        ({"calls_per_minute": 1_000_001}, "calls_per_minute"),
    ],
)
def test_a_key_that_can_not_be_is_refused_by_field(engine: Engine, columns, field: str) -> None:
    office = visit.office(engine)
    with pytest.raises(InvalidInput) as refused:
        _made(engine, office.account_id, **columns)
    assert refused.value.field == field


def test_admins_see_their_accounts_keys_and_others_do_not(engine: Engine) -> None:
    office, other = visit.office(engine), visit.office(engine, slug="other")
    made = _made(engine, office.account_id, name="the shop")
    words = visit.words(office.browser("ada").get("/accounts/api-keys"))
    assert f"so_{made.id}_…" in words
    assert "the shop" in words
    assert "never" in words
    assert "the shop" not in visit.words(other.browser("ada").get("/accounts/api-keys"))
    for name in ("mia", "abe", "sue", "oda"):
        assert office.browser(name).get("/accounts/api-keys").status_code == 403
        assert "/accounts/api-keys" not in office.browser(name).get("/").get_data(as_text=True)


def _run(database_url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "SENDONCE_DATABASE_URL": database_url, "SENDONCE_SECRET_KEY": "k" * 32}
    command = [sys.executable, "-m", "console", "api-key", *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)


def test_the_command_line_makes_lists_and_revokes(engine: Engine, database_url: str) -> None:
    visit.office(engine)
    done = _run(database_url, "add", "--account", "acme", "--scope", "send", "--scope", "read", "--json")
    made = json.loads(done.stdout)
    assert made.keys() == {"id", "key"}
    held = _holder(engine, made["key"])
    assert held is not None
    assert held.scopes == {"send", "read"}
    (listed,) = json.loads(_run(database_url, "list", "--account", "acme", "--json").stdout)
    assert (listed["id"], listed["prefix"], listed["revoked_at"]) == (made["id"], f"so_{made['id']}_", None)
    assert made["key"] not in json.dumps(listed)
    assert f"so_{made['id']}_…  send, read  works" in _run(database_url, "list", "--account", "acme").stdout
    assert _run(database_url, "revoke", str(made["id"]), "--account", "acme").returncode == 0
    assert _holder(engine, made["key"]) is None
    again = _run(database_url, "revoke", str(made["id"]), "--account", "acme")
    assert (again.returncode, again.stdout) == (1, "")
    assert "revoked already" in again.stderr
    wrong = _run(database_url, "add", "--account", "acme", "--scope", "all")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "Scopes are send, read, suppress; all is none of them." in wrong.stderr


def test_without_json_standard_output_has_the_key_alone(engine: Engine, database_url: str) -> None:
    visit.office(engine)
    done = _run(database_url, "add", "--account", "acme", "--scope", "suppress", "--name", "the CRM")
    assert _holder(engine, done.stdout.strip()) is not None
    assert "not shown again" in done.stderr
