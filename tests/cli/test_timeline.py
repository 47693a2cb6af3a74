"""`sendonce timeline`."""

import json

import doorway
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine

from console.cli import cli
from console.errors import InvalidInput, NotFound

RITA = "rita@example.com"


@pytest.fixture
def door(engine: Engine) -> doorway.Doorway:
    made = doorway.doorway(engine)
    made.accept(trigger_source="web_request", code_path="shop.pay", event="order.paid", correlation_id="c-1")
    made.accept(trigger_source="web_request", code_path="shop.pay", event="order.paid", correlation_id="c-2")
    return made


def _run(database_url: str, *arguments: str) -> Result:
    environment = {"SENDONCE_DATABASE_URL": database_url, "SENDONCE_SECRET_KEY": "k" * 32}
    return CliRunner().invoke(cli, ["timeline", *arguments, "--account", "acme"], env=environment)


@pytest.mark.usefixtures("door")
def test_the_document_has_exactly_the_promised_form(database_url: str) -> None:
    result = _run(database_url, RITA, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert set(document) == {"recipient", "events", "answers", "verdict"}
    assert document["recipient"] == RITA
    assert {tuple(each) for each in document["events"]} == {("at", "kind", "text", "ids")}
    assert document["answers"] == {
        "events": ["order.paid"], "code_paths": ["web_request shop.pay"], "enqueued": 1, "accepts": 0
    }  # fmt: skip
    assert set(document["verdict"]) == {"cause", "decided", "evidence"}
    assert document["verdict"]["cause"] == "never_accepted"


def test_without_json_it_reads_as_a_ticket(database_url: str, door: doorway.Doorway) -> None:
    text = _run(database_url, str(door.sends()[0].id)).stdout
    assert f"Messages to {RITA}" in text
    assert "It was never accepted." in text
    assert "What was enqueued: 1 message." in text
    assert "its key was taken, so it made no second message" in text


@pytest.mark.usefixtures("door")
def test_a_window_and_a_type_narrow_it(database_url: str) -> None:
    for narrowed in (("--to", "2020-01-02", "--from", "2020-01-01T10:00"), ("--type", "campaign")):
        assert json.loads(_run(database_url, RITA, "--json", *narrowed).stdout)["events"] == []


@pytest.mark.usefixtures("door")
def test_a_wrong_moment_and_an_unknown_id_are_told(database_url: str) -> None:
    wrong = _run(database_url, RITA, "--from", "yesterday")
    assert isinstance(wrong.exception, InvalidInput)
    assert "--from" in str(wrong.exception)
    assert isinstance(_run(database_url, "nothing-like-it").exception, NotFound)
