"""`sendonce db`: moves the schema up and down, and tells whether the database can be used."""

import sys

import click

from console import schema
from console.cli.root import cli, open_database
from console.errors import InvalidInput


@cli.group("db")
def db() -> None:
    """The database's schema."""


@db.command("upgrade")
@click.argument("revision", default="head")
def upgrade(revision: str) -> None:
    """Bring the database to REVISION (default: the newest)."""
    with open_database(is_migrated=False) as engine:
        schema.upgrade(engine, revision)
        click.echo(f"The database is at migration {schema.current(engine) or 'none'}.")


@db.command("downgrade")
@click.argument("revision")
@click.option("--yes", is_flag=True, help="Do not ask.")
def downgrade(revision: str, yes: bool) -> None:
    """Take the database back to REVISION; `base` removes every table with all that is in it."""
    if not yes:
        _ask()
    with open_database(is_migrated=False) as engine:
        schema.downgrade(engine, revision)
        click.echo(f"The database is at migration {schema.current(engine) or 'none'}.")


@db.command("check")
def check() -> None:
    """Tell whether the database answers, is new enough and is migrated."""
    with open_database(is_migrated=False) as engine:
        schema.check(engine)
        click.echo(f"The database is in order, at migration {schema.current(engine)}.")


def _ask() -> None:
    """Returns when a person agrees. Raises: InvalidInput when there is nobody to ask, click.Abort."""
    loss = "Going back deletes what the removed tables and columns hold"
    if not sys.stdin.isatty():
        raise InvalidInput(f"{loss}, and there is nobody to ask: give --yes if that is meant.", field="yes")
    click.confirm(f"{loss}. Go on?", abort=True)
