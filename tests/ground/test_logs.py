"""Logs: one JSON document a line, the correlation id bound, no address readable."""

import json
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import structlog

from console import logs


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Leaves logging as it was for the other tests."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line) for line in captured.err.splitlines()]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("ann@example.com", "a***@example.com"),
        ("Ann Lee <ann.lee+news@example.com>, bob@example.net", "Ann Lee <a***@example.com>, b***@example.net"),
        ("550 5.1.1 <jörg@bücher.example>: unknown", "550 5.1.1 <j***@bücher.example>: unknown"),
        ('"john doe"@example.com refused', "***@example.com refused"),
        ("email=ann@example.com&x=1", "email=a***@example.com&x=1"),
        ("/subscribers/ann%40example.com", "/***%40example.com"),
        ("o'brien@example.com", "o***@example.com"),
        ("postgresql://user:pa:ss@db.example/ledger", "postgresql://***@db.example/ledger"),
        ("mailto:ann@example.com", "mailto:a***@example.com"),
        ("no address here, 5 @ 7", "no address here, 5 @ 7"),
    ],
)
def test_an_address_is_cut_to_its_first_letter_and_domain(text: str, masked: str) -> None:
    assert logs.mask(text) == masked


def test_masking_a_long_line_takes_time_in_proportion() -> None:
    began = time.monotonic()
    logs.mask("a" * 2_000_000 + "@")
    assert time.monotonic() - began < 1


@dataclass(frozen=True)
class _Recipient:
    email: str


def test_every_field_is_masked_however_deep(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json")
    structlog.get_logger("dispatch").warning(
        "refused ann@example.com",
        reply=b"550 <ann@example.com>",
        nested={"ann@example.com": [("ann@example.com", 1)]},
        recipient=_Recipient("ann@example.com"),
        message_id="<0123@sendonce.example>",
    )
    [line] = _lines(capsys)
    assert "ann@" not in json.dumps(line)
    assert line["message_id"] == "<0123@sendonce.example>"
    assert line["nested"] == {"a***@example.com": [["a***@example.com", 1]]}
    assert (line["level"], line["logger"], line["event"]) == ("warning", "dispatch", "refused a***@example.com")


def test_an_exception_is_one_line_and_masked(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json")
    try:
        raise ValueError("no mailbox for ann@example.com")
    except ValueError:
        structlog.get_logger().exception("failed")
    [line] = _lines(capsys)
    assert "ValueError: no mailbox for a***@example.com" in line["exception"]


def test_the_libraries_logs_go_the_same_way(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json")
    with logs.correlated("c-1"):
        logging.getLogger("apscheduler.scheduler").error("job %s for %s missed", "tick", "ann@example.com")
        logging.getLogger("apscheduler.scheduler").info("not told")
    [line] = _lines(capsys)
    assert line["event"] == "job tick for a***@example.com missed"
    assert (line["correlation_id"], line["logger"]) == ("c-1", "apscheduler.scheduler")


def test_the_correlation_id_is_bound_in_the_block_and_in_this_thread_only(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json")
    logger = structlog.get_logger()
    with logs.correlated("c-7"):
        logger.info("inside")
        other = threading.Thread(target=lambda: logger.info("elsewhere"))
        other.start()
        other.join()
    logger.info("after")
    assert [(line["event"], line.get("correlation_id")) for line in _lines(capsys)] == [
        ("inside", "c-7"),
        ("elsewhere", None),
        ("after", None),
    ]


def test_text_is_for_people_and_masked_too(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("text")
    structlog.get_logger().info("sent", email="ann@example.com")
    written = capsys.readouterr().err
    assert not written.startswith("{")
    assert "sent" in written
    assert "a***@example.com" in written


def test_auto_is_json_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("auto")
    structlog.get_logger().info("sent")
    assert _lines(capsys)[0]["event"] == "sent"
