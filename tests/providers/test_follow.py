"""The next message's commands behind the dot of the one before (RFC 2920, 3.1): each answer is for its own message."""

import time

import pytest
from peers.sink import Sink
from peers.sink_script import Offer, Rule
from providers.drive import channel, hand_over, listen, message, until_ready

from console.providers.base import Accepted, Answer, Deferred, NoAnswer, Ready, Refused
from console.providers.smtp_channel import SmtpChannel

ONE, TWO = message("one@example.com"), message("two@example.com", message_id="<2@example.com>")


def _hand_over_followed(line: SmtpChannel) -> Answer | Ready | None:
    """Hands the first message over with the second behind it; gives the answer to the first."""
    assert isinstance(until_ready(line, ONE), Ready)
    assert line.follow(TWO)
    return hand_over(line)


def test_both_messages_arrive_whole_and_the_second_waits_for_its_own_mark() -> None:
    with Sink() as sink:
        line = channel(sink.url)
        assert isinstance(_hand_over_followed(line), Accepted)
        assert isinstance(listen(line), Ready)
        assert [each.recipient for each in sink.datas] == ["one@example.com"]
        assert isinstance(hand_over(line), Accepted)
        assert [each.wire for each in sink.accepted] == [ONE.wire, TWO.wire]
        assert sink.violations == []


@pytest.mark.parametrize(("reply", "kind"), [("550 5.7.1 no", Refused), ("451 4.3.0 later", Deferred)])
def test_a_refusal_of_the_first_says_nothing_of_the_second(reply: str, kind: type) -> None:
    with Sink(Rule(stage="DOT", recipient="one@example.com", reply=reply)) as sink:
        line = channel(sink.url)
        assert isinstance(_hand_over_followed(line), kind)
        assert isinstance(listen(line), Ready)
        assert isinstance(hand_over(line), Accepted)
        assert [each.recipient for each in sink.accepted] == ["two@example.com"]


def test_a_refusal_of_the_second_says_nothing_of_the_first() -> None:
    with Sink(Rule(stage="RCPT", recipient="two@example.com", reply="550 5.1.1 unknown")) as sink:
        line = channel(sink.url)
        assert isinstance(_hand_over_followed(line), Accepted)
        answer = listen(line)
        assert isinstance(answer, Refused)
        assert answer.reply.phase == "rcpt"


@pytest.mark.parametrize("then", ["close", "reset", "ignore"])
def test_silence_after_the_dot_puts_only_the_first_in_doubt(then: str) -> None:
    rule = Rule(stage="DOT", recipient="one@example.com", then=then, accepts=True)  # type: ignore[arg-type]
    with Sink(rule) as sink:
        line = channel(sink.url, SMTP_DOT_TIMEOUT_SECONDS="0.3")
        answer = _hand_over_followed(line)
        assert isinstance(answer, NoAnswer)
        assert answer.reply.phase == "end"
        assert not line.is_open
        assert [each.recipient for each in sink.datas] == ["one@example.com"]


def test_a_421_to_the_dot_closes_the_line_for_the_second_too() -> None:
    with Sink(Rule(stage="DOT", reply="421 4.3.2 shutting down", then="close")) as sink:
        line = channel(sink.url)
        assert isinstance(_hand_over_followed(line), Deferred)
        assert not line.is_open
        assert line.hear(time.monotonic()) is None


def test_a_line_that_dies_after_the_answer_defers_the_second() -> None:
    with Sink(
        Rule(stage="MAIL", recipient="two@example.com", then="close"), Rule(stage="RCPT", skip=1, then="close")
    ) as sink:
        line = channel(sink.url)
        assert isinstance(_hand_over_followed(line), Accepted)
        answer = listen(line)
        assert not isinstance(answer, Accepted | NoAnswer | Ready)
        assert len(sink.datas) == 1


def test_nothing_follows_where_the_server_would_not_take_it_so() -> None:
    with Sink(offer=Offer(extensions=("8BITMIME",))) as sink:
        assert not channel(sink.url).follow(TWO)
    with Sink(offer=Offer(extensions=("PIPELINING", "SIZE 20"))) as sink:
        assert not channel(sink.url).follow(TWO)
