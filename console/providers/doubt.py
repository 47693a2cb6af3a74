"""What to do about a message that was handed over and got no answer, by what its provider can. Pure.

Source: the table in the design's providers.md, 4.2.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from console.providers.base import Capabilities, Idempotency

# Providers keep their records for weeks, but a person should not have to wait for the machine that long.
LOOK_UP_LIMIT = timedelta(hours=24)


class Step(StrEnum):
    """The next thing to do."""

    RESEND_SAME_KEY = "resend_same_key"  # safe: the provider makes one message of it
    LOOK_UP = "look_up"  # ask for it; found: it was accepted
    HOLD = "hold"  # in doubt, for a report or a person to settle
    RESEND = "resend"  # may make a second message, which its message type allows


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do, and not before when."""

    step: Step
    not_before: datetime


def plan(
    capabilities: Capabilities,
    *,
    policy: str,
    first_at: datetime,
    now: datetime,
    look_up_count: int = 0,
    was_absent: bool = False,
    may_hand_over: bool = True,
) -> Plan:
    """Gives the next step for a message in doubt.

    Takes:  policy, hold or resend, of its message type; first_at, when it was first handed over without an answer: a
            later hand-over with the same key moves nothing; look_up_count, how often it was looked up already;
            was_absent, whether the last look-up said NotThere; may_hand_over, whether nothing else stands in the way of
            another hand-over (an opt-out, a cancelled campaign, its age, its attempts).
    Shape:  look-ups at the settling time, then at twice, four times, ... it, up to a day.
    """
    age = now - first_at
    is_keyed = may_hand_over and capabilities.idempotency is not Idempotency.NONE
    if is_keyed and age < timedelta(seconds=capabilities.safe_window_s):
        return Plan(Step.RESEND_SAME_KEY, now)
    if may_hand_over and was_absent and capabilities.is_absence_proof:
        return Plan(Step.RESEND_SAME_KEY, now)
    has_looked = policy == "resend" and look_up_count > 0
    if capabilities.may_look_up and not has_looked:
        look_at = first_at + timedelta(seconds=capabilities.settle_s) * 2 ** min(look_up_count, 20)
        limit = min(LOOK_UP_LIMIT, timedelta(seconds=capabilities.horizon_s))
        # The first look-up is made however late, as long as the records reach back.
        reaches = age < timedelta(seconds=capabilities.horizon_s) if look_up_count == 0 else look_at - first_at < limit
        if reaches:
            return Plan(Step.LOOK_UP, max(look_at, now))
    return Plan(Step.RESEND if policy == "resend" and may_hand_over else Step.HOLD, now)
