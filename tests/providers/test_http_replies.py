"""HTTP answers by their status: the table of the design's providers.md, 3.2."""

from datetime import UTC, datetime

import pytest

from console.providers.base import Accepted, Deferred, NoAnswer, Refused, Untouched
from console.providers.http_replies import WAIT_CAP_S, Response, asked_wait_s, judge


def said(status: int, *, body: bytes = b"", **headers: str) -> Response:
    return Response(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


@pytest.mark.parametrize(
    ("kind", "statuses"),
    [
        (Accepted, (200, 201, 202, 204)),
        (Refused, (400, 409, 410, 413, 415, 422, 451)),
        (Untouched, (301, 302, 307, 308, 401, 402, 403, 404, 405)),
        (Deferred, (420, 421, 425, 429)),
        (NoAnswer, (101, 408, 500, 501, 502, 503, 504, 520, 599)),
    ],
)
def test_the_status_decides(kind: type, statuses: tuple[int, ...]) -> None:
    assert {status: type(judge(said(status))) for status in statuses} == dict.fromkeys(statuses, kind)


def test_a_503_with_a_wait_was_not_taken() -> None:
    assert judge(said(503, retry_after="12")) == Deferred(judge(said(503)).reply, wait_s=12.0)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("asked", "wait_s"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("99999999999999999999", WAIT_CAP_S),
        ("Tue, 01 Dec 2026 10:01:00 GMT", 60.0),
        ("Tue, 01 Dec 2026 09:00:00 GMT", 0.0),
        ("Tue, 01 Dec 2099 09:00:00 GMT", WAIT_CAP_S),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("٧", None),
    ],
)
def test_a_wait_is_a_number_or_a_date_and_has_a_cap(asked: str, wait_s: float | None) -> None:
    """RFC 9110, 10.2.3."""
    assert asked_wait_s(said(429, retry_after=asked), now=datetime(2026, 12, 1, 10, tzinfo=UTC)) == wait_s


def test_a_date_is_measured_against_the_servers_own_clock() -> None:
    answer = said(429, retry_after="Tue, 01 Dec 2026 10:01:00 GMT", date="Tue, 01 Dec 2026 10:00:30 GMT")
    assert asked_wait_s(answer) == 30.0
    assert asked_wait_s(said(429, retry_after="Tue, 01 Dec 2026 10:01:00 GMT")) is None


def test_words_can_be_kept_in_the_database() -> None:
    answer = judge(said(400, body=b"bad \x00\xff" + b"x" * 5000))
    assert isinstance(answer, Refused)
    assert "\x00" not in answer.reply.text
    assert len(answer.reply.text) <= 2000
    assert judge(said(400, body=b"")) == Refused(judge(said(400)).reply)  # type: ignore[union-attr]


@pytest.mark.parametrize("body", [b"", b"[1]", b"nul", b"[" * 100_000, b"\xff\xfe"])
def test_a_body_that_is_no_object_has_no_fields(body: bytes) -> None:
    assert said(200, body=body).fields == {}
