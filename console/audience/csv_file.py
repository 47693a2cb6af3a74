"""CSV files as people have them: encoding, delimiter, and records with the line each begins in. Pure.

One record is held in memory at a time. What a column means is in csv_rows.py.
"""

import codecs
import csv
import io
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from console.errors import InvalidInput

DELIMITERS = (",", ";", "\t")
# So far does a quote that is never closed reach: csv's own limit, which keeps memory flat.
CELL_CHARS_LIMIT = csv.field_size_limit()
SAVE_AS = "Save it as CSV in UTF-8 (in Excel: CSV UTF-8) and import it again; nothing was imported."

_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
# Bytes that are not UTF-8 come out of the decoder as these.
_UNDECODED = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Record:
    """One record: the physical line that it begins in (from 1), its cells, and why it can't be taken.

    With a problem, the cells are what there is to show of the record.
    """

    line: int
    cells: list[str]
    problem: str | None = None


def open_text(file: BinaryIO) -> io.TextIOWrapper:
    """Gives the file as text: UTF-8 with or without a byte-order mark, or UTF-16 with one.

    Bytes that are not UTF-8 are kept apart, for the line that they are in to be refused.

    Takes:  file, opened for reading bytes, at its start.
    Raises: InvalidInput (field file) naming the encoding when it is another one.
    """
    reader = file if isinstance(file, io.BufferedReader) else io.BufferedReader(file)  # type: ignore[arg-type]
    head = reader.peek(4096)[:4096]
    if head.startswith(_WORKBOOKS):
        raise InvalidInput(f"This is an Excel workbook, not a CSV file. {SAVE_AS}", field="file")
    if head.startswith(_UTF_32):
        raise InvalidInput(f"The file is encoded in UTF-32. {SAVE_AS}", field="file")
    if head.startswith(_UTF_16):
        return io.TextIOWrapper(reader, encoding="utf-16", errors="replace", newline="")
    if head.count(0) > len(head) // 4:
        raise InvalidInput(f"The file seems to be encoded in UTF-16 without a byte-order mark. {SAVE_AS}", field="file")
    return io.TextIOWrapper(reader, encoding="utf-8-sig", errors="surrogateescape", newline="")


def records(text: io.TextIOWrapper) -> Iterator[Record]:
    """Gives the file's records, without empty ones, as RFC 4180 has them, with any of the DELIMITERS.

    A record that can't be read (a quote that is never closed) is given with its problem, and reading goes on in the
    line after the one that it begins in.
    """
    lines = _Lines(text)
    delimiter = _delimiter(lines.peek())
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        lines.begin_record()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield _unreadable(lines, delimiter)
            lines.back_to_second_line()
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            continue
        if any(cells):
            yield Record(lines.first_line, cells, _problem_of(cells))


def _unreadable(lines: "_Lines", delimiter: str) -> Record:
    """Gives the record that csv gave up on, with the cells of its first line as far as they can be told."""
    first = lines.taken[0].rstrip("\r\n")
    csv.field_size_limit(max(CELL_CHARS_LIMIT, len(first)))
    try:
        cells = next(csv.reader([first], delimiter=delimiter))
        is_whole = _is_whole(first, delimiter)
    finally:
        csv.field_size_limit(CELL_CHARS_LIMIT)
    long, quote = f"a cell has over {CELL_CHARS_LIMIT:,} characters", 'a quote (") in this line is not closed'
    if is_whole:
        problem = long
    elif sum(map(len, lines.taken)) > CELL_CHARS_LIMIT:
        # The text behind the quote was read up to the limit only: it may be closed further down.
        problem = f"{quote}, or {long}"
    else:
        problem = f"{quote}, or has text behind it"
    return Record(lines.first_line, cells, problem)


def _is_whole(line: str, delimiter: str) -> bool:
    try:
        next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error:
        return False
    return True


def _problem_of(cells: list[str]) -> str | None:
    content = "".join(cells)
    if "\x00" in content:
        return "there is a NUL byte in it"
    if content.isascii():
        return None
    if _UNDECODED.search(content):
        return "it is not encoded in UTF-8 (perhaps in Windows-1252): save the file as CSV in UTF-8"
    if "\ufffd" in content:
        return "there is a � (U+FFFD) in it: a character was lost before the file was saved"
    return None


def _delimiter(first_line: str) -> str:
    bare = re.sub(r'"[^"]*"', "", first_line)
    return max(DELIMITERS, key=bare.count)


class _Lines:
    """The file's physical lines, counted; those of the present record can be gone back to."""

    def __init__(self, text: io.TextIOWrapper):
        self._text = text
        self._waiting: deque[str] = deque()
        self.taken: list[str] = []
        self.first_line = 1

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self._waiting.popleft() if self._waiting else next(self._text)
        self.taken.append(line)
        return line

    def peek(self) -> str:
        """Gives the first line, which is read again afterwards."""
        line = next(self._text, "")
        if line:
            self._waiting.append(line)
        return line

    def begin_record(self) -> None:
        self.first_line += len(self.taken)
        self.taken = []

    def back_to_second_line(self) -> None:
        self._waiting.extendleft(reversed(self.taken[1:]))
        self.taken = self.taken[:1]
