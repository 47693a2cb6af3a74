"""Times as people type them, with their zone. Pure.

Local times that clocks skip, or show twice, are refused with the two ways to say it: nobody's mail goes out at an hour
that was guessed.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from console.errors import InvalidInput

_FORM = re.compile(r"(?P<time>[0-9T:+.\-]+Z?)\s*(?:\[(?P<boxed>[^\]]+)\]|(?P<bare>[A-Za-z][\w/+\-]*))?", re.ASCII)
_TAKES = "2027-01-05T09:00[Europe/Lisbon], 2027-01-05T09:00Z or 2027-01-05T09:00+01:00"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A moment (aware, UTC) and the IANA zone that it was typed in; None when only an offset was given."""

    at: datetime
    zone: str | None


def parse(text: str) -> Schedule:
    """Reads ISO 8601 with an offset, or with a zone in brackets behind it (as RFC 9557 has it), or with both.

    A time with neither is taken as UTC. With both, they must agree.

    Raises: InvalidInput (fields time, zone).
    """
    match = _FORM.fullmatch(text.strip())
    try:
        typed = datetime.fromisoformat(match["time"]) if match else None
    except ValueError:
        typed = None
    if match is None or typed is None or "T" not in match["time"]:
        raise _refused(f"{text!r} is not a time; write it like {_TAKES}.")
    name = match["boxed"] or match["bare"]
    if name is None:
        return Schedule(_utc(typed if typed.tzinfo else typed.replace(tzinfo=UTC)), None)
    if typed.tzinfo is None:
        return Schedule(in_zone(typed, name), name)
    local = typed.astimezone(_zone(name))
    if local.replace(tzinfo=None) != typed.replace(tzinfo=None):
        raise _refused(f"In {name} the clock shows {local:%H:%M} ({local:%z}) then; leave out the offset or the zone.")
    return Schedule(_utc(typed), name)


@lru_cache(maxsize=1)
def zones() -> tuple[str, ...]:
    """Gives the names of all IANA zones that carry a place (or UTC), sorted."""
    places = {name for name in _names() if "/" in name and not name.startswith(("Etc/", "SystemV/"))}
    return ("UTC", *sorted(places))


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    """Gives all IANA names. `localtime` is the machine's own zone, which differs from one worker to the next."""
    return frozenset(available_timezones() - {"localtime", "posixrules", "Factory"})


def moment_of(day: date, clock: time, zone: str) -> datetime:
    """Gives the moment that a clock in `zone` shows this day and time, in UTC.

    Raises: InvalidInput (fields zone, time) when there is no such zone, or when the clocks skip or repeat that time.
    """
    return in_zone(datetime.combine(day, clock), zone)


def in_zone(local: datetime, name: str) -> datetime:
    """Gives the moment (UTC) at which clocks in the zone show `local` (a time without an offset).

    Raises: InvalidInput (fields zone, time) when there is no such zone, when they never do, or do twice.
    """
    place = _zone(name)
    first, second = (_utc(local.replace(tzinfo=place, fold=fold)) for fold in (0, 1))
    shown = first.astimezone(place).replace(tzinfo=None)
    if shown != local:
        raise _refused(
            f"Clocks in {name} skip {local:%Y-%m-%d %H:%M}: choose {_local(second, place)} or {_local(first, place)}."
        )
    if first != second:
        raise _refused(
            f"Clocks in {name} show {local:%Y-%m-%d %H:%M} twice: write {_with_offset(first, place)}[{name}]"
            f" or {_with_offset(second, place)}[{name}]."
        )
    return first


def _zone(name: str) -> ZoneInfo:
    """Gives the IANA zone of this name.

    Raises: InvalidInput (field zone).
    """
    if name not in _names():
        message = f"There is no time zone {name!r}; write it like Europe/Lisbon or America/New_York."
        raise InvalidInput(message, field="zone")
    return ZoneInfo(name)


def _utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise _refused("This time is out of the calendar's range.") from None


def _local(moment: datetime, place: ZoneInfo) -> str:
    return f"{moment.astimezone(place):%H:%M}"


def _with_offset(moment: datetime, place: ZoneInfo) -> str:
    # Whole minutes: zones with seconds in their offset ended long ago.
    return moment.astimezone(place).isoformat(timespec="minutes")


def _refused(message: str) -> InvalidInput:
    return InvalidInput(message, field="time")
