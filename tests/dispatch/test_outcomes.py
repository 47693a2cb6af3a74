"""From answers to outcomes: what is known decides the state, the type's caps and policy decide the rest."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from console.dispatch.outcomes import given_back, not_composed, outcome_of
from console.dispatch.recorder import Claimed, Outcome
from console.dispatch.work_store import Job
from console.providers.base import Accepted, Answer, Deferred, NoAnswer, Refused, Reply, Untouched
from console.sends.states import State

JOB = Job(
    1, "acme", 7, 3, "News", 1, "hold", attempt_cap=3, age_cap_s=3600, message_type="campaign", correlation_id="c1",
    trigger_source="cron",
)  # fmt: skip
CLAIMED = Claimed(1, 7, 11, 5, "r@example.com", 9, 0, "<m@example.com>", datetime(2027, 1, 1, tzinfo=UTC), {})
LATER = Reply("end", 451, "4.3.0", "451 4.3.0 later")


def _outcome(answer: Answer, *, job: Job = JOB, attempt_no: int = 0, was_marked: bool = True) -> Outcome:
    claimed = CLAIMED._replace(attempt_no=attempt_no)
    return outcome_of(answer, claimed, job, was_marked=was_marked, retry_base_s=30, dice=0)


@pytest.mark.parametrize(
    ("answer", "status", "word"),
    [
        (Accepted(Reply("end", 250, None, "250 ok"), "ABC1"), State.SENT, "accepted"),
        (Refused(Reply("rcpt", 550, "5.1.1", "550 5.1.1 no")), State.FAILED, "refused"),
        (Deferred(LATER), State.QUEUED, "deferred"),
        (NoAnswer(Reply("end", text="the server closed the connection")), State.IN_DOUBT, "no_answer"),
        (Untouched("the server closed the connection"), State.QUEUED, "deferred"),
    ],
)
def test_each_answer_has_its_state(answer: Answer, status: State, word: str) -> None:
    outcome = _outcome(answer)
    assert (outcome.status, outcome.outcome) == (status, word)
    assert outcome.attempt_no_after == 1


def test_a_deferred_message_waits_for_its_next_attempt() -> None:
    assert _outcome(Deferred(LATER), attempt_no=1).wait_s == 120
    assert _outcome(Deferred(LATER, wait_s=600), attempt_no=1).wait_s == 600


@pytest.mark.parametrize("policy", ["hold", "resend"])
def test_the_last_attempt_deferred_makes_a_dead_letter_with_the_reply(policy: str) -> None:
    outcome = _outcome(Deferred(LATER), attempt_no=2, job=replace(JOB, in_doubt_policy=policy))
    assert outcome.status is State.DEAD
    assert outcome.wait_s is None
    assert "451 4.3.0 later" in (outcome.reply or "")


def test_attempts_from_before_a_person_put_it_back_count_against_nothing() -> None:
    put_back = CLAIMED._replace(attempt_no=3, attempt_base=3)
    first = outcome_of(Deferred(LATER), put_back, JOB, was_marked=True, retry_base_s=30, dice=0)
    assert (first.status, first.wait_s, first.attempt_no_after) == (State.QUEUED, 30, 4)
    last = outcome_of(Deferred(LATER), put_back._replace(attempt_no=5), JOB, was_marked=True, retry_base_s=30, dice=0)
    assert last.status is State.DEAD


def test_no_answer_is_tried_again_only_where_a_person_chose_that() -> None:
    silence = NoAnswer(Reply("end", text="no answer in time (end)"))
    assert _outcome(silence).status is State.IN_DOUBT
    again = _outcome(silence, job=replace(JOB, in_doubt_policy="resend"))
    assert (again.status, again.outcome, again.wait_s) == (State.QUEUED, "no_answer", 30)


def test_a_row_given_back_counts_no_attempt_even_if_its_mark_did() -> None:
    outcome = given_back(CLAIMED._replace(attempt_no=4), was_marked=True)
    assert (outcome.attempt_no_before, outcome.attempt_no_after) == (5, 4)
    assert outcome.status is State.QUEUED


def test_a_message_that_cannot_be_made_fails_with_the_reason() -> None:
    outcome = not_composed(CLAIMED, "missing first_name")
    assert (outcome.status, outcome.phase, outcome.reply) == (State.FAILED, "compose", "missing first_name")
    assert (outcome.attempt_no_before, outcome.attempt_no_after) == (0, 1)
