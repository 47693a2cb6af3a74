"""Pages of a list: newest first, read on from the number of the last row. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from console.api.operations import PAGE_ROWS


def room(query: Mapping[str, Any]) -> tuple[int, int | None]:
    """Gives how many rows the page may have, and before which number they begin (None: with the newest)."""
    return int(query.get("limit", PAGE_ROWS)), query.get("after")


def page_of(rows: Sequence[Mapping[str, Any]], *, limit: int, reads_on_at: int | None = None) -> dict[str, Any]:
    """Gives the page out of rows that were read with a limit of `limit` + 1.

    Takes: reads_on_at, for a page that ended because it had looked far enough, not because it was full.
    """
    shown = rows[:limit]
    return {"items": shown, "next": shown[-1]["id"] if len(rows) > limit else reads_on_at}
