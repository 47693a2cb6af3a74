"""The README's section on the API: its commands work as they stand, and answer what it says."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import visit
from sqlalchemy import Engine, text

README = Path(__file__).parents[2] / "README.md"
MARK = "@@@"


def _section() -> str:
    return README.read_text().partition("\n## The API\n")[2].partition("\n## ")[0]


def _blocks() -> list[tuple[str, str]]:
    """Gives the section's blocks, each with its language, in order."""
    return re.findall(r"```(\w+)\n(.*?)```", _section(), flags=re.DOTALL)


@pytest.fixture
def environ(engine: Engine, database_url: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of the commands, with a console that serves and an account acme."""
    visit.office(engine)
    (tmp_path / "parcel.html").write_text("<p>Hello {{ first_name }}</p>")
    command = tmp_path / "bin" / "sendonce"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m console "$@"\n')
    command.chmod(0o755)
    given = os.environ | {
        "SENDONCE_DATABASE_URL": database_url,
        "SENDONCE_DATA_DIR": str(tmp_path / "data"),
        "SENDONCE_SECRET_KEY": "k" * 32,
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(README.parent),
    }
    serve = [sys.executable, "-m", "console", "serve", "--port", "0", "--no-scheduler"]
    server = subprocess.Popen(serve, env=given, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    found = re.search(r"http://[\d.:]+", server.stdout.readline())
    assert found
    yield given | {"URL": found[0]}
    server.terminate()
    server.wait(20)


def test_the_commands_work_and_answer_what_stands_there(
    engine: Engine, environ: dict[str, str], tmp_path: Path
) -> None:
    shown = _blocks()
    script = f"\necho; echo {MARK}\n".join(body for language, body in shown if language == "sh")
    done = subprocess.run(
        ["bash", "-euo", "pipefail"], input=script, env=environ, cwd=tmp_path, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outputs = iter(done.stdout.split(f"\n{MARK}\n"))
    compared, last = 0, ""
    for language, body in shown:
        if language == "sh":
            last = next(outputs)
        else:
            _assert_like(json.loads(last), json.loads(body.replace("[…]", '"…"')))
            compared += 1
    assert compared == 2
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT id, status, dedupe_key FROM sends ORDER BY id")).all()
        left = connection.execute(text("SELECT count(*) FROM suppressions")).scalar_one()
    # The second call was a repeat, the third a conflict, of the batch one was wrong; the first was cancelled.
    assert [tuple(row) for row in rows] == [
        (1, "cancelled", "parcel_shipped:P-7"), (rows[1][0], "queued", "parcel_shipped:P-8"),
    ]  # fmt: skip
    assert left == 0


def test_every_status_that_the_document_knows_is_explained() -> None:
    explained = {int(number) for row in re.findall(r"^\| ([\d, ]+) \|", _section(), re.M) for number in row.split(",")}
    assert explained == {400, 401, 403, 404, 409, 413, 415, 422, 429, 503}


def _assert_like(given: Any, wanted: Any) -> None:
    """Compares with what is written; … stands for anything, in a text or for a whole value."""
    if isinstance(wanted, dict):
        assert given.keys() == wanted.keys()
        for name, value in wanted.items():
            _assert_like(given[name], value)
    elif isinstance(wanted, str) and "…" in wanted:
        assert wanted == "…" or re.fullmatch(".*".join(map(re.escape, wanted.split("…"))), given)
    else:
        assert given == wanted
