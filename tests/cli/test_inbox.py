"""`sendonce inbox`."""

import json
from typing import Any

import make
import post
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine

from console.cli import cli, inbox
from console.errors import Conflict, InvalidInput, NotFound


@pytest.fixture
def shop(engine: Engine) -> post.Shop:
    return post.shop(engine, is_on=False)


def _run(database_url: str, *arguments: str, typed: str = "") -> Result:
    environment = {"SENDONCE_DATABASE_URL": database_url, "SENDONCE_SECRET_KEY": make.SECRET_KEY}
    return CliRunner().invoke(cli, ["inbox", *arguments, "--account", "acme"], env=environment, input=typed)


def _json(database_url: str, *arguments: str, typed: str = "") -> list[Any]:
    result = _run(database_url, *arguments, "--json", typed=typed)
    assert result.exit_code == 0, (result.output, result.exception)
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_an_endpoint_is_made_whose_address_works(database_url: str, shop: post.Shop) -> None:
    [made] = _json(
        database_url, "endpoint", "add", "github", "--scheme", "standard_webhooks", "--secret-stdin",
        typed=f"{post.WEBHOOK_SECRET}\n",
    )  # fmt: skip
    assert made["url"].startswith("http://127.0.0.1:8080/inbox/github/")
    path = made["url"].removeprefix("http://127.0.0.1:8080")
    client = shop.office.app.test_client()
    assert client.post(path, data=b"{}").status_code == 401
    assert client.post(path, data=b"{}", headers=post.signed(b"{}", event_id="m")).status_code == 200
    listed = _json(database_url, "endpoint", "list")
    assert [(row["name"], row["scheme"], row["refused_count"]) for row in listed] == [
        ("github", "standard_webhooks", 1),
        ("shop", "none", 0),
    ]
    assert made["url"].rpartition("/")[2] not in str(listed)


def test_a_rule_is_written_tried_out_switched_on_and_off(database_url: str, shop: post.Shop) -> None:
    event_id = str(shop.post())
    of_shop = ("--endpoint", "shop")
    [rule] = _json(
        database_url, "rule", "add", "r2", *of_shop, "--event-type", "order.paid", "--message-type", "receipt",
        "--to", "$.data.customer.email", "--param", "order_id=$.data.order.id", "--param", "name = data.customer.name",
        "--dedupe-key", "receipt:{order_id}", "--entity", "order=$.data.order.id",
    )  # fmt: skip
    assert rule["status"] == "draft"
    early = _run(database_url, "rule", "on", "r2", *of_shop)
    assert isinstance(early.exception, Conflict)
    [trial] = _json(database_url, "rule", "try", "r2", *of_shop, "--event", event_id)
    assert (trial["would_work"], trial["to"], trial["dedupe_key"]) == (True, "rita@example.com", "receipt:1001")
    assert trial["params"] == {"order_id": 1001, "name": "Rita"}
    assert _json(database_url, "rule", "on", "r2", *of_shop) == [{"id": rule["id"], "status": "on", "replaced": []}]
    assert [(row["name"], row["status"]) for row in _json(database_url, "rule", "list", *of_shop)] == [
        ("r2", "on"),
        ("receipt", "draft"),
    ]
    shop.read()
    assert [send.dedupe_key for send in shop.sends()] == ["receipt:1001"]
    assert _json(database_url, "rule", "off", "r2", *of_shop)[0]["status"] == "off"


def test_a_trial_that_fails_says_why_and_ends_with_1(database_url: str, shop: post.Shop) -> None:
    event_id = str(shop.post(data={}))
    result = _run(database_url, "rule", "try", "receipt", "--endpoint", "shop", "--event", event_id)
    assert result.exit_code == 1
    assert "It would fail: The parameter name is not there" in result.output


def test_events_are_listed_and_read_again(database_url: str, shop: post.Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "PAGE_ROWS", 2)
    events = [shop.post(id=f"evt_{number}") for number in range(5)]
    shop.read()
    other = shop.post(made=post.endpoint(shop.office, name="other"))
    rows = _json(database_url, "list")
    assert [row["id"] for row in rows] == [other, *events[::-1]]
    assert {"event_id", "status", "reason", "delivery_count", "send_id", "request_id", "correlation_id"} <= set(rows[0])
    assert [row["id"] for row in _json(database_url, "list", "--status", "no_rule", "--endpoint", "shop")] == events[
        ::-1
    ]
    shop.on(shop.rule_id)
    assert _json(database_url, "replay", str(events[0]), str(other), "999999") == [
        {"queued": [events[0]], "skipped": [other, 999999]}
    ]
    shop.read()
    [rest] = _json(database_url, "replay", "--status", "no_rule")
    assert sorted(rest["queued"]) == [*events[1:], other]
    shop.read()
    assert [row["status"] for row in _json(database_url, "list")] == ["no_rule"] + ["done"] * 5
    assert len(shop.sends()) == 5
    # All of it once more: not one message more.
    _json(database_url, "replay", *map(str, events))
    shop.read()
    assert len(shop.sends()) == 5


def test_people_get_a_line_an_event(database_url: str, shop: post.Shop) -> None:
    shop.post()
    shop.read()
    result = _run(database_url, "list")
    assert "no_rule    1x  evt_1  No rule that is on is for events of the type order.paid." in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [("replay",), ("replay", "1", "--status", "failed"), ("replay", "1", "--endpoint", "shop"), ("replay", "0"),
     ("list", "--status", "lost")],
)  # fmt: skip
def test_wrong_usage_is_told_and_nothing_is_done(
    database_url: str, shop: post.Shop, arguments: tuple[str, ...]
) -> None:
    assert _run(database_url, *arguments).exit_code == 2


def test_what_is_not_there_or_no_good_is_told_in_a_sentence(database_url: str, shop: post.Shop) -> None:
    assert isinstance(_run(database_url, "list", "--endpoint", "none").exception, NotFound)
    assert isinstance(_run(database_url, "rule", "on", "none", "--endpoint", "shop").exception, NotFound)
    assert isinstance(_run(database_url, "endpoint", "add", "A B").exception, InvalidInput)
    basic = _run(database_url, "endpoint", "add", "b", "--scheme", "basic", "--secret-stdin", typed="\n")
    assert isinstance(basic.exception, InvalidInput)
    assert isinstance(_run(database_url, "endpoint", "add", "b", "--secret-stdin", typed="x\n").exception, InvalidInput)
    param = ("--param", "a = $..b")
    wrong = _run(
        database_url,
        "rule",
        "add",
        "x",
        "--endpoint",
        "shop",
        "--event-type",
        "t",
        "--message-type",
        "m",
        "--to",
        "$.a",
        *param,
    )
    assert isinstance(wrong.exception, InvalidInput)
