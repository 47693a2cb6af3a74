"""What the columns of an import mean: from a record to a person, or to the reason why not. Pure.

Columns: `email` (needed), `external_id`, `status`; every other one is an attribute, a merge field. Headings may be in
any case; in the names of attributes everything but letters, digits and _ becomes _, as templates need it.
A file without headings, known by an address in its first cell, has attributes column_2, column_3, ...
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from console.audience.address import parse, trim
from console.errors import InvalidInput

EMAIL_HEADINGS = frozenset({"email", "e_mail", "email_address", "e_mail_address"})
CONFIRMED_WORDS = frozenset({"confirmed", "active", "subscribed", "enabled"})
UNCONFIRMED_WORDS = frozenset({"unconfirmed", "pending", "inactive", "disabled"})
LONGEST_ID = 200
# Longer than any address (RFC 5321, 4.5.3.1), even one that is too long by mistake.
SHOWN_CHARS = 400


@dataclass(frozen=True, slots=True)
class Person:
    """One row of an import. `status` None: as it is, and confirmed for somebody new."""

    line: int
    email: str
    email_lower: str
    external_id: str
    status: str | None
    attributes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that was not taken: its line in the file, the address as given (cut when it is long), and why."""

    line: int
    email: str
    reason: str


@dataclass(frozen=True, slots=True)
class Columns:
    """Which cell means what; columns without a heading are passed over."""

    email: int
    external_id: int | None
    status: int | None
    attributes: tuple[tuple[int, str], ...]
    width: int


def has_headings(cells: Sequence[str]) -> bool:
    """Tells whether a file's first record is headings and not a person already."""
    try:
        parse(cells[0])
    except InvalidInput:
        return True
    return False


def columns_of(cells: Sequence[str]) -> Columns:
    """Reads the headings.

    Raises: InvalidInput (field file) without an `email` column, or with two columns of one name.
    """
    names = [_name(cell) for cell in cells]
    doubled = sorted({name for name in names if name and names.count(name) > 1})
    if doubled:
        raise InvalidInput(f"The file has two columns named {doubled[0]}; rename one of them.", field="file")
    found = [index for index, name in enumerate(names) if name in EMAIL_HEADINGS]
    if len(found) != 1:
        shown = ", ".join(trim(cell)[:40] for cell in cells[:20])
        raise InvalidInput(
            f"The file needs one column with the heading email; its first line has: {shown}.", field="file"
        )
    special = {*EMAIL_HEADINGS, "external_id", "status", ""}
    return Columns(
        email=found[0],
        external_id=names.index("external_id") if "external_id" in names else None,
        status=names.index("status") if "status" in names else None,
        attributes=tuple((index, name) for index, name in enumerate(names) if name not in special),
        width=len(names),
    )


def columns_without_headings(cells: Sequence[str]) -> Columns:
    """Gives the columns of a file whose first record is a person already."""
    attributes = tuple((index, f"column_{index + 1}") for index in range(1, len(cells)))
    return Columns(email=0, external_id=None, status=None, attributes=attributes, width=len(cells))


def read(line: int, cells: Sequence[str], columns: Columns) -> Person | Refused:
    """Gives the person of a record, or why it is refused. Cells that are missing at the end are left alone."""
    given = trim(cells[columns.email]) if columns.email < len(cells) else ""
    shown = shortened(given)
    if any(cells[columns.width :]):
        return Refused(line, shown, f"it has {len(cells)} cells, but there are {columns.width} columns")
    external_id = _cell(cells, columns.external_id)
    if len(external_id) > LONGEST_ID:
        return Refused(line, shown, f"its external_id is longer than {LONGEST_ID} characters")
    word = _cell(cells, columns.status).lower()
    if word and word not in CONFIRMED_WORDS and word not in UNCONFIRMED_WORDS:
        return Refused(
            line, shown, f"its status {word[:40]!r} is none of {', '.join(sorted(CONFIRMED_WORDS | UNCONFIRMED_WORDS))}"
        )
    try:
        address = parse(given)
    except InvalidInput as error:
        return Refused(line, shown, str(error))
    return Person(
        line=line,
        email=address.email,
        email_lower=address.email_lower,
        external_id=external_id,
        status=None if not word else "confirmed" if word in CONFIRMED_WORDS else "unconfirmed",
        attributes={name: trim(cells[index]) for index, name in columns.attributes if index < len(cells)},
    )


def shortened(given: str) -> str:
    """Gives what a report shows of an address: all of it, or the beginning of what is much too long for one."""
    return given if len(given) <= SHOWN_CHARS else given[:SHOWN_CHARS] + "…"


def _cell(cells: Sequence[str], index: int | None) -> str:
    return trim(cells[index]) if index is not None and index < len(cells) else ""


def _name(heading: str) -> str:
    return re.sub(r"\W+", "_", unicodedata.normalize("NFC", trim(heading)).lower()).strip("_")
