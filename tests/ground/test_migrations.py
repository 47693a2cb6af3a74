"""The schema goes up and down on PostgreSQL 15 and on the embedded 18, and says what it is made of."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, text

from console import config, placement, schema
from console.db import make_engine
from console.embedded import database_url
from console.errors import DatabaseError

OLDEST = Path("/usr/lib/postgresql/15/bin")


@pytest.fixture(scope="module")
def oldest_server() -> Iterator[str]:
    """The URL of a PostgreSQL 15 of Debian's, on a socket of its own."""
    if not (OLDEST / "initdb").exists():
        absent = f"PostgreSQL 15 is not installed in {OLDEST}"
        if os.environ.get("SENDONCE_TEST_REQUIRE_ALL") == "1":
            pytest.fail(absent)
        pytest.skip(absent)
    user = placement.server_user()
    folder = Path(tempfile.mkdtemp(prefix="pg15-"))
    placement.give(folder, user)
    options = placement.spawn_options(user)
    initdb = [str(OLDEST / "initdb"), "-D", str(folder / "data"), "-U", "postgres", "--auth=trust", "-E", "UTF8"]
    subprocess.run([*initdb, "--no-sync", "--locale=C"], check=True, capture_output=True, **options)
    command = [str(OLDEST / "postgres"), "-D", str(folder / "data"), "-k", str(folder), "-c", "listen_addresses="]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, **options)
    url = f"postgresql://postgres@/postgres?host={folder}"
    _wait_for(url)
    yield url
    server.terminate()
    server.wait(20)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def embedded_server() -> Iterator[str]:
    """The URL of the embedded PostgreSQL 18, whatever server the other tests use."""
    with tempfile.TemporaryDirectory(prefix="pg18-") as folder:
        Path(folder).chmod(0o711)
        settings = config.load({"SENDONCE_DATA_DIR": f"{folder}/data", "SENDONCE_SECRET_KEY": "k" * 32})
        with database_url(settings) as url:
            yield url


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@pytest.fixture(params=["oldest_server", "embedded_server"])
def empty(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine on an empty database, once on the oldest server and once on the newest."""
    url = request.getfixturevalue(request.param)
    name = f"migrations_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        engine = make_engine(url.replace(url.partition("@/")[2].partition("?")[0] + "?", f"{name}?", 1))
        yield engine
        engine.dispose()
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _tables(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"))
        return set(rows.scalars()) - {"alembic_version", "alembic_version_pkc"}


def test_an_empty_database_goes_to_head_back_to_nothing_and_up_again(empty: Engine) -> None:
    schema.upgrade(empty)
    made = _tables(empty)
    assert {"sends", "campaigns", "ticks"} <= made
    schema.downgrade(empty, "base")
    assert _tables(empty) == set()
    schema.upgrade(empty)
    assert _tables(empty) == made
    schema.check(empty)


def test_the_migrated_database_is_what_the_models_say(empty: Engine, capfd: pytest.CaptureFixture[str]) -> None:
    schema.upgrade(empty)
    with empty.connect() as connection:
        assert schema.differences(connection) == []
        connection.execute(text("ALTER TABLE sends ADD COLUMN stray text, ALTER COLUMN email DROP NOT NULL"))
        found = " ".join(schema.differences(connection))
        assert "stray" in found
        assert "modify_nullable" in found
    assert capfd.readouterr().out == ""


def test_rows_that_waited_for_a_person_before_0002_get_their_error_class(empty: Engine) -> None:
    schema.upgrade(empty, "0001")
    with empty.begin() as connection:
        connection.execute(text("INSERT INTO accounts (slug, name) VALUES ('acme', 'Acme')"))
        for number, (status, reply, code, phase) in enumerate(
            (
                ("dead", "gave up after 12 attempts; last: 451 4.7.1 x", 451, "rcpt"),
                ("dead", "gave up: too old; 451 4.7.1 x", 451, "rcpt"),
                ("dead", "the worker died 5 times with this message", None, None),
                ("in_doubt", "the worker died after the hand-over; no answer is known", None, "recovery"),
                ("dead", None, None, None),
                ("sent", "250 ok", 250, "end"),
            ),
            start=1,
        ):
            connection.execute(
                text(
                    "INSERT INTO sends (account_id, email, email_lower, lane, dedupe_key, status, message_id,"
                    " correlation_id, provider_reply, attempt_no)"
                    " VALUES (1, 'x', 'x', 'bulk', :number, :status, '<x>', 'x', :reply, 1)"
                ),
                {"number": str(number), "status": status, "reply": reply},
            )
            if phase:
                connection.execute(
                    text(
                        "INSERT INTO attempts (account_id, send_id, attempt_no, worker_id, provider, outcome, phase,"
                        " code) VALUES (1, :number, 1, 1, 'smtp', 'no_answer', :phase, :code)"
                    ),
                    {"number": number, "phase": phase, "code": code},
                )
    schema.upgrade(empty)
    with empty.connect() as connection:
        found = connection.execute(text("SELECT error_class FROM sends ORDER BY id")).scalars().all()
    assert found == ["451-rcpt", "too-old", "worker-died", "no-answer-recovery", "unknown", ""]
    schema.downgrade(empty, "0001")
    with empty.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM sends")).scalar_one() == 6


def test_every_table_and_every_column_has_a_comment(empty: Engine) -> None:
    schema.upgrade(empty)
    bare = text(
        """
        SELECT relname || coalesce('.' || attname, '')
        FROM pg_class LEFT JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'alembic_version'
          AND (col_description(pg_class.oid, attnum) IS NULL OR obj_description(pg_class.oid, 'pg_class') IS NULL)
        """
    )
    with empty.connect() as connection:
        assert connection.execute(bare).scalars().all() == []


def test_two_upgrades_at_once_run_one_after_the_other(empty: Engine) -> None:
    failures: list[Exception] = []

    def run() -> None:
        try:
            schema.upgrade(empty)
        except Exception as error:  # noqa: BLE001 - kept for the assertion below
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    schema.check(empty)


def test_a_table_in_use_stops_a_migration_after_the_lock_timeout_with_nothing_changed(empty: Engine) -> None:
    schema.upgrade(empty)
    before = _tables(empty)
    with empty.connect() as reader:
        # Each table, so that whichever the newest migration changes is among them.
        for table in reader.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).scalars():
            reader.execute(text(f"SELECT FROM {table}"))
        began = time.monotonic()
        with pytest.raises(DatabaseError, match="in use for 5s"):
            schema.downgrade(empty, "base")
        assert 4 < time.monotonic() - began < 30
    assert _tables(empty) == before
    with empty.connect() as connection:
        assert connection.execute(text("SHOW lock_timeout")).scalar_one() == "0"


def test_check_asks_for_an_upgrade_when_the_database_is_not_migrated(empty: Engine) -> None:
    with pytest.raises(DatabaseError, match=r"at migration none.*run `sendonce db upgrade`"):
        schema.check(empty)


def test_check_knows_a_database_that_a_newer_program_has_upgraded(empty: Engine) -> None:
    schema.upgrade(empty)
    with empty.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseError, match=r"at migration 9999.*newer"):
        schema.check(empty)
    with pytest.raises(DatabaseError, match="9999"):
        schema.upgrade(empty)


def test_check_refuses_a_server_that_is_too_old(empty: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "OLDEST_SERVER", 990000)
    with pytest.raises(DatabaseError, match=r"is PostgreSQL 1[58], but .* is needed"):
        schema.check(empty)


def test_check_names_a_server_that_does_not_answer_without_its_password() -> None:
    engine = make_engine("postgresql://somebody:very-secret@127.0.0.1:1/ledger")
    with pytest.raises(DatabaseError, match="can't be reached") as refused:
        schema.check(engine)
    assert "127.0.0.1:1/ledger" in str(refused.value)
    assert "very-secret" not in str(refused.value)


def test_check_names_what_is_wrong_with_an_option_in_the_url() -> None:
    with pytest.raises(DatabaseError, match="no_such_option"):
        schema.check(make_engine("postgresql://127.0.0.1:1/ledger?no_such_option=1"))


def test_an_unknown_revision_is_refused_in_a_sentence(empty: Engine) -> None:
    with pytest.raises(DatabaseError, match=r"can't be migrated.*7777"):
        schema.upgrade(empty, "7777")
