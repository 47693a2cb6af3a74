"""One SMTP dialogue over real sockets: each fault at each phase gives the answer that is surely known."""

import pytest
from peers.sink import Sink
from peers.sink_script import Offer, Rule
from providers.drive import channel, deliver, hand_over, message, until_ready

from console.providers.base import Accepted, Deferred, NoAnswer, Ready, Refused, Untouched

PLAIN_OFFER = Offer(extensions=("8BITMIME",))
OFFERS = pytest.mark.parametrize("offer", [Offer(), PLAIN_OFFER], ids=["pipelined", "one by one"])


@OFFERS
def test_several_messages_go_over_one_connection(offer: Offer) -> None:
    with Sink(offer=offer) as sink:
        line = channel(sink.url)
        answers = [deliver(line, message(f"r{number}@example.com")) for number in range(3)]
        assert all(isinstance(answer, Accepted) for answer in answers)
        assert [each.recipient for each in sink.accepted] == [f"r{number}@example.com" for number in range(3)]
        assert sink.connections_made == 1
        assert not sink.violations


def test_nothing_is_taken_before_the_dot() -> None:
    """The body goes without its terminator, so that a message can still be stopped after it."""
    with Sink() as sink:
        line = channel(sink.url)
        assert isinstance(until_ready(line, message()), Ready)
        line.close()
        sink.wait_for(lambda sink: any(event.stage == "GONE" for event in sink.events))
        assert not sink.datas


@OFFERS
@pytest.mark.parametrize(
    ("stage", "reply", "expected", "phase"),
    [
        ("MAIL", "451 4.3.0 busy", Deferred, "mail"),
        ("MAIL", "550 5.1.7 bad sender", Refused, "mail"),
        ("RCPT", "450 4.2.0 greylisted", Deferred, "rcpt"),
        ("RCPT", "452 4.5.3 too many", Deferred, "rcpt"),
        ("RCPT", "550 5.1.1 no user", Refused, "rcpt"),
        ("RCPT", "550-5.1.1 The account\n550 5.1.1 is gone", Refused, "rcpt"),
        ("RCPT", "450 5.1.1 mixed", Deferred, "rcpt"),
        ("DATA", "554 5.5.1 no valid recipients", Refused, "data"),
        ("DATA", "452 4.3.1 system full", Deferred, "data"),
        ("DOT", "451 4.7.1 later", Deferred, "end"),
        ("DOT", "554 5.7.1 spam", Refused, "end"),
        ("DOT", "550 temporary problem, try later", Refused, "end"),
        ("DOT", "299 fine", Accepted, "end"),
        ("DOT", "354 go ahead", NoAnswer, "end"),
        ("DOT", "100 % sure", NoAnswer, "end"),
        ("DOT", b"hello there\r\n", NoAnswer, "end"),
    ],
)
def test_the_first_digit_decides_at_every_stage(
    offer: Offer, stage: str, reply: str, expected: type, phase: str
) -> None:
    """C30, and C74's nonsense answer to the dot. RFC 5321, 4.2.1 and 4.2.5."""
    with Sink(Rule(stage=stage, reply=reply, times=1), offer=offer) as sink:  # type: ignore[arg-type]
        answer = deliver(channel(sink.url), message())
        assert isinstance(answer, expected)
        assert answer.reply.phase == phase  # type: ignore[union-attr]
        text = reply.decode() if isinstance(reply, bytes) else reply
        assert answer.reply.text == text.replace("\r\n", "\n").strip()  # type: ignore[union-attr]


@OFFERS
@pytest.mark.parametrize("stage", ["MAIL", "RCPT", "DATA"])
def test_the_next_message_starts_clean_after_a_refusal(offer: Offer, stage: str) -> None:
    """C26: a transaction broken off half-way is reset; the server never sees MAIL inside one."""
    with Sink(Rule(stage=stage, reply="550 5.1.1 no", times=1), offer=offer) as sink:  # type: ignore[arg-type]
        line = channel(sink.url)
        assert isinstance(deliver(line, message("q1@example.com")), Refused)
        if not line.is_open:  # DATA was taken in the same group although RCPT failed
            line = channel(sink.url)
        assert isinstance(deliver(line, message("q2@example.com")), Accepted)
        assert [each.recipient for each in sink.accepted] == ["q2@example.com"]
        assert not sink.violations


def test_data_taken_after_a_refused_recipient_is_never_ended_by_a_dot() -> None:
    """A dot there would hand a message over that nobody should get; only the closed line surely stops it."""
    script = [Rule(stage="RCPT", reply="550 5.1.1 no", times=1), Rule(stage="DATA", reply="354 go on", times=1)]
    with Sink(*script) as sink:
        line = channel(sink.url)
        assert isinstance(deliver(line, message()), Refused)
        assert not line.is_open
        assert not sink.datas


@pytest.mark.parametrize("then", ["close", "reset", "ignore"])
def test_silence_after_the_dot_is_in_doubt(then: str) -> None:
    with Sink(Rule(stage="DOT", then=then, accepts=True)) as sink:  # type: ignore[arg-type]
        answer = deliver(channel(sink.url, SMTP_DOT_TIMEOUT_SECONDS="0.3"), message())
        assert isinstance(answer, NoAnswer)
        assert len(sink.accepted) == 1


