"""The request's way to the database: one engine for each app, one transaction for each block of a view.

Plain SQLAlchemy sessions rather than flask-sqlalchemy: its scoped session would be a second way to commit beside
console.db.transaction, which requests, ticks and commands share.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from flask import Flask, current_app
from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session

from console import db

_KEY = "sendonce.engine"
_AUTOCOMMIT_KEY = "sendonce.engine_in_autocommit"


def bind(app: Flask, engine: Engine) -> None:
    """Gives the app the engine that all its requests use."""
    app.extensions[_KEY] = engine
    app.extensions[_AUTOCOMMIT_KEY] = db.in_autocommit(engine)


@contextmanager
def transaction() -> Iterator[Session]:
    """Gives a session whose work is committed when the block ends, before the answer is sent."""
    with db.transaction(current_app.extensions[_KEY]) as session:
        yield session


@contextmanager
def statements() -> Iterator[Connection]:
    """Gives a connection each of whose statements is a transaction of its own."""
    with current_app.extensions[_AUTOCOMMIT_KEY].connect() as connection:
        yield connection


def bound_engine() -> Engine:
    """Gives the engine of the app that answers the present request."""
    return current_app.extensions[_KEY]
