"""What the command is started with: arguments as bytes, and standard streams that are closed or take nothing."""

import os
import subprocess
import sys

import pytest
import visit
from sqlalchemy import Engine

_NOT_UTF_8 = "a\udcff"


def _run(database_url: str, *arguments: str, streams: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the command as the shell starts it, with `streams` closed or led elsewhere as the shell writes it."""
    environment = {**os.environ, "SENDONCE_DATABASE_URL": database_url, "SENDONCE_SECRET_KEY": "k" * 32}
    command = ["sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-m", "console", *arguments]
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done


@pytest.fixture
def acme(database_url: str, engine: Engine) -> str:
    """The URL of a database with an account acme and a send in it."""
    visit.office(engine).send(status="sent")
    return database_url


@pytest.mark.parametrize(
    "arguments",
    [
        ("account", "add", "q2", "--name", _NOT_UTF_8),
        ("user", "add", "d@example.com", "--account", "acme", "--role", "marketer", "--name", _NOT_UTF_8),
        ("suppress", "rita@example.com", "--account", "acme", "--reason", _NOT_UTF_8),
        ("sends", "--account", "acme", "--recipient", _NOT_UTF_8),
        ("subscribers", "show", "rita@example.com", "--account", _NOT_UTF_8),
    ],
    ids=["account", "user", "suppress", "sends", "--account"],
)
def test_an_argument_that_is_not_utf_8_is_refused_in_a_sentence(acme: str, arguments: tuple[str, ...]) -> None:
    done = _run(acme, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: The argument 'a�' is not encoded in UTF-8")
    assert done.stderr.count("\n") == 1


def test_a_closed_standard_input_is_an_empty_one(acme: str) -> None:
    add = ("user", "add", "dan@example.com", "--account", "acme", "--role", "marketer")
    assert "Password: " in _run(acme, *add, streams="<&-").stdout
    done = _run(acme, "subscribers", "import", "-", "--account", "acme", "--list", "News", streams="<&-")
    assert (done.returncode, done.stderr) == (1, "Error: The file has no rows.\n")
    done = _run(acme, "db", "downgrade", "base", streams="<&-")
    assert (done.returncode, "give --yes" in done.stderr) == (1, True)


def test_closed_outputs_do_not_keep_a_command_from_its_work(acme: str) -> None:
    assert _run(acme, "account", "add", "shut", streams="<&- >&- 2>&-").returncode == 0
    assert "already an account 'shut'" in _run(acme, "account", "add", "shut", streams=">&-").stderr


@pytest.mark.parametrize("name", ["short", "long" * 10_000])
def test_an_output_that_is_full_is_told_in_a_sentence(acme: str, name: str) -> None:
    done = _run(acme, "account", "add", "full", "--name", name, "--json", streams=">/dev/full")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: The output can't be written: No space left on device.\n"
