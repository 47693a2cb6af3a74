"""Keyset paging: a page is read forward from the last key seen, so rows that come or move don't shift it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from flask import request

from console.errors import InvalidInput

Row = TypeVar("Row")

PAGE_ROWS = 50
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Page(Generic[Row]):
    """Rows in order, and the cursor of the next page: None on the last."""

    rows: Sequence[Row]
    next_after: str | None


def cut(rows: Sequence[Row], *, limit: int, cursor: Callable[[Row], object]) -> Page[Row]:
    """Gives a page out of rows that were read with a limit of `limit` + 1."""
    shown = rows[:limit]
    return Page(rows=shown, next_after=str(cursor(shown[-1])) if len(rows) > limit else None)


def asked_number(name: str = "after") -> int | None:
    """Gives a number from the address line, None when it is not there.

    Raises: InvalidInput when it is no whole number that a key can have.
    """
    text = request.args.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _LARGEST):
        raise InvalidInput(f"The address line has {name}={text[:40]}, but takes a row's number.", field=name)
    return int(text)
