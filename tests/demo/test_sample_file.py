"""The demo's CSV file has the flaws that real ones have, and the import's report finds each."""

from pathlib import Path

import make
from sqlalchemy import Engine

from console.audience.csv_import import import_csv
from console.db import transaction
from console.demo.sample_file import write_sample


def test_the_import_finds_what_was_put_in(engine: Engine, tmp_path: Path) -> None:
    sample = write_sample(tmp_path / "people.csv", people=400)
    assert sample.path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert min(sample.repeated, sample.broken, sample.blank, sample.nameless, sample.cityless) > 0
    assert b"\r\n\r\n" in sample.path.read_bytes()
    with transaction(engine) as session:
        account_id = make.account(session)
    with sample.path.open("rb") as file:
        report = import_csv(engine, account_id, list_name="News", file=file)
    assert report.added == sample.people == 400
    assert report.duplicates == sample.repeated
    assert len(report.refused) == sample.broken
    assert report.rows == sample.people + sample.repeated + sample.broken


def test_the_same_seed_writes_the_same_file(tmp_path: Path) -> None:
    one, two = (write_sample(tmp_path / name, people=100).path.read_bytes() for name in ("one.csv", "two.csv"))
    assert one == two
