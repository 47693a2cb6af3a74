"""The command group and what all commands share: settings, the database, JSON output."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click
from sqlalchemy import Engine

from console import config, logs, schema
from console.config import Settings
from console.db import make_engine
from console.embedded import database_url
from console.errors import DatabaseError


@dataclass(frozen=True)
class Opened:
    """What a command works with while its database is held open."""

    settings: Settings
    url: str
    engine: Engine


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="sendonce", prog_name="sendonce")
def cli() -> None:
    """Sends e-mail exactly as often as it should be sent: once."""


@contextmanager
def open_installation(*, is_migrated: bool = True) -> Iterator[Opened]:
    """Gives settings and database, checked; `is_migrated` False when the caller is about to migrate it.

    The embedded database is ours alone and is brought to the newest migration by itself.
    Raises: ConfigError, DatabaseError.
    """
    settings = config.load()
    logs.set_up(settings.log_format)
    with database_url(settings) as url:
        engine = make_engine(url)
        try:
            schema.check_server(engine)
            if is_migrated:
                _require_newest(engine, may_upgrade=settings.database_url is None)
            yield Opened(settings, url, engine)
        finally:
            engine.dispose()


@contextmanager
def open_database(*, is_migrated: bool = True) -> Iterator[Engine]:
    """Gives the engine alone, for commands that need no setting."""
    with open_installation(is_migrated=is_migrated) as opened:
        yield opened.engine


def print_json(document: Any) -> None:
    """Prints one JSON document on one line; moments as ISO 8601 in UTC."""
    click.echo(json.dumps(document, ensure_ascii=False, default=_plain))


def _require_newest(engine: Engine, *, may_upgrade: bool) -> None:
    try:
        schema.check_revision(engine)
    except DatabaseError:
        if not may_upgrade:
            raise
        schema.upgrade(engine)


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
