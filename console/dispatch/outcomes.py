"""From a provider's answer to what goes on record. Pure."""

from typing import assert_never

from console.dispatch.recorder import Claimed, Outcome
from console.dispatch.timing import wait_before_retry
from console.dispatch.work_store import Terms
from console.providers.base import Accepted, Answer, Deferred, NoAnswer, Refused, Reply, Untouched
from console.sends.states import State


def outcome_of(
    answer: Answer, claimed: Claimed, job: Terms, *, was_marked: bool, retry_base_s: float, dice: float
) -> Outcome:
    """Gives the outcome to record: the state, the attempt, and when to try again.

    Takes: dice, evenly from 0 to 1, for the jitter.
    """
    attempt_no = claimed.attempt_no + 1
    # Those before a person put it back don't count against it.
    counted_no = attempt_no - claimed.attempt_base

    def outcome(
        status: State,
        word: str,
        reply: Reply,
        *,
        wait_s: float | None = None,
        provider_id: str | None = None,
        text: str | None = None,
    ) -> Outcome:
        return Outcome(
            claimed=claimed,
            status=status,
            was_marked=was_marked,
            outcome=word,
            phase=reply.phase,
            code=reply.code,
            enhanced=reply.enhanced,
            reply=text or reply.text,
            provider_id=provider_id,
            wait_s=wait_s,
        )

    def again(word: str, reply: Reply, asked_s: float | None) -> Outcome:
        if counted_no >= job.attempt_cap:
            return outcome(State.DEAD, word, reply, text=f"gave up after {attempt_no} attempts; last: {reply.text}")
        wait_s = wait_before_retry(counted_no, base_s=retry_base_s, asked_s=asked_s, dice=dice)
        return outcome(State.QUEUED, word, reply, wait_s=wait_s)

    match answer:
        case Accepted(reply, provider_id):
            return outcome(State.SENT, "accepted", reply, provider_id=provider_id)
        case Refused(reply):
            return outcome(State.FAILED, "refused", reply)
        case Deferred(reply, wait_s):
            return again("deferred", reply, wait_s)
        case NoAnswer(reply):
            if job.in_doubt_policy == "resend":
                return again("no_answer", reply, None)
            return outcome(State.IN_DOUBT, "no_answer", reply, text=f"no answer after the hand-over: {reply.text}")
        case Untouched(reason):
            return again("deferred", Reply("mail", text=reason), None)
        case never:
            assert_never(never)


def not_composed(claimed: Claimed, reason: str) -> Outcome:
    """Gives the outcome of a message that could not be made from its recipient's values: failed, alone."""
    return Outcome(claimed, State.FAILED, was_marked=False, outcome="refused", phase="compose", reply=reason)


def given_back(claimed: Claimed, *, was_marked: bool) -> Outcome:
    """Gives the outcome of a row that this worker surely never handed over, whether or not its mark went through."""
    return Outcome(claimed, State.QUEUED, was_marked=was_marked)
