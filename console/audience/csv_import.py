"""The import of CSV files: staged whole, then applied in chunks of people. SQL is in import_store.py."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from psycopg import Copy
from sqlalchemy import Connection, Engine

from console.audience import csv_file, csv_rows, import_store, store
from console.db import transaction
from console.errors import InvalidInput

# People in one transaction, so that nobody waits long for a row that an import holds.
CHUNK_PEOPLE = 10_000

# Takes what is being done, how much of it is done, and of how much (None: not known).
Progress = Callable[[str, int, int | None], None]


@dataclass
class Report:
    """What an import did. rows = added + updated + unchanged + refused; duplicates are counted in unchanged.

    A duplicate is a line whose person (address and external_id) comes again further down: the last one counts.
    `joined` were put on the list; `suppressed` are in the file but have opted out, and stay so.
    """

    rows: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    duplicates: int = 0
    joined: int = 0
    suppressed: int = 0
    refused: list[csv_rows.Refused] = field(default_factory=list)


def import_csv(
    engine: Engine, account_id: int, *, list_name: str, file: BinaryIO, on_progress: Progress | None = None
) -> Report:
    """Brings the people in a CSV file into the account and onto a list, which is made when it is new.

    The file is read once, in flat memory but for the report's refused lines, into a temporary table; only a file that
    could be read to its end is applied. Importing the same file twice changes nothing the second time. Nobody who has
    opted out is brought back.

    Takes:  file, opened for reading bytes.
    Raises: InvalidInput (fields file, list) when the file as a whole can't be used; nothing is changed then.
    """
    name = list_name.strip()
    if not name:
        raise InvalidInput("Give the list a name.", field="list")
    tell = on_progress or (lambda *_: None)
    report = Report()
    with engine.connect() as connection:
        try:
            _stage(connection, file, report, tell)
            _apply(connection, account_id, name, report, tell)
        finally:
            if not connection.invalidated and not connection.closed:
                with transaction(connection) as session:
                    import_store.drop_stage(session)
    return report


def _stage(connection: Connection, file: BinaryIO, report: Report, tell: Progress) -> None:
    text = csv_file.open_text(file)
    with transaction(connection) as session:
        import_store.make_stage(session)
        with import_store.staging(session) as copy:
            _read_into(copy, csv_file.records(text), report, tell)
    # The caller opened the file and closes it.
    text.detach()
    if report.rows == 0:
        raise InvalidInput("The file has no rows.", field="file")


def _read_into(copy: Copy, records: Iterator[csv_file.Record], report: Report, tell: Progress) -> None:
    columns: csv_rows.Columns | None = None
    for record in records:
        if columns is None:
            is_person, columns = _columns(record)
            if not is_person:
                continue
        report.rows += 1
        if report.rows % 1000 == 0:
            tell("Reading", report.rows, None)
        row = _row(record, columns)
        if isinstance(row, csv_rows.Refused):
            report.refused.append(row)
        else:
            import_store.write_person(copy, row)


def _columns(record: csv_file.Record) -> tuple[bool, csv_rows.Columns]:
    """Gives whether the first record is a person already, and the columns."""
    if record.problem:
        raise InvalidInput(f"The file's first line can't be read: {record.problem}. {csv_file.SAVE_AS}", field="file")
    if csv_rows.has_headings(record.cells):
        return False, csv_rows.columns_of(record.cells)
    return True, csv_rows.columns_without_headings(record.cells)


def _row(record: csv_file.Record, columns: csv_rows.Columns) -> csv_rows.Person | csv_rows.Refused:
    if record.problem is None:
        return csv_rows.read(record.line, record.cells, columns)
    given = csv_rows.shortened(record.cells[columns.email]) if columns.email < len(record.cells) else ""
    # What could not be decoded can't be shown either, nor written anywhere.
    shown = given.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\x00", "\ufffd")
    return csv_rows.Refused(record.line, shown, record.problem)


def _apply(connection: Connection, account_id: int, list_name: str, report: Report, tell: Progress) -> None:
    with transaction(connection) as session:
        people_count = import_store.number_stage(session)
        list_id = store.make_list(session, account_id, list_name)
    report.duplicates = report.rows - len(report.refused) - people_count
    report.unchanged = report.duplicates
    for after in range(0, people_count, CHUNK_PEOPLE):
        with transaction(connection) as session:
            done = import_store.apply_chunk(
                session, account_id, list_id=list_id, after=after, upto=after + CHUNK_PEOPLE
            )
        report.added += done.added_count
        report.updated += done.updated_count
        report.unchanged += done.unchanged_count
        report.joined += done.joined_count
        report.suppressed += done.suppressed_count
        tell("Saving", min(after + CHUNK_PEOPLE, people_count), people_count)
