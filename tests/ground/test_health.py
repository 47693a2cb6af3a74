"""/healthz asks nothing of the database; /readyz names what is wrong with it, its migrations or the clock."""

from pathlib import Path

import psycopg
import pytest
from flask import Flask
from sqlalchemy import Engine, text

from console import config, schema, ticks_store
from console.app import create_app
from console.db import make_engine, transaction


def _app(tmp_path: Path, engine: Engine) -> Flask:
    return create_app(config.load({"SENDONCE_DATA_DIR": str(tmp_path), "SENDONCE_SECRET_KEY": "k" * 32}), engine)


def _ran(engine: Engine, *, ago_s: float) -> None:
    with transaction(engine) as session:
        ticks_store.record_run(session, "campaigns.start_due")
        session.execute(text("UPDATE ticks SET ran_at = now() - make_interval(secs => :ago)"), {"ago": ago_s})


def test_healthz_answers_without_a_database(tmp_path: Path) -> None:
    client = _app(tmp_path, make_engine("postgresql://nobody@127.0.0.1:1/none")).test_client()
    answer = client.get("/healthz")
    assert (answer.status_code, answer.get_json()) == (200, {"status": "alive"})


def test_readyz_is_ready_while_a_tick_is_fresh(tmp_path: Path, engine: Engine) -> None:
    _ran(engine, ago_s=20)
    answer = _app(tmp_path, engine).test_client().get("/readyz")
    assert (answer.status_code, answer.get_json()) == (200, {"status": "ready", "problems": {}})


def test_readyz_names_a_clock_that_stands_still(tmp_path: Path, engine: Engine) -> None:
    _ran(engine, ago_s=60)
    answer = _app(tmp_path, engine).test_client().get("/readyz")
    assert answer.status_code == 503
    assert "60 seconds ago" in answer.get_json()["problems"]["scheduler"]


def test_readyz_names_a_clock_that_never_ran_well(tmp_path: Path, engine: Engine) -> None:
    with transaction(engine) as session:
        ticks_store.record_failure(session, "campaigns.start_due", error="broken")
    answer = _app(tmp_path, engine).test_client().get("/readyz")
    assert answer.status_code == 503
    assert "No tick has run yet" in answer.get_json()["problems"]["scheduler"]


def test_a_failure_does_not_take_away_that_the_tick_ran_well_before(tmp_path: Path, engine: Engine) -> None:
    _ran(engine, ago_s=3)
    with transaction(engine) as session:
        ticks_store.record_failure(session, "campaigns.start_due", error="broken")
        age_s = ticks_store.newest_run_age_s(session)
    assert age_s is not None
    assert 3 <= age_s < 10


def test_readyz_names_missing_migrations(tmp_path: Path, engine: Engine) -> None:
    schema.downgrade(engine, "base")
    answer = _app(tmp_path, engine).test_client().get("/readyz")
    assert answer.status_code == 503
    assert "sendonce db upgrade" in answer.get_json()["problems"]["migrations"]


def test_readyz_names_an_absent_database_without_saying_where_it_is(tmp_path: Path) -> None:
    client = _app(tmp_path, make_engine("postgresql://nobody:secret@127.0.0.1:1/none")).test_client()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "can't be used" in answer.get_json()["problems"]["database"]
    assert b"127.0.0.1" not in answer.data
    assert b"secret" not in answer.data


def test_readyz_is_ready_again_after_its_sessions_were_cut(tmp_path: Path, engine: Engine, database_url: str) -> None:
    _ran(engine, ago_s=1)
    client = _app(tmp_path, engine).test_client()
    assert client.get("/readyz").status_code == 200
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute(
            # It returns when they are gone: one that is still going would fail in the middle of the question.
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert client.get("/readyz").status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_needs_no_sign_in(tmp_path: Path, engine: Engine, path: str) -> None:
    assert _app(tmp_path, engine).test_client().get(path).status_code in {200, 503}
