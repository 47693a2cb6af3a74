"""Engine, session and transaction(): the only commit for requests, ticks and commands. The recorder has its own."""

import select
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

import psycopg
from sqlalchemy import TIMESTAMP, BigInteger, Connection, Engine, Identity, MetaData, Text, create_engine, event
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.orm import DeclarativeBase, Session

NAMING = {
    "pk": "%(table_name)s_pk",
    "fk": "%(table_name)s_%(referred_table_name)s_fk",
    "uq": "%(table_name)s_%(column_0_N_name)s_key",
    "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    "ck": "%(table_name)s_%(constraint_name)s_check",
}

# bigint made by the database, unique in the table; the primary key is (account_id, id).
IDENTITY = Identity(always=False)


class Base(DeclarativeBase):
    """The base of all tables. Every column has a comment; account_id leads every key."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads this as a class attribute
        int: BigInteger,
        str: Text,
        datetime: TIMESTAMP(timezone=True),
        dict[str, Any]: JSONB,
    }


def sqlalchemy_url(database_url: str) -> str:
    """Gives the URL with the driver that SQLAlchemy needs named in it."""
    return database_url.replace("postgresql://", "postgresql+psycopg://", 1)


def make_engine(database_url: str, *, pool_size: int = 5) -> Engine:
    """Makes the pool that requests, ticks and commands use. Connects to nothing yet."""
    engine = create_engine(
        sqlalchemy_url(database_url),
        pool_size=pool_size,
        max_overflow=pool_size,
        # An error's text is logged, and parameters are people's addresses and the codes in their messages.
        hide_parameters=True,
        connect_args={"connect_timeout": 5, "application_name": "sendonce"},
    )
    event.listen(engine, "checkout", partial(_require_open, engine))
    return engine


def _require_open(engine: Engine, connection: Any, _record: Any, _proxy: Any) -> None:
    """Has the pool open another connection when the server has closed this one.

    A connection that rests has nothing to read unless the server is gone or has something to tell; so the question
    costs a way to the server and back only then, where pool_pre_ping asks before every block.
    """
    if connection.closed:
        raise DisconnectionError
    resting = select.poll()
    resting.register(connection.fileno(), select.POLLIN)
    if resting.poll(0):
        try:
            engine.dialect.do_ping(connection)
        except psycopg.Error as error:
            raise DisconnectionError from error


@contextmanager
def transaction(engine: Engine | Connection) -> Iterator[Session]:
    """Gives a session whose work is committed when the block ends, and rolled back when it raises."""
    with Session(engine, expire_on_commit=False) as session, session.begin():
        yield session


def in_autocommit(engine: Engine) -> Engine:
    """Gives an engine on the same pool, each of whose statements is a transaction of its own.

    One way to the server and back instead of three, for what is a single statement anyway.
    """
    return engine.execution_options(isolation_level="AUTOCOMMIT")
