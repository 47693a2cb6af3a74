"""One line before each hand-over and one after, alike on every way out; the correlation id goes on to the recipient."""

import json
import logging
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
import structlog
from house import House, house
from peers.sink import Sink
from peers.sink_script import Rule
from sqlalchemy import Engine

from console import logs
from console.db import transaction
from console.dispatch import call_log
from console.sends import message_types
from console.sends.intake import Request, accept
from console.sends.type_store import TypeRow

TYPE = TypeRow(
    name="code", lane="urgent", template="code", sender="Shop <shop@example.com>", window_s=None, mode="enforce",
    on_conflict="refuse", key_pattern=None, in_doubt_policy="hold", attempt_cap=3, age_cap_s=900,
)  # fmt: skip


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Leaves logging as it was for the other tests."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logs._FORM.clear()
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def _send_both(engine: Engine, database_url: str, tmp_path: Path, sink: Sink, **changes: str) -> House:
    """One message of an application and one of a campaign, sent."""
    at = house(engine, database_url, tmp_path, emails=["camp@example.com"], smtp_url=sink.url)
    account_id = at.stage.account_id
    with transaction(engine) as session:
        message_types.save_template(
            session, account_id, name="code", subject="Code {{ code }}", html="<p>{{ code }}</p>"
        )
        message_types.put_type(session, account_id, TYPE)
        accept(
            session,
            account_id,
            Request(
                to="rita@example.com", message_type="code", params={"code": "1"}, dedupe_key="code:rita@example.com:1",
                correlation_id="click-1", trigger_source="web_request", event="code.asked",
            ),
        )  # fmt: skip
    campaign_id = at.stage.started()
    with at.sending(**changes):
        at.wait_until_sent(campaign_id)
        at.wait_until(
            lambda: at.statuses()["rita@example.com"] != "queued" and at.statuses()["rita@example.com"] != "sending"
        )
    return at


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    written = [line for line in capsys.readouterr().err.splitlines() if '"event": "provider.' in line]
    return [line for line in map(json.loads, written) if line["event"] in (call_log.CALL, call_log.ANSWER)]


def test_each_hand_over_has_one_line_before_and_one_after_with_the_same_fields_in_the_same_order(
    engine: Engine, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.set_up("json")
    with Sink() as sink:
        at = _send_both(engine, database_url, tmp_path, sink)
    lines = _lines(capsys)
    assert {tuple(line) for line in lines} == {("at", "level", "logger", "event", *call_log.FIELDS, *call_log.SAID)}
    for email in ("rita@example.com", "camp@example.com"):
        send_id, key, correlation_id, message_id = at.rows("id", "dedupe_key", "correlation_id", "message_id")[email]
        before, after = [line for line in lines if line["send_id"] == send_id]
        assert [before["event"], after["event"]] == ["provider.call", "provider.answer"]
        assert {name: before[name] for name in call_log.FIELDS} == {name: after[name] for name in call_log.FIELDS}
        assert [before[name] for name in call_log.SAID] == [None] * 4
        assert (after["outcome"], after["code"]) == ("accepted", 250)
        assert (before["correlation_id"], before["message_id"]) == (correlation_id, message_id)
        assert before["dedupe_key"] == logs.mask(key)
        assert before["recipient"] == f"{email[0]}***@example.com"
    by_event = {line["business_event"]: (line["trigger_source"], line["message_type"]) for line in lines}
    assert by_event == {"code.asked": ("web_request", "code"), "campaign": ("cron", "campaign")}


def test_the_message_carries_the_correlation_id_of_what_asked_for_it(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with Sink() as sink:
        at = _send_both(engine, database_url, tmp_path, sink)
    found = {each.recipient: message_from_bytes(each.wire)["X-Correlation-ID"] for each in sink.accepted}
    assert found == at.rows("correlation_id")
    assert found["rita@example.com"] == "click-1"


def test_a_silent_provider_leaves_the_line_before_and_says_so_after(
    engine: Engine, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.set_up("text")
    with Sink(Rule(stage="DOT", recipient="rita@example.com", then="close")) as sink:
        _send_both(engine, database_url, tmp_path, sink, LOG_CALLS="single")
    lines = [line for line in capsys.readouterr().err.splitlines() if "] provider." in line]
    assert len(lines) == 2
    assert "provider.call" in lines[0]
    assert 'correlation_id="click-1"' in lines[0]
    assert 'outcome="no_answer"' in lines[1]
