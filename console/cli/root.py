"""The command group and what all commands share: settings, the database, JSON output."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import click
from sqlalchemy import Engine

from console import config, schema
from console.db import make_engine
from console.embedded import database_url


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="sendonce", prog_name="sendonce")
def cli() -> None:
    """Sends e-mail exactly as often as it should be sent: once."""


@contextmanager
def open_database(*, is_migrated: bool = True) -> Iterator[Engine]:
    """Gives the engine of the database in the settings; checked, unless the caller is about to migrate it."""
    with database_url(config.load()) as url:
        engine = make_engine(url)
        try:
            (schema.check if is_migrated else schema.check_server)(engine)
            yield engine
        finally:
            engine.dispose()


def print_json(document: Any) -> None:
    """Prints one JSON document on one line; moments as ISO 8601 in UTC."""
    click.echo(json.dumps(document, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
