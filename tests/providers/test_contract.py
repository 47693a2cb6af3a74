"""The conformance kit: the same cases, every fault, against every adapter, over real sockets.

A new provider gets a dialect (tests/peers/dialects.py) and a place in benches.py, and must pass all of this.
"""

import select
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from peers.vendor import Said
from providers.benches import HTTP_KINDS, KINDS, OWN, SMTP_FAULTS, bench
from providers.drive import deliver, hand_over, until_ready

from console.providers.base import (
    Accepted,
    Answer,
    Channel,
    Deferred,
    Message,
    NoAnswer,
    NotThere,
    Ready,
    Refused,
    Trouble,
    Unknown,
    Untouched,
)
from console.providers.doubt import Step, plan
from console.providers.names import names_of

REPLAYING = ("resend", "file")
REFUSING = ("brevo",)
KEYLESS = ("postmark", "mailjet", "ses", "smtp")
SEARCHABLE = ("brevo", "postmark", "mailjet", "file")
FAULTY = tuple(kind for kind in KINDS if kind != "file")


def a_message(number: int = 1, *, recipient: str = "rita@example.com") -> Message:
    """A message with both bodies and the headers that ours have."""
    names = names_of(1, number, f"<{number}@example.com>")
    wire = (
        b"From: =?utf-8?q?Anna_L=C3=BCtt?= <news@example.com>\r\n"
        + f"To: {recipient}\r\nMessage-ID: <{number}@example.com>\r\n".encode()
        + b"Date: Tue, 01 Dec 2026 10:00:00 +0000\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n"
        b"List-Unsubscribe: <https://console.example.com/audience/unsubscribe/abc>\r\n"
        b"List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\nMIME-Version: 1.0\r\n"
        b'Content-Type: multipart/alternative; boundary="=_b"\r\n\r\n'
        b"--=_b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
        b"Sch=C3=B6n\r\n--=_b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Hello</p>\r\n--=_b--\r\n"
    )
    return Message("news@example.com", recipient, wire, key=names.key, tag=names.tag)


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """The bench of the kind that the test is parametrized with."""
    with bench(request.param, tmp_path) as one:
        yield one


