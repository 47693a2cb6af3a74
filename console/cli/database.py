"""`sendonce db`: moves the schema up and down, tells whether the database can be used, and lets roles send by SQL."""

import sys

import click

from console import schema
from console.accounts.store import account_by_slug
from console.cli.root import cli, open_database, print_json
from console.db import transaction
from console.errors import InvalidInput
from console.sends import grants

_account = click.option("--account", "slug", required=True, help="The account's name.")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@cli.group("db")
def db() -> None:
    """The database's schema, and the roles that may send by SQL."""


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


@db.command("grant")
@click.argument("role")
@_account
@_json
def grant(role: str, slug: str, as_json: bool) -> None:
    """Let the database's ROLE call sendonce.send for the account, and read nothing."""
    with open_database() as engine, transaction(engine) as session:
        is_new = grants.grant(session, account_by_slug(session, slug).id, role)
    if as_json:
        print_json({"role": role, "account": slug, "is_new": is_new})
    else:
        click.echo(f"The role {role} may {'now' if is_new else 'already'} send for the account {slug}.")


@db.command("revoke")
@click.argument("role")
@_account
@_json
def revoke(role: str, slug: str, as_json: bool) -> None:
    """Take the account from the database's ROLE."""
    with open_database() as engine, transaction(engine) as session:
        grants.revoke(session, account_by_slug(session, slug).id, role)
    if as_json:
        print_json({"role": role, "account": slug, "revoked": True})
    else:
        click.echo(f"The role {role} may no longer send for the account {slug}.")


def _ask() -> None:
    """Returns when a person agrees. Raises: InvalidInput when there is nobody to ask, click.Abort."""
    loss = "Going back deletes what the removed tables and columns hold"
    if not sys.stdin.isatty():
        raise InvalidInput(f"{loss}, and there is nobody to ask: give --yes if that is meant.", field="yes")
    click.confirm(f"{loss}. Go on?", abort=True)
