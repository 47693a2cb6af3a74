"""Waiting times: pure arithmetic."""

import pytest

from console.config import Rate
from console.dispatch.timing import breaker_wait, claim_size, pace_interval_s, wait_before_retry


@pytest.mark.parametrize(("attempt_no", "wait_s"), [(1, 30), (2, 120), (3, 480), (4, 1920), (5, 7200), (50, 7200)])
def test_retries_wait_four_times_as_long_each_time(attempt_no: int, wait_s: float) -> None:
    assert wait_before_retry(attempt_no, base_s=30, asked_s=None, dice=0) == wait_s


def test_jitter_adds_up_to_a_quarter_and_takes_nothing_away() -> None:
    assert wait_before_retry(1, base_s=30, asked_s=None, dice=1) == 37.5


def test_a_retry_waits_at_least_as_long_as_the_provider_asked() -> None:
    assert wait_before_retry(1, base_s=30, asked_s=900, dice=0.5) == 900
    assert wait_before_retry(3, base_s=30, asked_s=1, dice=0) == 480


def test_attempts_count_from_one() -> None:
    with pytest.raises(ValueError, match="count from 1"):
        wait_before_retry(0, base_s=30, asked_s=None, dice=0)


def test_a_breaker_waits_longer_each_time_up_to_its_cap() -> None:
    assert [breaker_wait(count, is_lasting=False) for count in (1, 2, 3, 6, 99)] == [1, 2, 4, 30, 30]
    assert [breaker_wait(count, is_lasting=True) for count in (1, 2, 99)] == [5, 10, 300]


@pytest.mark.parametrize("rate", [Rate(5, 60), Rate(1, 1), Rate(600, 60), Rate(5000, 3600)])
def test_no_window_of_the_pace_holds_more_than_its_count(rate: Rate) -> None:
    """C02, C65: the count-th message after any message comes later than a whole period."""
    assert pace_interval_s(rate) * rate.count > rate.period_s


def test_a_slow_pace_claims_only_what_it_can_send_soon() -> None:
    assert claim_size(20, None) == 20
    assert claim_size(20, Rate(5, 60)) == 1
    assert claim_size(20, Rate(1000, 1)) == 20
