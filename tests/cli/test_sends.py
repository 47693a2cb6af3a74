"""`sendonce sends`."""

import json
import os
import subprocess
import sys

import pytest
import visit
from click.testing import CliRunner, Result
from sqlalchemy import Engine

from console.cli import cli, sends
from console.errors import NotFound

PROMISED = {"id", "email", "status", "dedupe_key", "message_id", "attempts", "provider_reply", "correlation_id"}


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


def _run(database_url: str, *arguments: str) -> Result:
    environment = {"SENDONCE_DATABASE_URL": database_url, "SENDONCE_SECRET_KEY": "k" * 32}
    return CliRunner().invoke(cli, ["sends", "--account", "acme", *arguments], env=environment, catch_exceptions=True)


def _rows(database_url: str, *arguments: str) -> list[dict]:
    result = _run(database_url, "--json", *arguments)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_json_lines_carry_the_promised_fields(database_url: str, office: visit.Office) -> None:
    campaign_id = office.campaign("sending")
    send_id = office.send(campaign_id=campaign_id, status="sent", attempt_no=2, provider_reply="250 ok")
    [row] = _rows(database_url, "--campaign", str(campaign_id))
    assert set(row) >= PROMISED
    assert (row["id"], row["status"], row["attempts"]) == (send_id, "sent", 2)
    assert row["provider_reply"] == "250 ok"
    assert row["dedupe_key"].startswith(f"campaign:{campaign_id}:")


def test_rows_are_chosen_by_campaign_recipient_and_state(database_url: str, office: visit.Office) -> None:
    first, second = office.campaign("sending"), office.campaign("sending")
    for campaign_id in (first, second):
        office.send(campaign_id=campaign_id, status="sent", email="Rita@example.com")
        office.send(campaign_id=campaign_id, status="failed", email="rob@example.com")
    assert len(_rows(database_url)) == 4
    assert len(_rows(database_url, "--campaign", str(first))) == 2
    assert {row["email"] for row in _rows(database_url, "--recipient", " rita@EXAMPLE.com")} == {"Rita@example.com"}
    assert [row["campaign_id"] for row in _rows(database_url, "--recipient", "rob@example.com")] == [second, first]
    assert len(_rows(database_url, "--status", "failed")) == 2
    chosen = _rows(database_url, "--campaign", str(first), "--recipient", "rob@example.com", "--status", "failed")
    assert [row["campaign_id"] for row in chosen] == [first]
    assert not _rows(database_url, "--campaign", str(first), "--recipient", "rob@example.com", "--status", "sent")


@pytest.mark.parametrize("chosen", [(), ("--campaign", "1"), ("--campaign", "1", "--status", "sent")])
def test_all_rows_come_however_many_pages_they_take(
    database_url: str, office: visit.Office, monkeypatch: pytest.MonkeyPatch, chosen: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sends, "PAGE_ROWS", 7)
    campaign_id = office.campaign("sending")
    assert campaign_id == 1
    wanted = {office.send(campaign_id=1, status="sent", email=f"r{number}@example.com") for number in range(30)}
    rows = _rows(database_url, *chosen)
    assert len(rows) == 30
    assert {row["id"] for row in rows} == wanted


def test_people_get_one_line_a_row(database_url: str, office: visit.Office) -> None:
    office.send(status="failed", attempt_no=1, provider_reply="550 no such user")
    result = _run(database_url)
    assert result.exit_code == 0
    assert "failed      1 attempt    rita@example.com  550 no such user" in result.stdout


def test_an_unknown_account_or_campaign_is_told_in_a_sentence(database_url: str, office: visit.Office) -> None:
    assert isinstance(_run(database_url, "--campaign", "99").exception, NotFound)
    environment = {**os.environ, "SENDONCE_DATABASE_URL": database_url, "SENDONCE_SECRET_KEY": "k" * 32}
    command = [sys.executable, "-c", "from console.cli import main; main()", "sends", "--account", "nobody"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.startswith("Error: There is no account 'nobody'.")
    assert "Traceback" not in run.stderr


def test_a_state_that_there_is_not_is_wrong_usage(database_url: str, office: visit.Office) -> None:
    result = _run(database_url, "--status", "lost")
    assert result.exit_code == 2
    assert "'lost'" in result.output
