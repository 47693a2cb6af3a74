"""The plan for a message in doubt: the table of the design's providers.md, 4.2, row by row."""

from datetime import UTC, datetime, timedelta

import pytest

from console.providers.base import Capabilities, Idempotency
from console.providers.doubt import LOOK_UP_LIMIT, Step, plan

FIRST = datetime(2026, 12, 1, 10, tzinfo=UTC)
DAY_S = 86_400.0
REPLAY = Capabilities(idempotency=Idempotency.REPLAY, window_s=DAY_S)
REFUSE = Capabilities(
    idempotency=Idempotency.REFUSE, window_s=900.0, may_look_up=True, settle_s=120.0, horizon_s=30 * DAY_S
)
SEARCH = Capabilities(may_look_up=True, settle_s=60.0, horizon_s=45 * DAY_S)
PROOF = Capabilities(may_look_up=True, settle_s=60.0, horizon_s=45 * DAY_S, is_absence_proof=True)
NONE = Capabilities()


@pytest.mark.parametrize(
    ("capabilities", "age_s", "policy", "step"),
    [
        (REPLAY, 0, "hold", Step.RESEND_SAME_KEY),
        (REPLAY, 0, "resend", Step.RESEND_SAME_KEY),
        (REPLAY, -5, "hold", Step.RESEND_SAME_KEY),
        (REPLAY, 0.8 * DAY_S - 1, "hold", Step.RESEND_SAME_KEY),
        (REPLAY, 0.8 * DAY_S, "hold", Step.HOLD),
        (REPLAY, 0.8 * DAY_S, "resend", Step.RESEND),
        (REFUSE, 719, "hold", Step.RESEND_SAME_KEY),
        (REFUSE, 720, "hold", Step.LOOK_UP),
        (REFUSE, 31 * DAY_S, "hold", Step.HOLD),
        (SEARCH, 0, "hold", Step.LOOK_UP),
        (SEARCH, 0, "resend", Step.LOOK_UP),
        (SEARCH, 10 * DAY_S, "hold", Step.LOOK_UP),
        (SEARCH, 45 * DAY_S, "hold", Step.HOLD),
        (SEARCH, 45 * DAY_S, "resend", Step.RESEND),
        (NONE, 0, "hold", Step.HOLD),
        (NONE, 0, "resend", Step.RESEND),
    ],
)
def test_the_first_step_follows_the_table(capabilities: Capabilities, age_s: float, policy: str, step: Step) -> None:
    now = FIRST + timedelta(seconds=age_s)
    assert plan(capabilities, policy=policy, first_at=FIRST, now=now).step is step


def test_a_short_window_keeps_a_margin_of_a_minute() -> None:
    short = Capabilities(idempotency=Idempotency.REPLAY, window_s=100.0)
    assert short.safe_window_s == 40.0
    assert Capabilities(idempotency=Idempotency.REPLAY, window_s=50.0).safe_window_s == 0.0


def test_a_look_up_waits_until_the_providers_records_have_settled() -> None:
    made = plan(SEARCH, policy="hold", first_at=FIRST, now=FIRST + timedelta(seconds=5))
    assert made.not_before == FIRST + timedelta(seconds=60)


def test_look_ups_grow_rarer_and_end_after_a_day() -> None:
    now, count, waits = FIRST, 0, []
    while (made := plan(SEARCH, policy="hold", first_at=FIRST, now=now, look_up_count=count)).step is Step.LOOK_UP:
        waits.append(made.not_before - FIRST)
        now, count = made.not_before, count + 1
    assert waits[:3] == [timedelta(seconds=60), timedelta(seconds=120), timedelta(seconds=240)]
    assert waits[-1] < LOOK_UP_LIMIT
    assert made.step is Step.HOLD


def test_whoever_may_get_two_is_looked_up_once_only() -> None:
    now = FIRST + timedelta(seconds=60)
    made = plan(SEARCH, policy="resend", first_at=FIRST, now=now, look_up_count=1, was_absent=True)
    assert made.step is Step.RESEND


@pytest.mark.parametrize(("capabilities", "step"), [(SEARCH, Step.LOOK_UP), (PROOF, Step.RESEND_SAME_KEY)])
def test_absence_is_proof_only_where_the_provider_promises_it(capabilities: Capabilities, step: Step) -> None:
    now = FIRST + timedelta(seconds=60)
    made = plan(capabilities, policy="hold", first_at=FIRST, now=now, look_up_count=1, was_absent=True)
    assert made.step is step


def test_an_answer_that_said_nothing_is_no_absence() -> None:
    now = FIRST + timedelta(seconds=60)
    made = plan(PROOF, policy="hold", first_at=FIRST, now=now, look_up_count=1, was_absent=False)
    assert made.step is Step.LOOK_UP
