"""Reading RFC 3464: which fact, of which class, about which message; whatever else a mail may be."""

import base64
from datetime import UTC, datetime

import pytest
from providers.dsn import report

from console.providers.delivery_status import read
from console.providers.reports import Bounce, Fact

TAG = "so-7-0123456789abcdef"


def test_a_report_tells_what_happened_to_whose_message() -> None:
    told = read(report(tag=TAG, message_id="<1@example.com>", original="Rita@example.com"))
    assert told is not None
    [only] = told
    assert only.report.fact is Fact.BOUNCED
    assert only.report.bounce is Bounce.HARD
    assert (only.report.tag, only.report.email) == (TAG, "rita@example.com")
    assert only.report.happened_at == datetime(2026, 12, 7, 9, tzinfo=UTC)
    assert "User unknown" in only.report.text
    assert only.message_id == "<1@example.com>"
    assert only.addresses == {"rita@example.com"}


@pytest.mark.parametrize(
    ("action", "fact"),
    [
        ("delayed", Fact.DEFERRED),
        ("Delivered", Fact.DELIVERED),
        ("relayed", Fact.ACCEPTED),
        ("expanded", Fact.ACCEPTED),
    ],
)
def test_other_actions_are_no_bounces(action: str, fact: Fact) -> None:
    [only] = read(report(action=action, status="4.4.1")) or []
    assert (only.report.fact, only.report.bounce) == (fact, None)


@pytest.mark.parametrize(
    ("status", "said", "bounce"),
    [
        ("5.1.1", "smtp; 550 no such user", Bounce.HARD),
        ("5.1.10", "", Bounce.HARD),
        ("5.0.0", "smtp; 550 5.1.1 no such user", Bounce.HARD),  # as exim writes it
        ("", "smtp; 550 5.1.1 no such user", Bounce.HARD),
        ("5.2.2", "smtp; 552 5.2.2 full", Bounce.SOFT),
        ("4.4.7", "smtp; 451 4.3.0 given up", Bounce.SOFT),  # failed for good, by a reason that passes
        ("5.7.1", "smtp; 550 5.7.1 blocked", Bounce.POLICY),
        ("5.1.1", "smtp; 550 5.7.1 your address is blocked", Bounce.POLICY),
        ("5.0.0", "smtp; 550 no", Bounce.OTHER),
        ("5.3.4", "smtp; 552 5.3.4 too big", Bounce.OTHER),
    ],
)
def test_only_an_address_that_there_is_not_is_a_hard_bounce(status: str, said: str, bounce: Bounce) -> None:
    [only] = read(report(status=status, said=said)) or []
    assert only.report.bounce is bounce


def test_the_form_beyond_ascii_is_read_too() -> None:
    raw = report(tag=TAG, final="ríta@example.com", message_id="<1@example.com>")
    raw = raw.replace(b"message/delivery-status", b"message/global-delivery-status")
    raw = raw.replace(b"text/rfc822-headers", b"message/global-headers")
    [only] = read(raw) or []
    assert (only.report.fact, only.report.tag, only.message_id) == (Fact.BOUNCED, TAG, "<1@example.com>")


def _nested(raw: bytes) -> bytes:
    return b'Content-Type: multipart/mixed; boundary="out"\r\n\r\n--out\r\nContent-Type: message/rfc822\r\n\r\n' + raw


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00\xff\xfe",
        b"Subject: I am away\r\n\r\nuntil Monday\r\n",
        b"Content-Type: multipart/report; report-type=delivery-status\r\n\r\nno boundary",
        b'Content-Type: multipart/report; boundary="b"\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nnothing\r\n--b--',
        _nested(report(tag=TAG)),  # one that somebody forwards
        base64.b64encode(report(tag=TAG)),
    ],
)
def test_what_is_no_report_tells_nothing(raw: bytes) -> None:
    assert read(raw) is None


@pytest.mark.parametrize("end", range(0, 2200, 40))
def test_a_report_that_is_cut_anywhere_is_read_as_far_as_it_goes(end: int) -> None:
    told = read(report(tag=TAG)[:end])
    assert not told or all(each.report.fact is Fact.BOUNCED for each in told)


def test_wrong_characters_and_dates_break_nothing() -> None:
    raw = report(tag=TAG, said="smtp; 550 5.1.1 caf\udce9".replace("\udce9", "é"))
    raw = raw.replace("é".encode(), b"\xe9\x00").replace(b"Mon, 7 Dec 2026 10:00:00 +0100", b"Mon, 99 Foo 99999 25:61")
    raw = raw.replace(b"charset=us-ascii", b"charset=klingon")
    [only] = read(raw) or []
    assert only.report.happened_at is None
    assert "\x00" not in only.report.text


def test_a_report_about_very_many_is_read_in_part() -> None:
    group = b"\r\nFinal-Recipient: rfc822; x@example.com\r\nAction: failed\r\nStatus: 5.1.1\r\n"
    raw = report().replace(b"\r\n\r\nFinal-Recipient", b"\r\n" + group * 1000 + b"\r\nFinal-Recipient", 1)
    assert len(read(raw) or []) == 20
