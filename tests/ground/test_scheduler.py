"""The clock: ticks go on while there is work, fail alone, outlive the database's absence, and end when told to."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, text

from console import config
from console.config import Settings
from console.db import make_engine, transaction
from console.scheduler import MOST_ROUNDS, Scheduler, Tick, ticks
from console.ticks_store import newest_run_age_s


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return config.load(
        {"SENDONCE_DATA_DIR": str(tmp_path), "SENDONCE_SECRET_KEY": "k" * 32, "SENDONCE_TICK_SECONDS": "0.1"}
    )


@pytest.fixture
def run(engine: Engine, settings: Settings) -> Iterator[Callable[..., Scheduler]]:
    """Starts a scheduler over the given ticks; stopped at the end of the test."""
    started: list[Scheduler] = []

    def start(*table: Tick) -> Scheduler:
        scheduler = Scheduler(table, engine, settings)
        scheduler.start()
        started.append(scheduler)
        return scheduler

    yield start
    for scheduler in started:
        scheduler.stop()


def _until(is_true: Callable[[], object], *, within_s: float = 10) -> None:
    deadline = time.monotonic() + within_s
    while not is_true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def _row(engine: Engine, name: str) -> dict:
    with engine.connect() as connection:
        found = connection.execute(text("SELECT * FROM ticks WHERE name = :name"), {"name": name})
        return dict(found.mappings().first() or {})


def test_the_table_names_each_tick_once(settings: Settings) -> None:
    table = ticks(settings)
    assert {tick.name for tick in table} == {
        "campaigns.start_due",
        "campaigns.build_audiences",
        "campaigns.finish_done",
        "campaigns.cancel_rest",
        "dispatch.reap",
        "inbox.forget_bodies",
        "inbox.read_events",
        "inbox.read_bounces",
        "inbox.read_reports",
        "inbox.visit_mailboxes",
    }
    assert len({tick.name for tick in table}) == len(table)


def test_every_tick_of_the_table_runs_on_an_empty_database_and_writes_it_down(
    engine: Engine, settings: Settings, run: Callable[..., Scheduler]
) -> None:
    table = ticks(settings)
    run(*table)
    _until(lambda: all(_row(engine, tick.name) for tick in table))
    assert [_row(engine, tick.name)["error"] for tick in table] == [None] * len(table)


def test_a_tick_runs_again_and_again_and_keeps_its_row_fresh(engine: Engine, run: Callable[..., Scheduler]) -> None:
    runs: list[float] = []

    def count(_engine: Engine, _settings: Settings) -> int:
        runs.append(time.monotonic())
        return 0

    run(Tick("count", 0.1, count))
    _until(lambda: len(runs) >= 4)
    assert runs[3] - runs[0] >= 0.2
    with transaction(engine) as session:
        age_s = newest_run_age_s(session)
    assert age_s is not None
    assert age_s < 1


def test_a_tick_goes_on_while_there_is_work_without_waiting_for_the_next(run: Callable[..., Scheduler]) -> None:
    left = [25]

    def work(_engine: Engine, _settings: Settings) -> int:
        left[0] = max(0, left[0] - 1)
        return left[0]

    run(Tick("work", 3600, work))
    _until(lambda: left[0] == 0)


def test_a_tick_that_always_finds_work_comes_to_an_end(
    run: Callable[..., Scheduler], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.scheduler.MOST_ROUNDS", 5)
    assert MOST_ROUNDS > 5
    rounds: list[int] = []

    def endless(_engine: Engine, _settings: Settings) -> int:
        rounds.append(1)
        return 1

    run(Tick("endless", 3600, endless))
    _until(lambda: len(rounds) == 5)
    time.sleep(0.3)
    assert len(rounds) == 5


def test_a_failing_tick_is_written_down_and_stops_no_other(engine: Engine, run: Callable[..., Scheduler]) -> None:
    good: list[int] = []

    def fail(_engine: Engine, _settings: Settings) -> int:
        raise ValueError("no such campaign")

    def work(_engine: Engine, _settings: Settings) -> int:
        good.append(1)
        return 0

    run(Tick("fail", 0.1, fail), Tick("work", 0.1, work))
    _until(lambda: len(good) >= 3 and _row(engine, "fail"))
    row = _row(engine, "fail")
    assert row["error"] == "no such campaign"
    assert row["failed_at"] is not None
    assert row["ran_at"].year == 1970
    assert _row(engine, "work")["error"] is None


def test_the_clock_outlives_the_absence_of_the_database(
    server_url: str, settings: Settings, run: Callable[..., Scheduler]
) -> None:
    """The database is away (dropped, with its sessions cut), then there again under the same name."""
    name = f"away_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        base, _, query = server_url.partition("?")
        engine = make_engine(base.rpartition("/")[0] + f"/{name}" + (f"?{query}" if query else ""))
        outcomes: list[str] = []

        def ask(engine: Engine, _settings: Settings) -> int:
            try:
                with engine.connect() as connection:
                    connection.execute(text("SELECT 1"))
            except Exception:
                outcomes.append("failed")
                raise
            outcomes.append("answered")
            return 0

        scheduler = Scheduler((Tick("ask", 0.1, ask),), engine, settings)
        scheduler.start()
        _until(lambda: "answered" in outcomes)
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        _until(lambda: outcomes[-1] == "failed")
        admin.execute(f"CREATE DATABASE {name}")
        _until(lambda: outcomes[-1] == "answered")
        scheduler.stop()
        engine.dispose()
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_long_tick_does_not_run_twice_at_once(run: Callable[..., Scheduler]) -> None:
    running = threading.Semaphore(1)
    overlaps: list[int] = []
    ends: list[int] = []

    def slow(_engine: Engine, _settings: Settings) -> int:
        if not running.acquire(blocking=False):
            overlaps.append(1)
            return 0
        time.sleep(0.4)
        running.release()
        ends.append(1)
        return 0

    run(Tick("slow", 0.05, slow))
    _until(lambda: len(ends) >= 2)
    assert overlaps == []


def test_stopping_cancels_a_statement_that_would_go_on_for_long(database_url: str, settings: Settings) -> None:
    engine = make_engine(database_url)
    begun = threading.Event()

    def sleep(engine: Engine, _settings: Settings) -> int:
        with engine.connect() as connection:
            begun.set()
            connection.execute(text("SELECT pg_sleep(60)"))
        return 0

    scheduler = Scheduler((Tick("sleep", 3600, sleep),), engine, settings)
    scheduler.start()
    assert begun.wait(10)
    began = time.monotonic()
    scheduler.stop(within_s=0.5)
    assert time.monotonic() - began < 1.5
    assert not scheduler.is_running()
    engine.dispose()
