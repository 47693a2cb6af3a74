"""Times as people type them, with their zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.campaigns.schedule import Schedule, in_zone, parse, zones
from console.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "at", "zone"),
    [
        ("2027-01-05T09:00[Europe/Lisbon]", (2027, 1, 5, 9, 0), "Europe/Lisbon"),
        ("2027-07-05T09:00[Europe/Lisbon]", (2027, 7, 5, 8, 0), "Europe/Lisbon"),
        ("2027-01-05T09:00 Europe/Berlin", (2027, 1, 5, 8, 0), "Europe/Berlin"),
        ("2027-01-05T09:00Z", (2027, 1, 5, 9, 0), None),
        ("2027-01-05T09:00:30+01:00", (2027, 1, 5, 8, 0, 30), None),
        ("2027-01-05T09:00", (2027, 1, 5, 9, 0), None),
        ("2027-10-31T02:30+02:00[Europe/Berlin]", (2027, 10, 31, 0, 30), "Europe/Berlin"),
        ("2027-10-31T02:30+01:00[Europe/Berlin]", (2027, 10, 31, 1, 30), "Europe/Berlin"),
        ("2028-02-29T12:00[Europe/Berlin]", (2028, 2, 29, 11, 0), "Europe/Berlin"),
        ("2027-12-31T23:59:30Z", (2027, 12, 31, 23, 59, 30), None),
    ],
)
def test_a_time_is_the_moment_that_clocks_in_its_zone_show_it(text: str, at: tuple[int, ...], zone: str | None) -> None:
    """C68: also on leap days and at the turn of the year."""
    assert parse(text) == Schedule(datetime(*at, tzinfo=UTC), zone)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2027-03-28T02:30[Europe/Berlin]", "skip 2027-03-28 02:30: choose 01:30 or 03:30"),
        ("2027-10-31T02:30[Europe/Berlin]", r"twice: write 2027-10-31T02:30\+02:00\[Europe/Berlin\]"),
        ("2027-01-05T09:00+05:00[Europe/Berlin]", "leave out the offset or the zone"),
        ("2027-01-05T09:00[Europe/Nowhere]", "no time zone 'Europe/Nowhere'"),
        ("2027-01-05T09:00[Europe]", "no time zone"),
        ("2027-01-05T09:00[../../etc/passwd]", "no time zone"),
        ("2027-01-05T09:00[localtime]", "no time zone"),
        ("2027-01-05T09:00[posixrules]", "no time zone"),
        ("2027-01-05T09:00[right/Europe/Lisbon]", "no time zone"),
        ("2027-02-29T09:00Z", "is not a time"),
        ("2027-01-05", "is not a time"),
        ("tomorrow", "is not a time"),
        ("", "is not a time"),
        ("0001-01-01T00:00+14:00", "out of the calendar"),
    ],
)
def test_a_time_that_is_no_one_moment_is_refused_with_what_to_write(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse(text)


@given(st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1)), st.sampled_from(zones()))  # noqa: DTZ001 - local times
def test_what_is_taken_is_shown_by_the_zones_clocks(local: datetime, zone: str) -> None:
    try:
        moment = in_zone(local, zone)
    except InvalidInput:
        return
    assert parse(f"{local.isoformat()}[{zone}]").at == moment
    assert moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == local
