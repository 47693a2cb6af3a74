"""`sendonce account` and `sendonce user`: tenants and the people who sign in."""

import sys

import click

from console.accounts import passwords, service
from console.accounts.models import ROLES
from console.accounts.store import account_by_slug
from console.cli.root import cli, open_database, print_json
from console.db import transaction
from console.errors import InvalidInput


@cli.group()
def account() -> None:
    """Accounts: tenants whose campaigns, lists and people are kept apart."""


@account.command("add")
@click.argument("slug")
@click.option("--name", help="The name for people; the slug when not given.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def add_account(slug: str, name: str | None, as_json: bool) -> None:
    """Make the account SLUG (a-z, 0-9 and -)."""
    with open_database() as engine, transaction(engine) as session:
        made = service.add_account(session, slug, name=name)
        document = {"id": made.id, "slug": made.slug, "name": made.name}
    if as_json:
        print_json(document)
    else:
        click.echo(f"Made the account {made.slug}. Add people with: sendonce user add EMAIL --account {made.slug} ...")


@cli.group()
def user() -> None:
    """The people who sign in."""


@user.command("add")
@click.argument("email")
@click.argument("more_roles", nargs=-1, metavar="")
@click.option("--account", "slug", required=True, help="The account that the person works in.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    required=True,
    metavar="ROLE...",
    help=f"What the person may do: {', '.join(ROLES)}. Several: repeat it, or name them behind it.",
)
@click.option("--name", default="", help="How the person is called on screens.")
@click.option("--password-stdin", is_flag=True, help="Read the password from the first line of standard input.")
@click.option("--generate-password", is_flag=True, help="Make a password and print it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def add_user(
    email: str,
    more_roles: tuple[str, ...],
    slug: str,
    roles: tuple[str, ...],
    name: str,
    password_stdin: bool,
    generate_password: bool,
    as_json: bool,
) -> None:
    """Add a person who may sign in to an account.

    The password is asked for on a terminal, else read from standard input; when that is empty, one is made and printed.
    """
    wanted = [role for text in (*roles, *more_roles) for role in text.replace(",", " ").split()]
    given = "" if generate_password else _given_password(from_stdin=password_stdin)
    password = given or passwords.generate()
    with open_database() as engine, transaction(engine) as session:
        account_id = account_by_slug(session, slug).id
        made = service.add_user(session, account_id, email=email, name=name, roles=wanted, password=password)
    document = {"id": made.id, "email": made.email, "name": made.name, "roles": made.roles}
    if not given:
        document["password"] = password
    if as_json:
        print_json(document)
        return
    click.echo(f"Added {made.name} <{made.email}> with {', '.join(made.roles)}.")
    if not given:
        click.echo(f"Password: {password}")


def _given_password(*, from_stdin: bool) -> str:
    if from_stdin or not sys.stdin.isatty():
        # What is not UTF-8 is kept apart, and refused with the other passwords that can't be.
        line = sys.stdin.buffer.readline().decode(errors="surrogateescape").rstrip("\r\n")
        if from_stdin and not line:
            raise InvalidInput("The first line of standard input is empty: no password is there.", field="password")
        return line
    return click.prompt("Password (empty: make one)", hide_input=True, default="", show_default=False)
