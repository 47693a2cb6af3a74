"""From what an approver typed, a date, a time and a zone, to a moment. Pure."""

from datetime import UTC, date, datetime, time
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from console.errors import InvalidInput


@lru_cache(maxsize=1)
def zones() -> tuple[str, ...]:
    """Gives the names of all IANA zones that carry a place (or UTC), sorted."""
    places = {name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "SystemV/"))}
    return ("UTC", *sorted(places))


def moment_of(day: date, clock: time, zone: str) -> datetime:
    """Gives the moment that a clock in `zone` shows this day and time, in UTC.

    Raises: InvalidInput (fields zone, time) when there is no such zone, or when the clocks skip or repeat that time.
    """
    try:
        info = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"{zone[:60]!r} is no time zone; use one such as Europe/Berlin or UTC.", field="zone") from None
    earlier = datetime.combine(day, clock, tzinfo=info)
    later = earlier.replace(fold=1)
    if earlier.utcoffset() == later.utcoffset():
        return earlier.astimezone(UTC)
    # In a gap no moment leads back to what was typed; in an overlap two do.
    is_gap = earlier.astimezone(UTC).astimezone(info).replace(tzinfo=None) != earlier.replace(tzinfo=None)
    what = "does not exist" if is_gap else "happens twice"
    raise InvalidInput(
        f"On {day.isoformat()} the clocks are changed in {zone}, and {clock:%H:%M} {what}."
        " Choose a time an hour earlier or later.",
        field="time",
    )
