"""The pool that requests, ticks and commands use."""

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from console.db import in_autocommit, make_engine, transaction


def _pid(engine: Engine) -> int:
    with transaction(engine) as session:
        return session.execute(text("SELECT pg_backend_pid()")).scalar_one()


def test_a_connection_that_the_server_has_closed_is_replaced_before_it_is_used(database_url: str) -> None:
    engine, other = make_engine(database_url), make_engine(database_url)
    first = _pid(engine)
    assert _pid(engine) == first
    with transaction(other) as session:
        session.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": first})
    assert _pid(engine) != first
    engine.dispose()
    other.dispose()


def test_a_connection_with_something_to_read_is_asked_and_kept(database_url: str) -> None:
    engine, other = make_engine(database_url), make_engine(database_url)
    first = _pid(engine)
    with in_autocommit(engine).connect() as connection:
        connection.execute(text("LISTEN something"))
    with transaction(other) as session:
        session.execute(text("NOTIFY something"))
    assert _pid(engine) == first
    engine.dispose()
    other.dispose()


def test_an_errors_text_holds_no_parameters(engine: Engine) -> None:
    with pytest.raises(DBAPIError) as failed, transaction(engine) as session:
        session.execute(text("SELECT 1 / CAST(:zero AS int), :email"), {"zero": 0, "email": "ann@example.com"})
    assert "ann@example.com" not in str(failed.value)


def test_in_autocommit_a_statement_stands_by_itself(engine: Engine) -> None:
    with in_autocommit(engine).connect() as connection:
        connection.execute(text("CREATE TABLE kept (x int)"))
        connection.execute(text("INSERT INTO kept VALUES (1)"))
    with transaction(engine) as session:
        assert session.execute(text("SELECT count(*) FROM kept")).scalar_one() == 1
