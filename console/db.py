"""Engine, session and transaction(): the only commit for requests, ticks and commands. The recorder has its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import TIMESTAMP, BigInteger, Connection, Engine, Identity, MetaData, Text, create_engine
from sqlalchemy.dialects.postgresql import JSONB
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
    return create_engine(
        sqlalchemy_url(database_url),
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
        # An error's text is logged, and parameters are people's addresses and the codes in their messages.
        hide_parameters=True,
        connect_args={"connect_timeout": 5, "application_name": "sendonce"},
    )


@contextmanager
def transaction(engine: Engine | Connection) -> Iterator[Session]:
    """Gives a session whose work is committed when the block ends, and rolled back when it raises."""
    with Session(engine, expire_on_commit=False) as session, session.begin():
        yield session
