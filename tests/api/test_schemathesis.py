"""The document against the running server: schemathesis looks for a call that it gets wrong, and finds none.

SENDONCE_TEST_SCHEMATHESIS_SECONDS gives it longer; SENDONCE_TEST_SCHEMATHESIS_SEED lets it look elsewhere.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import programs
import pytest
import visit
from sqlalchemy import Engine

from console.db import transaction
from console.sends import message_types
from console.sends.type_store import TypeRow

SECONDS = os.environ.get("SENDONCE_TEST_SCHEMATHESIS_SECONDS", "45")
SEED = os.environ.get("SENDONCE_TEST_SCHEMATHESIS_SEED", "5013018731")
# 422 is for what no schema can say: a message that expires before it may be sent, parameters that a template lacks.
CONFIG = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422"]
"""


@pytest.fixture
def address(engine: Engine, database_url: str, tmp_path: Path) -> Iterator[str]:
    """The address of a `sendonce serve` on the test's database."""
    given = {"SENDONCE_DATABASE_URL": database_url, "SENDONCE_DATA_DIR": str(tmp_path), "SENDONCE_SECRET_KEY": "k" * 32}
    command = [sys.executable, "-m", "console", "serve", "--port", "0", "--no-scheduler"]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(command, env=os.environ | given, stdout=subprocess.PIPE, stderr=log, text=True)
    assert server.stdout is not None
    found = re.search(r"http://[\d.:]+", server.stdout.readline())
    assert found, (tmp_path / "log").read_text()
    yield found[0]
    server.terminate()
    server.wait(20)
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_schemathesis_finds_nothing(engine: Engine, address: str, tmp_path: Path) -> None:
    office = visit.office(engine)
    office.campaign("sending")
    _make_type(engine, office.account_id)
    key = programs.program(engine, office.app, office.account_id, calls_per_minute=1_000_000).key
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    st = str(Path(sys.executable).with_name("st"))
    command = [
        st, "--config-file", str(config), "run", f"{address}/api/v1/openapi.json",
        "--header", f"Authorization: Bearer {key}", "--max-examples", "10", "--max-time", SECONDS, "--seed", SEED,
        "--continue-on-failure", "--no-color", "--generation-database", "none",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=280)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "11 selected / 11 total" in done.stdout


def _make_type(engine: Engine, account_id: int) -> None:
    """Makes the message type that the document's examples name, so that some calls make messages."""
    with transaction(engine) as session:
        message_types.save_template(
            session, account_id, name="parcel", subject="Your parcel", html="<p>Hello {{ name | default('there') }}</p>"
        )
        row = TypeRow(
            name="parcel_shipped", lane="normal", template="parcel", sender="Shop <shop@example.com>", window_s=None,
            mode="enforce", on_conflict="refuse", key_pattern=None, in_doubt_policy="hold", attempt_cap=12,
            age_cap_s=345_600,
        )  # fmt: skip
        message_types.put_type(session, account_id, row)
