"""`sendonce provider` and `sendonce route`."""

import json

import pytest
import visit
from click.testing import CliRunner, Result
from peers import dialects
from peers.vendor import SECRET, Vendor
from sqlalchemy import Engine

from console.cli import cli
from console.errors import InvalidInput, NotFound


@pytest.fixture(autouse=True)
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


def run(database_url: str, *arguments: str, stdin: str | None = None) -> Result:
    environment = {"SENDONCE_DATABASE_URL": database_url, "SENDONCE_SECRET_KEY": "k" * 32}
    return CliRunner().invoke(cli, [*arguments, "--account", "acme"], env=environment, input=stdin)


def test_a_provider_is_added_listed_checked_and_put_into_a_route(database_url: str) -> None:
    with Vendor(dialects.Resend()) as vendor:
        added = run(
            database_url,
            "provider",
            "add",
            "main",
            "--kind",
            "resend",
            "--setting",
            f"base_url={vendor.url}",
            "--secret-stdin",
            "--json",
            stdin=f"{SECRET}\n",
        )
        assert added.exit_code == 0, added.output
        listed = run(database_url, "provider", "list", "--json")
        [row] = json.loads(listed.output)
        assert (row["name"], row["kind"], row["has_secret"]) == ("main", "resend", True)
        assert row["settings"]["base_url"] == vendor.url
        checked = run(database_url, "provider", "check", "main")
        assert checked.exit_code == 0
        assert vendor.sends == 0
        for result in (added, listed, checked, run(database_url, "provider", "list")):
            assert SECRET not in result.output
    made = run(database_url, "route", "set", "main", "smtp", "--json")
    assert json.loads(made.output) == {"name": "default", "providers": ["main", "smtp"]}
    assert "default: main, then smtp" in run(database_url, "route", "list").output


def test_a_provider_in_trouble_is_told_with_an_exit_code(database_url: str) -> None:
    with Vendor(dialects.Resend()) as vendor:
        setting = f"base_url={vendor.url}"
        run(
            database_url,
            "provider",
            "add",
            "main",
            "--kind",
            "resend",
            "--setting",
            setting,
            "--secret-stdin",
            stdin="swordfish\n",
        )
        told = run(database_url, "provider", "check", "main", "--json")
        assert told.exit_code == 1
        assert json.loads(told.stdout)["is_fine"] is False
        run(database_url, "provider", "edit", "main", "--secret-stdin", stdin=f"{SECRET}\n")
        assert run(database_url, "provider", "check", "main").exit_code == 0


def test_mistakes_are_told_in_a_sentence(database_url: str) -> None:
    empty = run(database_url, "provider", "add", "main", "--kind", "resend", "--secret-stdin", stdin="")
    assert isinstance(empty.exception, InvalidInput)
    odd = run(database_url, "provider", "add", "main", "--kind", "file", "--setting", "colour")
    assert isinstance(odd.exception, InvalidInput)
    assert isinstance(run(database_url, "provider", "check", "nobody").exception, NotFound)
    assert isinstance(run(database_url, "route", "set", "nobody").exception, InvalidInput)
