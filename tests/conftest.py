"""The few fixtures: a real PostgreSQL server, and a migrated database of its own for each test.

SENDONCE_TEST_SERVER_URL names a running server whose user may create databases; without it the embedded one is started.
"""

import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine

from console import config, schema
from console.db import make_engine
from console.embedded import database_url as embedded_url


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """The URL of a server's maintenance database."""
    given = os.environ.get("SENDONCE_TEST_SERVER_URL")
    if given:
        yield given
        return
    # Not below pytest's own folder, which is closed to the user that the server runs as when we are root.
    with tempfile.TemporaryDirectory(prefix="sendonce-test-") as folder:
        Path(folder).chmod(0o711)
        settings = config.load({"SENDONCE_DATA_DIR": f"{folder}/data", "SENDONCE_SECRET_KEY": "k" * 32})
        with embedded_url(settings) as url:
            yield url


def _named(url: str, name: str) -> str:
    scheme, _, rest = url.partition("://")
    authority, _, tail = rest.partition("/")
    query = tail.partition("?")[2]
    return f"{scheme}://{authority}/{name}" + (f"?{query}" if query else "")


@pytest.fixture(scope="session")
def template(server_url: str) -> Iterator[str]:
    """The name of a migrated database that is copied for each test."""
    name = f"template_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        engine = make_engine(_named(server_url, name))
        schema.upgrade(engine)
        engine.dispose()
        yield name
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database_url(server_url: str, template: str) -> Iterator[str]:
    """The URL of a fresh, migrated database."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield _named(server_url, name)
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """An engine on a fresh, migrated database."""
    engine = make_engine(database_url)
    yield engine
    engine.dispose()
