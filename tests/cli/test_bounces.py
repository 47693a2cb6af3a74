"""`sendonce bounces`."""

import json

import pytest
import visit
from click.testing import CliRunner, Result
from peers.imap import PASSWORD, Post
from sqlalchemy import Engine

from console.cli import cli
from console.errors import InvalidInput, NotFound


@pytest.fixture(autouse=True)
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


def run(database_url: str, *arguments: str, stdin: str | None = None) -> Result:
    environment = {"SENDONCE_DATABASE_URL": database_url, "SENDONCE_SECRET_KEY": "k" * 32}
    return CliRunner().invoke(cli, ["bounces", *arguments, "--account", "acme"], env=environment, input=stdin)


def test_a_mailbox_is_tried_set_shown_and_removed(database_url: str) -> None:
    with Post() as mails:
        made = run(database_url, "set", mails.url, "--json", stdin=f"{PASSWORD}\n")
        assert made.exit_code == 0, made.exception
        assert mails.sign_in_count == 1
    shown = json.loads(run(database_url, "show", "--json").stdout)
    assert shown == {"url": json.loads(made.stdout)["url"], "visited_at": None, "error": ""}
    assert PASSWORD not in made.output + str(shown)
    assert run(database_url, "remove").exit_code == 0
    for command in ("show", "remove"):
        assert isinstance(run(database_url, command).exception, NotFound)


def test_a_mailbox_that_can_not_be_read_is_not_set(database_url: str) -> None:
    with Post() as mails:
        answer = run(database_url, "set", mails.url, stdin="wrong-one\n")
    assert isinstance(answer.exception, InvalidInput)
    assert "AUTHENTICATIONFAILED" in str(answer.exception)
    assert "wrong-one" not in str(answer.exception)
    assert isinstance(run(database_url, "show").exception, NotFound)


@pytest.mark.parametrize(
    "url",
    [
        "imaps://u:secret-1@mail.example.com/INBOX",
        "https://u@mail.example.com",
        "imaps://mail.example.com/INBOX",
        "imaps://u@mail.example.com/B\u00fcro",
        "imaps://u@mail.example.com:nope/INBOX",
        "imap://u@mail.example.com/INBOX?tls=maybe",
    ],
)
def test_a_wrong_url_names_what_is_wrong_and_not_the_password(database_url: str, url: str) -> None:
    answer = run(database_url, "set", url, stdin="x\n")
    assert isinstance(answer.exception, InvalidInput)
    assert answer.exception.field == "url"
    assert "secret-1" not in str(answer.exception)
