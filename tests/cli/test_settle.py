"""`sendonce dead-letters` and `sendonce in-doubt`, as scripts use them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import visit
from click.testing import CliRunner, Result
from settling import check_counts, dead, decisions, doubtful, freeze, sql, states
from sqlalchemy import Engine

from console.cli import cli, settle
from console.errors import Forbidden, InvalidInput, NotFound
from console.sends.states import Change

PROMISED = {
    "id", "email", "status", "campaign_id", "message_id", "attempts", "provider_reply", "error_class", "since",
}  # fmt: skip
WHO = ("--account", "acme", "--as", "oda@example.com", "--reason", "The relay is back.")
Run = Callable[..., Result]


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


@pytest.fixture
def run(database_url: str) -> Run:
    """Runs a command in this process."""

    def command(*arguments: object) -> Result:
        environment = {"SENDONCE_DATABASE_URL": database_url, "SENDONCE_SECRET_KEY": "k" * 32}
        return CliRunner().invoke(cli, [str(each) for each in arguments], env=environment)

    return command


def _lines(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def _document(result: Result) -> dict[str, Any]:
    [document] = _lines(result)
    return document


def test_lists_carry_the_promised_fields_one_document_a_line(office: visit.Office, run: Run) -> None:
    campaign_id = office.campaign("sending")
    letter = dead(office, campaign_id, message_id="<m1@example.com>")
    doubt = doubtful(office, campaign_id, email="b@example.com")
    [row] = _lines(run("dead-letters", "list", "--account", "acme", "--json"))
    assert set(row) >= PROMISED
    assert (row["id"], row["status"], row["attempts"], row["error_class"]) == (letter, "dead", 12, "451-4.7.1-rcpt")
    assert (row["campaign_id"], row["message_id"]) == (campaign_id, "<m1@example.com>")
    assert row["provider_reply"].endswith("451 4.7.1 Greylisted")
    assert row["since"].endswith("+00:00")
    [row] = _lines(run("in-doubt", "list", "--account", "acme", "--json"))
    assert set(row) >= PROMISED
    assert (row["id"], row["status"], row["error_class"]) == (doubt, "in_doubt", "no-answer-end")
    assert row["handed_over_at"] is not None


def test_lists_are_narrowed_and_come_whole_however_many_pages_they_take(
    office: visit.Office, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settle, "PAGE_ROWS", 7)
    one, two = office.campaign("sending"), office.campaign("sending")
    classes = ("too-old", "worker-died")
    rows = [
        dead(office, (one, two)[n % 2], email=f"r{n}@example.com", error_class=classes[n % 3 == 0]) for n in range(30)
    ]
    listing = ("dead-letters", "list", "--account", "acme", "--json")
    assert sorted(row["id"] for row in _lines(run(*listing))) == rows
    assert len(_lines(run(*listing, "--class", "worker-died"))) == 10
    assert len(_lines(run(*listing, "--campaign", one))) == 15
    assert len(_lines(run(*listing, "--campaign", one, "--class", "worker-died"))) == 5


def test_people_get_one_line_a_row(office: visit.Office, run: Run) -> None:
    dead(office)
    result = run("dead-letters", "list", "--account", "acme")
    assert "451-4.7.1-rcpt        rita@example.com  gave up after 12 attempts" in result.stdout


def test_a_retry_prints_the_set_what_moved_and_what_was_skipped(office: visit.Office, run: Run) -> None:
    campaign_id = office.campaign("sending")
    letter = dead(office, campaign_id)
    failed = office.send(campaign_id=campaign_id, status="failed", email="f@example.com")
    document = _document(run("dead-letters", "retry", letter, failed, *WHO, "--json"))
    set_id = document["set"]
    assert set_id > 0
    assert document == {
        "set": set_id,
        "moved": 1,
        "skipped": [{"id": failed, "reason": "it is failed now"}],
        "has_more": False,
    }
    assert states(office) == {letter: "queued", failed: "failed"}
    assert decisions(office, letter) == [("revive", "Oda", "The relay is back.")]
    check_counts(office)


@pytest.mark.parametrize(("chosen", "moves"), [(("--all",), 3), (("--class", "too-old"), 1), (("--campaign", "1"), 2)])
def test_a_retry_takes_all_a_class_or_a_campaign(
    office: visit.Office, run: Run, chosen: tuple[str, ...], moves: int
) -> None:
    one, two = office.campaign("sending"), office.campaign("sending")
    assert one == 1
    dead(office, one)
    dead(office, one, email="b@example.com")
    dead(office, two, error_class="too-old")
    doubt = doubtful(office, one, email="c@example.com")
    assert _document(run("dead-letters", "retry", *chosen, *WHO, "--json"))["moved"] == moves
    assert list(states(office).values()).count("queued") == moves
    assert states(office)[doubt] == "in_doubt"


@pytest.mark.parametrize(
    ("option", "status"), [("--as-sent", "sent"), ("--send-again", "queued"), ("--give-up", "failed")]
)
def test_what_is_in_doubt_is_settled_in_one_of_three_ways(
    office: visit.Office, run: Run, option: str, status: str
) -> None:
    send_id = doubtful(office, office.campaign("sending"))
    assert _document(run("in-doubt", "settle", "--all", option, *WHO, "--json"))["moved"] == 1
    assert states(office) == {send_id: status}
    check_counts(office)


def test_a_second_time_there_is_nothing_to_do_and_that_is_no_error(office: visit.Office, run: Run) -> None:
    dead(office)
    assert _document(run("dead-letters", "retry", "--all", *WHO, "--json"))["moved"] == 1
    again = run("dead-letters", "retry", "--all", *WHO, "--json")
    assert _document(again) == {"set": None, "moved": 0, "skipped": [], "has_more": False}
    assert "nothing was done" in run("dead-letters", "retry", "--all", *WHO).stdout


def test_people_are_told_what_happened(office: visit.Office, run: Run) -> None:
    letter = dead(office)
    failed = office.send(status="failed", email="f@example.com")
    result = run("dead-letters", "retry", letter, failed, *WHO)
    assert result.exit_code == 0
    assert "1 of 2 put back into the queue." in result.stdout
    assert f"skipped {failed}: it is failed now" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("dead-letters", "retry", *WHO),
        ("dead-letters", "retry", "1", "--all", *WHO),
        ("dead-letters", "retry", "--all", "--class", "too-old", *WHO),
        ("dead-letters", "retry", "x", *WHO),
        ("dead-letters", "retry", "--all", *WHO[:4]),
        ("in-doubt", "settle", "--all", *WHO),
        ("in-doubt", "settle", "--all", "--as-sent", "--give-up", *WHO),
        ("in-doubt", "list"),
    ],
)
def test_wrong_usage_moves_nothing(office: visit.Office, run: Run, arguments: tuple[str, ...]) -> None:
    before = {dead(office): "dead", doubtful(office): "in_doubt"}
    assert run(*arguments).exit_code == 2
    assert states(office) == before


def test_who_may_not_and_what_is_not_there_are_refused(office: visit.Office, run: Run) -> None:
    letter = dead(office)
    refusals = {
        Forbidden: ("retry", letter, *WHO[:2], "--as", "sue@example.com", "--reason", "x"),
        NotFound: ("retry", 999, *WHO),
        InvalidInput: ("retry", letter, *WHO[:4], "--reason", "  "),
    }
    for kind, arguments in refusals.items():
        assert isinstance(run("dead-letters", *arguments).exception, kind)
    assert isinstance(run("dead-letters", "list", "--account", "nobody").exception, NotFound)
    assert states(office) == {letter: "dead"}


def test_an_error_is_one_sentence_and_exit_code_1(office: visit.Office, database_url: str) -> None:
    environment = {**os.environ, "SENDONCE_DATABASE_URL": database_url, "SENDONCE_SECRET_KEY": "k" * 32}
    command = [sys.executable, "-c", "from console.cli import main; main()", "dead-letters", "retry", "999", *WHO]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: There is no send 999 in this account")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("answer", "moves"), [("y", True), ("n", False)])
def test_a_person_at_a_terminal_is_asked_once_the_set_is_fixed(
    office: visit.Office, run: Run, monkeypatch: pytest.MonkeyPatch, answer: str, moves: bool
) -> None:
    letter = dead(office)
    asked: list[str] = []

    def confirm(words: str, *, abort: bool) -> None:
        asked.append(words)
        # Somebody is faster while this person reads the question.
        freeze(office, Change.REVIVE, dead(office, email="later@example.com"))
        if answer == "n":
            raise settle.click.Abort

    monkeypatch.setattr(settle.click, "confirm", confirm)
    monkeypatch.setattr(settle, "_is_terminal", lambda: True)
    run("dead-letters", "retry", "--all", *WHO)
    assert asked[0].startswith("Messages: 1 (set ")
    assert states(office)[letter] == ("queued" if moves else "dead")
    assert list(states(office).values()).count("dead") == (1 if moves else 2)
    assert len(sql(office, "SELECT FROM frozen_sets WHERE status = 'run'")) == moves
