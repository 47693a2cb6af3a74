"""What an SMTP server is told about later reports (RFC 3461): where it offers DSN, and nothing where it does not."""

from dataclasses import replace

import pytest
from peers.sink import Sink
from peers.sink_script import Offer
from providers.drive import channel, deliver, hand_over, listen, message, until_ready

from console.providers.base import Accepted, Message, Ready
from console.providers.names import names_of
from console.providers.smtp_channel import SmtpChannel

PLAIN = ("PIPELINING", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES")
TAG = names_of(1, 7, "<1@example.com>").tag


def _said(sink: Sink, stage: str) -> list[bytes]:
    return [each.said for each in sink.events if each.stage == stage]


def _tagged(recipient: str = "rita@example.com", *, tag: str = TAG) -> Message:
    return replace(message(recipient), tag=tag)


@pytest.mark.parametrize("extensions", [(*PLAIN, "DSN"), ("DSN",)])
def test_a_server_that_can_is_asked_to_report_about_our_tag(extensions: tuple[str, ...]) -> None:
    with Sink(offer=Offer(extensions=extensions)) as sink:
        assert isinstance(deliver(channel(sink.url), _tagged()), Accepted)
        assert _said(sink, "MAIL") == [f"MAIL FROM:<news@example.com> RET=HDRS ENVID={TAG}\r\n".encode()]
        assert _said(sink, "RCPT") == [
            b"RCPT TO:<rita@example.com> NOTIFY=FAILURE,DELAY ORCPT=rfc822;rita@example.com\r\n"
        ]
        assert sink.violations == []


def test_a_server_that_can_not_is_asked_for_nothing() -> None:
    with Sink(offer=Offer(extensions=PLAIN)) as sink:
        assert isinstance(deliver(channel(sink.url), _tagged()), Accepted)
        assert _said(sink, "MAIL") == [b"MAIL FROM:<news@example.com>\r\n"]
        assert _said(sink, "RCPT") == [b"RCPT TO:<rita@example.com>\r\n"]
        assert sink.violations == []


def test_an_address_is_written_as_the_extension_wants_it() -> None:
    with Sink(offer=Offer(extensions=(*PLAIN, "DSN"))) as sink:
        assert isinstance(deliver(channel(sink.url), _tagged("rita+shop=1@example.com")), Accepted)
        assert _said(sink, "RCPT")[0].endswith(b" ORCPT=rfc822;rita+2Bshop+3D1@example.com\r\n")
        assert sink.violations == []


def test_an_address_beyond_ascii_is_reported_about_as_the_server_knows_it() -> None:
    with Sink(offer=Offer(extensions=(*PLAIN, "DSN"))) as sink:
        assert isinstance(
            deliver(channel(sink.url), replace(_tagged("ríta@example.com"), needs_smtputf8=True)), Accepted
        )
        assert _said(sink, "MAIL")[0].endswith(f" SMTPUTF8 RET=HDRS ENVID={TAG}\r\n".encode())
        assert _said(sink, "RCPT") == ["RCPT TO:<ríta@example.com> NOTIFY=FAILURE,DELAY\r\n".encode()]
        assert sink.violations == []


def test_a_message_without_a_tag_asks_for_nothing() -> None:
    with Sink(offer=Offer(extensions=(*PLAIN, "DSN"))) as sink:
        assert isinstance(deliver(channel(sink.url), message()), Accepted)
        assert _said(sink, "MAIL") == [b"MAIL FROM:<news@example.com>\r\n"]


def test_a_message_that_follows_another_has_its_own_tag() -> None:
    other = names_of(1, 8, "<2@example.com>").tag
    with Sink(offer=Offer(extensions=(*PLAIN, "DSN"))) as sink:
        line = channel(sink.url)
        assert isinstance(line, SmtpChannel)
        assert isinstance(until_ready(line, _tagged()), Ready)
        assert line.follow(_tagged("rob@example.com", tag=other))
        assert isinstance(hand_over(line), Accepted)
        assert isinstance(listen(line), Ready)
        assert isinstance(hand_over(line), Accepted)
        assert [each.partition(b"ENVID=")[2].strip().decode() for each in _said(sink, "MAIL")] == [TAG, other]
        assert sink.violations == []
