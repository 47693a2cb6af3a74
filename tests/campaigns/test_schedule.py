"""From date, time and zone to a moment: nothing is guessed where clocks skip or repeat."""

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.campaigns.schedule import moment_of, zones
from console.errors import InvalidInput


@pytest.mark.parametrize(
    ("day", "clock", "zone", "utc"),
    [
        (date(2028, 2, 29), time(12), "Europe/Berlin", datetime(2028, 2, 29, 11, tzinfo=UTC)),
        (date(2027, 7, 1), time(8, 30), "America/New_York", datetime(2027, 7, 1, 12, 30, tzinfo=UTC)),
        (date(2027, 1, 1), time(0), "Asia/Kolkata", datetime(2026, 12, 31, 18, 30, tzinfo=UTC)),
        (date(2027, 12, 31), time(23, 59), "UTC", datetime(2027, 12, 31, 23, 59, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_as_the_zones_clocks_show_it(day: date, clock: time, zone: str, utc: datetime) -> None:
    assert moment_of(day, clock, zone) == utc


@pytest.mark.parametrize(
    ("day", "clock", "words"),
    [(date(2027, 3, 28), time(2, 30), "skip"), (date(2027, 10, 31), time(2, 30), "twice")],
)
def test_a_time_that_clocks_skip_or_repeat_is_refused(day: date, clock: time, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        moment_of(day, clock, "Europe/Berlin")
    assert caught.value.field == "time"
    assert moment_of(day, clock, "UTC").hour == 2


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../../etc/passwd", "Europe", "a" * 300, "x\x00y"])
def test_what_is_no_zone_is_refused(zone: str) -> None:
    with pytest.raises(InvalidInput, match="is no time zone") as caught:
        moment_of(date(2027, 1, 1), time(12), zone)
    assert caught.value.field == "zone"


@given(
    st.dates(date(2026, 1, 1), date(2040, 1, 1)),
    st.times().map(lambda clock: clock.replace(second=0, microsecond=0)),
    st.sampled_from(zones()),
)
def test_an_accepted_moment_reads_back_as_it_was_typed(day: date, clock: time, zone: str) -> None:
    try:
        moment = moment_of(day, clock, zone)
    except InvalidInput:
        return
    local = moment.astimezone(ZoneInfo(zone))
    assert (local.date(), local.time()) == (day, clock)
