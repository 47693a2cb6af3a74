"""Importing CSV files: what gets in, what is refused, and that nothing is lost, doubled or brought back."""

import io
import subprocess
import sys
import threading
from pathlib import Path

import make
import pytest
from sqlalchemy import Engine, text

from console.audience import csv_import, store
from console.audience.csv_import import Report, import_csv
from console.db import transaction
from console.errors import InvalidInput


@pytest.fixture
def account_id(engine: Engine) -> int:
    with transaction(engine) as session:
        return make.account(session)


def bring(engine: Engine, account_id: int, content: bytes | str, *, list_name: str = "News") -> Report:
    given = content.encode() if isinstance(content, str) else content
    return import_csv(engine, account_id, list_name=list_name, file=io.BytesIO(given))


def rows(engine: Engine, columns: str = "email, attributes") -> list[tuple]:
    with transaction(engine) as session:
        return [tuple(row) for row in session.execute(text(f"SELECT {columns} FROM subscribers ORDER BY email_lower"))]


def refusals(report: Report) -> list[tuple[int, str]]:
    return [(refused.line, refused.email) for refused in report.refused]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xef\xbb\xbfemail,name\r\nanna@example.com,Anna\r\n", ("anna@example.com", {"name": "Anna"})),
        (b"\xef\xbb\xbfbo@example.com,Bo\r\n", ("bo@example.com", {"column_2": "Bo"})),
        ("\ufeffemail,name\r\nanna@example.com,Anna\r\n".encode("utf-16-le"), ("anna@example.com", {"name": "Anna"})),
        ("\ufeffemail,name\r\nanna@example.com,Anna\r\n".encode("utf-16-be"), ("anna@example.com", {"name": "Anna"})),
        (b'\xef\xbb\xbf"email","name"\r\n"cy@example.com","Cy"\r\n', ("cy@example.com", {"name": "Cy"})),
        (b"Name;E-Mail\nAnn;ann@example.com", ("ann@example.com", {"name": "Ann"})),
        (b"EMAIL\tFirst Name\nann@example.com\tAnn\n", ("ann@example.com", {"first_name": "Ann"})),
        (b'email,note\nann@example.com,"two\r\nlines, ""quoted"""\n',
         ("ann@example.com", {"note": 'two\r\nlines, "quoted"'})),
        (b"email,,name\nann@example.com,,Ann\n", ("ann@example.com", {"name": "Ann"})),
    ],
)  # fmt: skip
def test_files_come_in_as_people_have_them(
    engine: Engine, account_id: int, content: bytes, expected: tuple[str, dict[str, str]]
) -> None:
    """C37: byte-order marks, UTF-16, quotes, no headings, semicolons and tabs."""
    report = bring(engine, account_id, content)
    assert rows(engine) == [expected]
    assert (report.rows, report.added, report.joined, report.refused) == (1, 1, 1, [])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("email\na@example.com\n".encode("utf-16-le"), "UTF-16 without a byte-order mark"),
        ("\ufeffemail\na@example.com\n".encode("utf-32-le"), "UTF-32"),
        (b"PK\x03\x04 and so on", "Excel workbook"),
        (b"", "no rows"),
        (b"email,name\n", "no rows"),
        (b"name,city\nAnn,Rome\n", "one column with the heading email"),
        (b"email,name,Name\na@example.com,A,A\n", "two columns named name"),
        (b"email,stra\xdfe\na@example.com,A\n", "Windows-1252"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_whole(
    engine: Engine, account_id: int, content: bytes, words: str
) -> None:
    """C37: a clear refusal that names the encoding, never half an import."""
    with pytest.raises(InvalidInput, match=words) as refused:
        bring(engine, account_id, content)
    assert refused.value.field == "file"
    assert rows(engine) == []


def test_bad_lines_are_refused_by_number_and_the_good_ones_come_in(engine: Engine, account_id: int) -> None:
    """C41: NUL, U+FFFD and lost bytes are refused by line; who stands behind them comes in."""
    lines = [
        b"email,name,status",
        b"nina@example.com\xc2\xa0,1,",
        b"\xe2\x80\x8bolga@example.com,1,",
        b"nina@example.com,2,",
        b"jose\xcc\x81@example.com,1,",
        b"jos\xc3\xa9@example.com,2,",
        b"",
        b"pa\x00ul@example.com,1,",
        b"quin@example.com\xef\xbf\xbd,1,",
        b'lena@example.com,"two',
        b'lines",',
        b"no address,1,",
        b"max@example.com,M\xfcller,",
        b"mo@example.com,1,unsubscribed",
        b"many@example.com,1,,too,many",
        b"rita@example.com,1,",
        b'rob@example.com,"open,',
        b"sue@example.com,1,",
    ]
    report = bring(engine, account_id, b"\r\n".join(lines))
    assert refusals(report) == [
        (8, "pa�ul@example.com"),
        (9, "quin@example.com�"),
        (12, "no address"),
        (13, "max@example.com"),
        (14, "mo@example.com"),
        (15, "many@example.com"),
        (17, "rob@example.com"),
    ]
    assert "UTF-8" in report.refused[3].reason
    assert "quote" in report.refused[6].reason
    assert rows(engine, "email, attributes->>'name'") == [
        ("josé@example.com", "2"),
        ("lena@example.com", "two\r\nlines"),
        ("nina@example.com", "2"),
        ("olga@example.com", "1"),
        ("rita@example.com", "1"),
        ("sue@example.com", "1"),
    ]
    assert report.rows == report.added + report.updated + report.unchanged + len(report.refused) == 15
    assert report.duplicates == 2


@pytest.mark.parametrize(
    "cell",
    [b"x" * 140_000, b'"' + b"x" * 140_000 + b'"', b'"' + b'x, ""y"" ' * 20_000 + b'"'],
    ids=["bare", "quoted", "quoted, with commas"],
)
def test_a_cell_that_is_too_long_is_refused_as_such_with_its_address(
    engine: Engine, account_id: int, cell: bytes
) -> None:
    report = bring(engine, account_id, b"email,bio\nlong@example.com," + cell + b"\nrita@example.com,ok\n")
    [refused] = report.refused
    assert (refused.line, refused.email) == (2, "long@example.com")
    assert refused.reason == "a cell has over 131,072 characters"
    assert rows(engine, "email") == [("rita@example.com",)]
    # The limit for the others is as it was.
    assert len(bring(engine, account_id, b"email,bio\nlong@example.com," + cell).refused) == 1


def test_a_quote_that_stays_open_for_long_may_also_be_a_long_cell(engine: Engine, account_id: int) -> None:
    content = b'email,bio\nrob@example.com,"open\n' + b"rita@example.com,ok\n" * 10_000
    report = bring(engine, account_id, content)
    [refused] = report.refused
    assert (refused.line, refused.email) == (2, "rob@example.com")
    assert "not closed" in refused.reason
    assert "131,072" in refused.reason
    assert rows(engine, "email") == [("rita@example.com",)]


def test_what_is_much_too_long_for_an_address_is_shown_by_its_beginning(engine: Engine, account_id: int) -> None:
    report = bring(engine, account_id, "email\n" + "a" * 70_000 + "@example.com\nb" + "b" * 70_000 + "\x00\n")
    assert [refused.email for refused in report.refused] == ["a" * 400 + "…", "b" * 400 + "…"]


def test_the_last_line_of_a_person_counts_whatever_the_chunk(
    engine: Engine, account_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_import, "CHUNK_PEOPLE", 2)
    content = "email,external_id,name\n" + "".join(
        f"{email}@example.com,{key},{number}\n"
        for number, (email, key) in enumerate([("a", ""), ("b", ""), ("c", "1"), ("C", "2"), ("d", ""), ("A", "")])
    )
    report = bring(engine, account_id, content)
    assert (report.rows, report.added, report.unchanged, report.duplicates) == (6, 5, 1, 1)
    assert rows(engine, "email, external_id, attributes->>'name'")[0] == ("A@example.com", "", "5")
    again = bring(engine, account_id, content)
    assert (again.added, again.updated, again.unchanged, again.joined) == (0, 0, 6, 0)


def test_what_is_known_is_updated_and_columns_that_the_file_lacks_stay(engine: Engine, account_id: int) -> None:
    bring(engine, account_id, "email,name,city,status\na@example.com,Ann,Rome,pending\nb@example.com,Bo,Oslo,active\n")
    report = bring(engine, account_id, "email,name\na@example.com,Anna\nb@example.com,Bo\n", list_name="More")
    assert (report.added, report.updated, report.unchanged, report.joined) == (0, 1, 1, 2)
    assert rows(engine, "email, status, attributes") == [
        ("a@example.com", "unconfirmed", {"name": "Anna", "city": "Rome"}),
        ("b@example.com", "confirmed", {"name": "Bo", "city": "Oslo"}),
    ]


def test_an_import_brings_nobody_back(engine: Engine, account_id: int) -> None:
    """C42: who has left a list, or is suppressed, stays so, with the time and cause."""
    content = "email,name,status\nu1@example.com,One,active\nu2@example.com,Two,active\nu3@example.com,New,active\n"
    bring(engine, account_id, content.replace("New", "Old"))
    with transaction(engine) as session:
        list_id = store.list_by_name(session, account_id, "News").id
        store.suppress(
            session, account_id, email_lower="u1@example.com", kind="unsubscribed", reason="left", list_id=list_id
        )
        store.suppress(session, account_id, email_lower="u2@example.com", kind="bounced", reason="550 no such user")
    stops = "SELECT email_lower, list_id, kind, reason, created_at FROM suppressions ORDER BY id"
    with transaction(engine) as session:
        before = session.execute(text(stops)).all()
    first = bring(engine, account_id, content)
    second = bring(engine, account_id, content)
    other = bring(engine, account_id, content, list_name="L2")
    assert (first.updated, first.suppressed) == (1, 2)
    assert (second.added, second.updated, second.unchanged, second.suppressed) == (0, 0, 3, 2)
    # Leaving is per list: on another list only u2 is stopped.
    assert (other.joined, other.suppressed) == (3, 1)
    with transaction(engine) as session:
        assert session.execute(text(stops)).all() == before
    assert rows(engine, "attributes->>'name'") == [("One",), ("Two",), ("New",)]


def test_two_imports_of_one_file_at_once_neither_double_nor_lock_each_other_out(
    engine: Engine, account_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_import, "CHUNK_PEOPLE", 2000)
    gate = threading.Barrier(4)
    lines = [f"u{number}@example.com,{number % 7}" for number in range(4000)]
    reports: list[Report] = []
    errors: list[Exception] = []

    def meet(doing: str, done: int, _total: int | None) -> None:
        if (doing, done) == ("Reading", 4000):
            gate.wait()

    def run(order: int) -> None:
        try:
            file = io.BytesIO("\n".join(["email,name", *lines[::order]]).encode())
            reports.append(import_csv(engine, account_id, list_name="News", file=file, on_progress=meet))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test tells it
            errors.append(error)

    threads = [threading.Thread(target=run, args=(order,)) for order in (1, -1, 1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sum(report.added for report in reports) == 4000
    assert sum(report.joined for report in reports) == 4000
    assert all(report.added + report.updated + report.unchanged == 4000 for report in reports)
    assert len(rows(engine)) == 4000


def test_a_failed_import_leaves_nothing_behind_in_its_connection(engine: Engine, account_id: int) -> None:
    for _ in range(3):
        with pytest.raises(InvalidInput):
            bring(engine, account_id, b"email,name\n")
    assert bring(engine, account_id, "email\na@example.com\n").added == 1


_MEASURE = """
import resource, sys
from console.audience.csv_import import import_csv
from console.db import make_engine

url, account_id, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with open(path, "rb") as file:
    report = import_csv(make_engine(url), account_id, list_name="Big", file=file)
assert report.refused == [], report.refused[:3]
print(report.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_200_000_rows_take_no_more_memory_than_2_000(
    engine: Engine, account_id: int, database_url: str, tmp_path: Path
) -> None:
    peaks_kb = {}
    for count in (2_000, 200_000):
        path = tmp_path / f"{count}.csv"
        with path.open("w") as file:
            file.write("email,external_id,first_name,city\n")
            file.writelines(f'u{n}@example.com,{n},Name {n},"City, {n % 100}"\n' for n in range(count))
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, database_url, str(account_id), str(path)],
            capture_output=True, text=True, check=True, timeout=240,
        )  # fmt: skip
        rows_read, peak_kb = map(int, done.stdout.split())
        assert rows_read == count
        peaks_kb[count] = peak_kb
    assert peaks_kb[200_000] - peaks_kb[2_000] < 8_000, peaks_kb