def of(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("made", kinds, indirect=True)


def opened(made: Any) -> Channel:
    channel = made.provider.connect()
    assert not isinstance(channel, Trouble), channel
    return channel


def sent(made: Any, message: Message | None = None) -> Any:
    """The whole way of one message over a channel of its own."""
    channel = opened(made)
    try:
        return deliver(channel, message or a_message())
    finally:
        channel.close()


def knows(kind: str, fault: str) -> bool:
    return fault in SMTP_FAULTS if kind == "smtp" else True


@of(*KINDS)
def test_a_message_is_accepted_by_one_request_with_the_providers_id(made: Any) -> None:
    answer = sent(made)
    assert isinstance(answer, Accepted)
    assert answer.provider_id or made.kind == "smtp"
    assert (made.tries, made.taken) == (1, 1)


@of(*KINDS)
def test_a_channel_carries_one_message_after_the_other(made: Any) -> None:
    channel = opened(made)
    answers = [deliver(channel, a_message(number)) for number in range(1, 4)]
    assert all(isinstance(answer, Accepted) for answer in answers)
    assert channel.is_open
    assert made.taken == 3
    channel.quit()
    assert not channel.is_open


@of(*KINDS)
def test_nothing_is_handed_over_before_finish(made: Any) -> None:
    channel = opened(made)
    assert isinstance(until_ready(channel, a_message()), Ready)
    time.sleep(0.1)
    channel.close()
    assert made.taken == 0


@pytest.mark.parametrize("fault", ["take and hang", "take and drop", "speak garbage", "take and say 500"])
@of(*FAULTY)
def test_a_message_that_was_taken_is_never_called_deferred_or_refused(made: Any, fault: str) -> None:
    if not knows(made.kind, fault):
        pytest.skip("SMTP has no such thing")
    made.fault(fault)
    answer = sent(made)
    # A status of success is an acceptance, whatever the rest looks like.
    expected = Accepted if fault == "speak garbage" and made.kind not in ("smtp", "ses") else NoAnswer
    assert isinstance(answer, expected), answer
    assert (made.tries, made.taken) == (1, 1)


@of(*FAULTY)
def test_an_answer_of_success_that_is_cut_is_an_acceptance_without_an_id_or_none(made: Any) -> None:
    made.fault("take and cut the answer")
    answer = sent(made)
    if isinstance(answer, Accepted):
        assert answer.provider_id is None
    else:
        # Where the library hides the status, or the cut came within it.
        assert made.kind in ("ses", "smtp")
        assert isinstance(answer, NoAnswer)
    assert (made.tries, made.taken) == (1, 1)


@of(*FAULTY)
def test_a_throttled_message_is_deferred_by_what_was_asked_for(made: Any) -> None:
    made.fault("throttle")
    answer = sent(made)
    assert isinstance(answer, Deferred), answer
    assert answer.wait_s == (None if made.kind in ("ses", "smtp") else 7.0)
    assert (made.tries, made.taken) == (1, 0)


@of(*HTTP_KINDS)
def test_a_provider_that_is_down_for_a_while_defers(made: Any) -> None:
    made.fault("be down for a while")
    answer = sent(made)
    assert isinstance(answer, Deferred)
    assert answer.wait_s == 30.0


@of(*HTTP_KINDS, "ses")
def test_a_503_that_says_nothing_leaves_the_message_in_doubt(made: Any) -> None:
    made.fault("be down")
    assert isinstance(sent(made), NoAnswer)
    assert made.tries == 1


@of(*FAULTY)
def test_a_refused_message_is_refused_with_the_reason(made: Any) -> None:
    made.fault("refuse")
    answer = sent(made)
    assert isinstance(answer, Refused), answer
    assert "to is wrong" in answer.reply.text
    assert answer.reply.code
    assert made.tries == 1


@pytest.mark.parametrize(
    "fault", ["be unsure of the account", "be out of quota", "be unsure of the sender", "redirect"]
)
@of(*FAULTY)
def test_trouble_with_the_account_burns_no_message(made: Any, fault: str) -> None:
    own = {**OWN, "smtp": SMTP_FAULTS}[made.kind]
    if fault not in own and (fault != "redirect" or made.kind in ("smtp", "ses")):
        pytest.skip("it has no such answer")
    channel = opened(made)
    made.fault(fault)
    answer = deliver(channel, a_message())
    assert isinstance(answer, Untouched), answer
    assert answer.trouble is not None
    assert answer.trouble.is_lasting
    assert not channel.is_open
    assert (made.tries, made.taken) == (1, 0)


@pytest.mark.parametrize("kind", [kind for kind in FAULTY if kind != "smtp"])
def test_a_wrong_key_is_found_out_before_any_message_and_never_told(kind: str, tmp_path: Path) -> None:
    with bench(kind, tmp_path, secret="not-the-right-one") as made:
        for trouble in (made.provider.connect(), made.provider.check()):
            assert isinstance(trouble, Trouble)
            assert trouble.is_lasting
            assert "not-the-right-one" not in trouble.reason
        assert made.tries == 0


@of(*HTTP_KINDS)
def test_a_key_that_a_provider_repeats_is_blotted_out(made: Any) -> None:
    key = "key-of-the-account"
    made.vendor.answers_all = Said(401, {"message": f"wrong: {key}", "name": "x", "Message": key, "ErrorMessage": key})
    trouble = made.provider.check()
    assert isinstance(trouble, Trouble)
    assert key not in trouble.reason
    assert "***" in trouble.reason


@of(*KINDS)
def test_a_right_key_checks_out_without_a_message(made: Any) -> None:
    assert made.provider.check() is None
    assert made.taken == 0


@of(*FAULTY)
def test_a_server_that_is_gone_is_trouble_that_burns_no_message(made: Any) -> None:
    channel = opened(made)
    ready = until_ready(channel, a_message())
    assert isinstance(ready, Ready)
    made.stop()
    if made.kind != "smtp":
        answer = hand_over(channel)
        assert isinstance(answer, Untouched), answer
        assert answer.trouble is not None
        assert not answer.trouble.is_lasting
        assert not channel.is_open
    trouble = made.provider.connect()
    assert isinstance(trouble, Trouble)
    assert not trouble.is_lasting
    assert made.taken == 0


@of(*HTTP_KINDS, "ses")
def test_a_provider_that_answers_500_to_everything_opens_no_channel(made: Any) -> None:
    made.vendor.answers_all = Said(500, {"message": "oops"})
    trouble = made.provider.connect()
    assert isinstance(trouble, Trouble)
    assert not trouble.is_lasting


@of(*HTTP_KINDS, "ses")
def test_many_channels_are_opened_on_one_question(made: Any) -> None:
    channels: list[Any] = []
    threads = [threading.Thread(target=lambda: channels.append(made.provider.connect())) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made.vendor.questions == 1
    assert len(channels) == 16
    for channel in channels:
        channel.close()


@of(*FAULTY)
def test_a_message_given_up_after_finish_is_in_doubt_and_the_late_answer_is_not_heard(made: Any) -> None:
    channel = opened(made)
    made.fault("take and hang")
    assert isinstance(until_ready(channel, a_message()), Ready)
    assert channel.finish(time.monotonic()) is None
    assert channel.deadline < time.monotonic() + 60
    assert isinstance(channel.time_out(), NoAnswer)
    assert not channel.is_open
    assert channel.time_out() is None


@of("resend", "file", "ses")
def test_a_message_given_up_before_finish_is_untouched(made: Any) -> None:
    channel = opened(made)
    assert isinstance(until_ready(channel, a_message()), Ready)
    assert isinstance(channel.time_out(), Untouched)
    assert made.taken == 0


@of("resend", "file", "ses")
def test_an_idle_channel_says_nothing_and_costs_no_thread(made: Any) -> None:
    before = threading.active_count()
    channel = opened(made)
    idle = threading.active_count()
    assert select.select([channel], [], [], 0)[0] == []
    assert channel.advance(time.monotonic()) is None
    assert channel.time_out() is None
    assert not channel.is_open
    assert idle <= before + 1


def test_the_capabilities_are_what_the_kit_takes_them_for(tmp_path: Path) -> None:
    for kind in KINDS:
        with bench(kind, tmp_path) as made:
            told = made.provider.capabilities
            expected = "replay" if kind in REPLAYING else "refuse" if kind in REFUSING else "none"
            assert told.idempotency.value == expected
            assert told.may_look_up is (kind in SEARCHABLE)
            assert bool(told.window_s) is (kind not in KEYLESS)


@of(*REPLAYING)
def test_a_key_that_is_met_again_is_answered_as_the_first_time(made: Any) -> None:
    first, second = sent(made), sent(made)
    assert isinstance(first, Accepted)
    assert isinstance(second, Accepted)
    assert first.provider_id == second.provider_id
    assert made.taken == 1


@of(*REFUSING)
def test_a_key_that_is_refused_proves_that_the_first_was_accepted(made: Any) -> None:
    sent(made)
    second = sent(made)
    assert isinstance(second, Accepted)
    assert second.provider_id is None
    assert made.taken == 1


@of(*KEYLESS)
def test_a_provider_without_keys_makes_two_messages_of_two_hand_overs(made: Any) -> None:
    sent(made)
    sent(made)
    assert made.taken == 2


@of("resend", "brevo")
def test_after_its_window_a_key_is_new_again(made: Any) -> None:
    sent(made)
    made.vendor.later_s = made.provider.capabilities.window_s + 1
    sent(made)
    assert made.taken == 2


@of("resend", "brevo")
def test_the_window_has_a_margin(made: Any) -> None:
    told = made.provider.capabilities
    assert told.safe_window_s <= told.window_s * 0.8
    assert told.safe_window_s <= told.window_s - 60


@pytest.mark.parametrize("fault", ["be at the first one still", "know the key with another body"])
@of("resend")
def test_a_conflict_over_a_key_is_neither_an_acceptance_nor_a_refusal(made: Any, fault: str) -> None:
    made.fault(fault)
    answer = sent(made)
    assert isinstance(answer, NoAnswer)
    assert (answer.wait_s is not None) is (fault == "be at the first one still")


@of("mailjet")
def test_an_error_of_the_one_message_holds_whatever_the_answers_status(made: Any) -> None:
    made.fault("refuse within a 200")
    assert isinstance(sent(made), Refused)


@of(*SEARCHABLE)
def test_a_message_is_found_by_our_own_name_for_it(made: Any) -> None:
    assert isinstance(made.provider.find(a_message()), NotThere)
    answer = sent(made)
    sent(made, a_message(2, recipient="rob@example.com"))
    found = made.provider.find(a_message())
    assert isinstance(found, Accepted)
    assert found.provider_id == answer.provider_id
    assert isinstance(made.provider.find(a_message(3)), NotThere)


@pytest.mark.parametrize(
    "said",
    [Said(500, {}), Said(429, {}), Said(401, {}), Said(200, b"<html>"), Said(200, {"Messages": 1, "Data": 1})],
    ids=["500", "429", "401", "garbage", "other fields"],
)
@of("brevo", "postmark", "mailjet")
def test_an_answer_that_says_nothing_about_a_message_is_no_absence(made: Any, said: Said) -> None:
    sent(made)
    made.vendor.answers_all = said
    assert isinstance(made.provider.find(a_message()), Unknown)


@of("brevo", "postmark", "mailjet")
def test_a_provider_that_can_not_be_asked_is_no_absence(made: Any) -> None:
    sent(made)
    made.stop()
    assert isinstance(made.provider.find(a_message()), Unknown)


@of("resend", "ses", "smtp")
def test_those_that_can_not_be_asked_say_so(made: Any) -> None:
    assert isinstance(made.provider.find(a_message()), Unknown)


@of(*FAULTY)
def test_a_message_in_doubt_is_never_accepted_twice_while_the_policy_is_hold(made: Any) -> None:
    """Follows the plan of providers.doubt to its end, with the vendor's clock and ours going alike."""
    made.fault("take and drop")
    answer = sent(made)
    assert isinstance(answer, NoAnswer)
    began = datetime(2026, 12, 1, tzinfo=UTC)
    for delay in (timedelta(seconds=5), made_window(made) - timedelta(seconds=1), timedelta(days=2)):
        if hasattr(made, "vendor"):
            made.vendor.later_s = delay.total_seconds()
        follow(made, began, began + delay)
        assert made.taken == 1


def made_window(made: Any) -> timedelta:
    return timedelta(seconds=max(made.provider.capabilities.window_s, 60.0))


def follow(made: Any, began: datetime, now: datetime) -> Answer | Step:
    """Does what the plan says until the message is accepted or held."""
    look_up_count, was_absent = 0, False
    for _ in range(40):
        step = plan(
            made.provider.capabilities,
            policy="hold",
            first_at=began,
            now=now,
            look_up_count=look_up_count,
            was_absent=was_absent,
        )
        now = max(now, step.not_before)
        match step.step:
            case Step.RESEND_SAME_KEY:
                answer = sent(made)
                if isinstance(answer, Accepted):
                    return answer
            case Step.LOOK_UP:
                look_up_count += 1
                found = made.provider.find(a_message())
                was_absent = isinstance(found, NotThere)
                if isinstance(found, Accepted):
                    return found
            case _:
                return step.step
    raise AssertionError("the plan has no end")
