"""`sendonce api-key`: the keys with which programs call the API."""

from dataclasses import asdict

import click

from console.accounts import key_store, keys
from console.accounts.models import SCOPES
from console.accounts.store import account_by_slug
from console.cli.root import cli, open_database, print_json
from console.db import transaction

_account = click.option("--account", "slug", required=True, help="The account's name.")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@cli.group("api-key")
def api_key() -> None:
    """The keys with which programs call /api/v1."""


@api_key.command("add")
@_account
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    metavar="SCOPE",
    help=f"What the key may do: {', '.join(SCOPES)}. Repeat it for several.",
)
@click.option("--name", default="", help="What it is for.")
@click.option(
    "--calls-per-minute", default=keys.CALLS_PER_MINUTE, show_default=True, help="Its limit; each message counts."
)
@_json
def add(slug: str, scopes: tuple[str, ...], name: str, calls_per_minute: int, as_json: bool) -> None:
    """Make a key and print it. This is the only time that it is shown."""
    with open_database() as engine, transaction(engine) as session:
        account_id = account_by_slug(session, slug).id
        made = keys.add_key(session, account_id, scopes=scopes, name=name, calls_per_minute=calls_per_minute)
    if as_json:
        print_json({"id": made.id, "key": made.text})
    else:
        click.echo(made.text)
        click.echo("Keep it now: it is not shown again.", err=True)


@api_key.command("list")
@_account
@_json
def list_keys(slug: str, as_json: bool) -> None:
    """List the keys: what they may do, when they were used last, which are revoked."""
    with open_database() as engine, transaction(engine) as session:
        found = key_store.keys(session, account_by_slug(session, slug).id)
    if as_json:
        print_json([{"prefix": key.prefix, **asdict(key)} for key in found])
        return
    for key in found:
        state = f"revoked {key.revoked_at:%Y-%m-%d %H:%M}" if key.revoked_at else "works"
        used = f"used {key.last_used_at:%Y-%m-%d %H:%M}" if key.last_used_at else "never used"
        click.echo(f"{key.prefix}…  {', '.join(key.scopes)}  {state}, {used}  {key.name}".rstrip())
    if not found:
        click.echo(f"The account has no API key. Make one with: sendonce api-key add --account {slug} --scope send")


@api_key.command("revoke")
@click.argument("key_id", type=click.IntRange(1, 2**63 - 1), metavar="ID")
@_account
@_json
def revoke(key_id: int, slug: str, as_json: bool) -> None:
    """End the key with the number ID (so_ID_...); it is refused from the next call on."""
    with open_database() as engine, transaction(engine) as session:
        keys.revoke_key(session, account_by_slug(session, slug).id, key_id)
    if as_json:
        print_json({"id": key_id, "revoked": True})
    else:
        click.echo(f"Revoked the key so_{key_id}_….")