@OFFERS
@pytest.mark.parametrize("then", ["close", "reset", "ignore"])
@pytest.mark.parametrize("stage", ["MAIL", "RCPT", "DATA"])
def test_silence_before_the_dot_is_deferred(offer: Offer, stage: str, then: str) -> None:
    with Sink(Rule(stage=stage, then=then, times=1), offer=offer) as sink:  # type: ignore[arg-type]
        answer = deliver(channel(sink.url, SMTP_TIMEOUT_SECONDS="0.3"), message())
        assert isinstance(answer, Deferred)
        assert not sink.datas


def test_a_421_ends_the_session_and_defers_the_message() -> None:
    """C27: after 421 nothing more is said on the line. RFC 5321, 3.8."""
    rule = Rule(stage="DATA", reply="421 4.3.2 shutting down", then="ignore", times=1)
    with Sink(rule, offer=PLAIN_OFFER) as sink:
        line = channel(sink.url)
        assert isinstance(deliver(line, message()), Deferred)
        assert not line.is_open


def test_a_421_after_the_dot_is_the_answer_to_the_dot() -> None:
    with Sink(Rule(stage="DOT", reply="421 4.3.2 shutting down", then="close")) as sink:
        assert isinstance(deliver(channel(sink.url), message()), Deferred)


def test_a_kept_connection_found_dead_costs_no_attempt() -> None:
    with Sink() as sink:
        line = channel(sink.url)
        assert isinstance(deliver(line, message("a@example.com")), Accepted)
        sink.cut_connections()
        assert isinstance(deliver(line, message("b@example.com")), Untouched)
        assert isinstance(deliver(channel(sink.url), message("b@example.com")), Accepted)
        assert [each.recipient for each in sink.accepted] == ["a@example.com", "b@example.com"]


@pytest.mark.parametrize("rule", [Rule(stage="QUIT", then="close"), Rule(stage="QUIT", reply="421 4.4.2 timeout")])
def test_trouble_at_quit_changes_nothing(rule: Rule) -> None:
    """C25. RFC 5321, 4.1.1.10."""
    with Sink(rule) as sink:
        line = channel(sink.url)
        assert isinstance(deliver(line, message()), Accepted)
        line.quit()
        assert len(sink.accepted) == 1


def test_a_refused_reset_closes_the_line_before_the_next_message() -> None:
    script = [Rule(stage="RCPT", reply="450 4.2.1 later", times=1), Rule(stage="RSET", reply="502 5.5.1 no")]
    with Sink(*script, offer=PLAIN_OFFER) as sink:
        line = channel(sink.url)
        assert isinstance(deliver(line, message()), Deferred)
        assert isinstance(deliver(line, message()), Deferred)
        assert not line.is_open
        assert not sink.datas


def test_dots_at_line_starts_survive() -> None:
    """C36. RFC 5321, 4.5.2."""
    body = ".\r\n..two\r\n.three\r\nend.\r\n"
    with Sink() as sink:
        assert isinstance(deliver(channel(sink.url), message(body=body)), Accepted)
        assert sink.accepted[0].wire.endswith(b"\r\n\r\n" + body.encode())


def test_an_address_that_needs_smtputf8_is_refused_where_it_is_not_offered() -> None:
    """RFC 6531, 3.2: the client must not send it."""
    with Sink(offer=PLAIN_OFFER) as sink:
        what = message("josé@example.com")
        wide = type(what)(what.mail_from, what.rcpt_to, what.wire, needs_smtputf8=True)
        line = channel(sink.url)
        assert isinstance(deliver(line, wide), Refused)
        assert isinstance(deliver(line, message()), Accepted)


def test_an_address_that_needs_smtputf8_goes_where_it_is_offered() -> None:
    with Sink() as sink:
        what = message("josé@example.com")
        wide = type(what)(what.mail_from, what.rcpt_to, what.wire, needs_smtputf8=True)
        assert isinstance(deliver(channel(sink.url), wide), Accepted)
        assert sink.accepted[0].recipient == "josé@example.com"


def test_a_message_over_the_servers_size_is_refused_before_it_is_sent() -> None:
    with Sink(offer=Offer(extensions=("SIZE 200",))) as sink:
        answer = deliver(channel(sink.url), message(body="x" * 300 + "\r\n"))
        assert isinstance(answer, Refused)
        assert "200" in answer.reply.text


def test_a_big_body_is_written_as_the_server_reads() -> None:
    body = ("y" * 70 + "\r\n") * 60_000
    with Sink() as sink:
        assert isinstance(deliver(channel(sink.url), message(body=body)), Accepted)
        assert sink.accepted[0].wire.endswith(body.encode())


def test_an_unasked_421_while_the_mark_is_written_defers_the_message() -> None:
    """The server may end the session between the body and the dot; then nothing was handed over."""
    with Sink() as sink:
        line = channel(sink.url)
        assert isinstance(until_ready(line, message()), Ready)
        sink.cut_connections()
        answer = hand_over(line)
        # Whether the kernel still took the dot decides; a dot that the kernel took is never called deferred.
        assert isinstance(answer, (Deferred, NoAnswer))
        assert not sink.datas
