"""From a provider's answer to what goes on record. Pure."""

from typing import assert_never

from console.dispatch.recorder import Claimed, Outcome
from console.dispatch.timing import wait_before_retry
from console.dispatch.work_store import Terms
from console.providers.base import Accepted, Answer, Deferred, NoAnswer, Refused, Reply, Untouched
from console.sends.states import State


def outcome_of(
    answer: Answer,
    claimed: Claimed,
    job: Terms,
    *,
    was_marked: bool,
    retry_base_s: float,
    dice: float,
    may_settle: bool = False,
) -> Outcome:
    """Gives the outcome to record: the state, the attempt, and when to try again.

    Takes: dice, evenly from 0 to 1, for the jitter; may_settle, whether the provider can settle what it did not answer
           (doubts.py): then that is in doubt, whatever the policy, and not settled before the wait is over.
    """
    told = _Told(claimed, job, was_marked=was_marked, retry_base_s=retry_base_s, dice=dice)
    match answer:
        case Accepted(reply, provider_id):
            return told.outcome(State.SENT, "accepted", reply, provider_id=provider_id)
        case Refused(reply):
            return told.outcome(State.IN_DOUBT if told.is_held else State.FAILED, "refused", reply)
        case Deferred(reply, wait_s):
            return told.again("deferred", reply, wait_s)
        case NoAnswer(reply, wait_s):
            if job.in_doubt_policy == "resend" and not may_settle:
                return told.again("no_answer", reply, None)
            text = f"no answer after the hand-over: {reply.text}"
            return told.outcome(
                State.IN_DOUBT, "no_answer", reply, text=text, wait_s=told.wait_s(wait_s) if may_settle else None
            )
        case Untouched(reason):
            return told.again("deferred", Reply("mail", text=reason), None)
        case never:
            assert_never(never)


class _Told:
    """What goes on record about one row, whatever the answer says."""

    def __init__(self, claimed: Claimed, job: Terms, *, was_marked: bool, retry_base_s: float, dice: float):
        self._claimed = claimed
        self._job = job
        self._was_marked = was_marked
        self._retry_base_s = retry_base_s
        self._dice = dice
        self._attempt_no = claimed.attempt_no + 1
        # Those before a person put it back don't count against it.
        self._counted_no = self._attempt_no - claimed.attempt_base

    @property
    def is_held(self) -> bool:
        """Whether no word about this attempt ends the doubt about the one before, which may have been taken."""
        return self._claimed.is_bound and self._job.in_doubt_policy == "hold"

    def wait_s(self, asked_s: float | None) -> float:
        return wait_before_retry(self._counted_no, base_s=self._retry_base_s, asked_s=asked_s, dice=self._dice)

    def again(self, word: str, reply: Reply, asked_s: float | None) -> Outcome:
        if self._counted_no < self._job.attempt_cap:
            return self.outcome(State.QUEUED, word, reply, wait_s=self.wait_s(asked_s))
        text = f"gave up after {self._attempt_no} attempts; last: {reply.text}"
        return self.outcome(State.IN_DOUBT if self.is_held else State.DEAD, word, reply, text=text)

    def outcome(
        self,
        status: State,
        word: str,
        reply: Reply,
        *,
        wait_s: float | None = None,
        provider_id: str | None = None,
        text: str | None = None,
    ) -> Outcome:
        return Outcome(
            claimed=self._claimed,
            status=status,
            was_marked=self._was_marked,
            outcome=word,
            phase=reply.phase,
            code=reply.code,
            enhanced=reply.enhanced,
            reply=text or reply.text,
            provider_id=provider_id,
            wait_s=wait_s,
        )


def not_composed(claimed: Claimed, reason: str) -> Outcome:
    """Gives the outcome of a message that could not be made from its recipient's values: failed, alone."""
    return Outcome(claimed, State.FAILED, was_marked=False, outcome="refused", phase="compose", reply=reason)


def given_back(claimed: Claimed, *, was_marked: bool) -> Outcome:
    """Gives the outcome of a row that this worker surely never handed over, whether or not its mark went through."""
    return Outcome(claimed, State.QUEUED, was_marked=was_marked)
