"""`sendonce template`, `sendonce message-type` and `sendonce db grant`, by the lines that are promised."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import doorway
import make
import psycopg
import pytest
from click.testing import CliRunner, Result
from doorway import Doorway
from sqlalchemy import Engine

from console.cli import cli
from console.db import transaction
from console.errors import InvalidInput, NotFound


@pytest.fixture
def door(engine: Engine) -> Doorway:
    with transaction(engine) as session:
        return Doorway(engine, make.account(session))


@pytest.fixture
def html(tmp_path: Path) -> Path:
    path = tmp_path / "receipt.html"
    path.write_text("<p>Thanks for {{ order_id }}, {{ name | default('you') }}</p>", encoding="utf-8")
    return path


def run(database_url: str, *arguments: str | Path, **variables: str) -> Result:
    environment = {"SENDONCE_DATABASE_URL": database_url, "SENDONCE_SECRET_KEY": "k" * 32, **variables}
    return CliRunner().invoke(cli, [str(each) for each in arguments], env=environment)


def answer(database_url: str, *arguments: str | Path, **variables: str) -> Any:
    result = run(database_url, *arguments, "--account", "acme", "--json", **variables)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def add(database_url: str, html: Path) -> Any:
    return answer(database_url, "template", "add", "receipt", "--subject", "Order {{ order_id }}", "--html", html)


def test_the_promised_lines_make_a_type_that_takes_messages(door: Doorway, database_url: str, html: Path) -> None:
    assert add(database_url, html) == {"name": "receipt", "version": 1}
    made = answer(
        database_url, "message-type", "set", "order_receipt", "--lane", "urgent", "--template", "receipt",
        "--window", "24h", "--mode", "enforce", "--in-doubt", "resend", "--attempts", "3", "--max-age", "15m",
        "--key-pattern", "order_receipt:{order_id}", "--on-conflict", "first",
    )  # fmt: skip
    assert made == {
        "name": "order_receipt", "lane": "urgent", "template": "receipt", "sender": "no-reply@sendonce.example",
        "route": None, "window_s": 86_400, "mode": "enforce", "on_conflict": "first",
        "key_pattern": "order_receipt:{order_id}", "in_doubt_policy": "resend", "attempt_cap": 3, "age_cap_s": 900,
    }  # fmt: skip
    receipt = door.accept(dedupe_key=None)
    assert (receipt.status, receipt.dedupe_key) == ("queued", "order_receipt:1001")


def test_a_new_type_has_the_age_of_its_lane_and_the_installations_sender(
    door: Doorway, database_url: str, html: Path
) -> None:
    add(database_url, html)
    lines = {"urgent": 900, "normal": 345_600, "bulk": 345_600}
    for lane, age_cap_s in lines.items():
        made = answer(
            database_url, "message-type", "set", f"in_{lane}", "--lane", lane, "--template", "receipt",
            SENDONCE_SENDER="Shop <shop@example.com>",
        )  # fmt: skip
        assert (made["age_cap_s"], made["sender"]) == (age_cap_s, "Shop <shop@example.com>")
    made = answer(
        database_url, "message-type", "set", "x", "--lane", "bulk", SENDONCE_BASE_URL="https://mail.example.org"
    )
    assert made["sender"] == "no-reply@mail.example.org"


def test_what_is_not_given_stays_as_it_is(door: Doorway, database_url: str, html: Path) -> None:
    add(database_url, html)
    line = ("message-type", "set", "order_receipt")
    first = answer(database_url, *line, "--lane", "urgent", "--template", "receipt", "--window", "24h")
    changed = answer(database_url, *line, "--mode", "observe", "--window", "forever")
    assert changed == {**first, "mode": "observe", "window_s": None}
    assert [row["name"] for row in answer(database_url, "message-type", "list")] == ["campaign", "order_receipt"]
    listed = run(database_url, "message-type", "list", "--account", "acme").stdout
    assert "order_receipt  urgent  template receipt  observe  window forever" in listed


@pytest.mark.parametrize(
    ("options", "error", "field"),
    [
        (("--template", "receipt"), InvalidInput, "lane"),
        (("--lane", "normal", "--template", "nothing"), NotFound, None),
        (("--lane", "normal", "--route", "nothing"), InvalidInput, "route"),
        (("--lane", "normal", "--window", "1 day"), InvalidInput, "window"),
        (("--lane", "normal", "--max-age", "0s"), InvalidInput, "max_age"),
        (("--lane", "normal", "--key-pattern", "x"), InvalidInput, "key_pattern"),
        (("--lane", "normal", "--sender", "nobody"), InvalidInput, "sender"),
    ],
)
def test_a_wrong_option_is_one_sentence_that_names_it(
    door: Doorway, database_url: str, html: Path, options: tuple[str, ...], error: type, field: str | None
) -> None:
    add(database_url, html)
    result = run(database_url, "message-type", "set", "order_receipt", *options, "--account", "acme")
    assert isinstance(result.exception, error)
    assert getattr(result.exception, "field", None) == field
    assert len(door.sql("SELECT FROM message_types")) == 1


def test_templates_are_listed_and_shown_with_their_versions(door: Doorway, database_url: str, html: Path) -> None:
    add(database_url, html)
    html.write_text("<p>Newer {{ order_id }}</p>", encoding="utf-8")
    assert add(database_url, html)["version"] == 2
    assert answer(database_url, "template", "list") == [
        {"name": "receipt", "version": 2, "subject": "Order {{ order_id }}"}
    ]
    assert answer(database_url, "template", "show", "receipt")["html"] == "<p>Newer {{ order_id }}</p>"
    assert "Thanks for" in answer(database_url, "template", "show", "receipt", "--version", "1")["html"]
    assert "<p>Newer" in run(database_url, "template", "show", "receipt", "--account", "acme").stdout
    for odd in (("nothing",), ("receipt", "--version", "3")):
        assert isinstance(run(database_url, "template", "show", *odd, "--account", "acme").exception, NotFound)


def test_a_file_that_is_no_text_is_refused_by_its_name(door: Doorway, database_url: str, html: Path) -> None:
    html.write_bytes(b"<p>\xff</p>")
    result = run(database_url, "template", "add", "receipt", "--subject", "x", "--html", html, "--account", "acme")
    assert isinstance(result.exception, InvalidInput)
    assert result.exception.field == "html"
    assert "UTF-8" in str(result.exception)


@pytest.fixture
def role(server_url: str) -> Iterator[str]:
    name = f"app_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"DROP ROLE {name}")


def test_a_role_is_let_in_and_shut_out_again(role: str, engine: Engine, database_url: str) -> None:
    doorway.doorway(engine)
    url = psycopg.conninfo.make_conninfo(database_url, user=role)
    ask = "SELECT id FROM sendonce.send('r@example.com', 'order_receipt', 'k', '{\"order_id\": 1}')"
    assert answer(database_url, "db", "grant", role) == {"role": role, "account": "acme", "is_new": True}
    assert answer(database_url, "db", "grant", role)["is_new"] is False
    with psycopg.connect(url) as application:
        assert application.execute(ask).fetchone()
    assert answer(database_url, "db", "revoke", role) == {"role": role, "account": "acme", "revoked": True}
    with psycopg.connect(url) as application, pytest.raises(psycopg.errors.InsufficientPrivilege):
        application.execute(ask)
    assert isinstance(run(database_url, "db", "revoke", role, "--account", "acme").exception, NotFound)
