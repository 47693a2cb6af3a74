"""`sendonce provider` and `sendonce route`: the ways out, and the order in which they are tried."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from console.accounts.store import account_by_slug
from console.cli.root import cli, open_database, open_installation, print_json
from console.db import transaction
from console.errors import InvalidInput
from console.inbox import report_address
from console.providers import service, store
from console.providers.kinds import KINDS
from console.providers.registry import OWN, open_provider
from console.providers.service import Draft
from console.providers.store import Configured

_ACCOUNT = click.option("--account", "slug", required=True, help="The account's name.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_SETTING = click.option("--setting", "settings", multiple=True, metavar="NAME=VALUE", help="May be repeated.")
_SECRET = click.option("--secret-stdin", is_flag=True, help="Read the API key or password from standard input.")


@cli.group()
def provider() -> None:
    """Ways out for messages, beside the installation's own SMTP server (SENDONCE_SMTP_URL), which is named smtp."""


@provider.command("add")
@click.argument("name")
@_ACCOUNT
@click.option("--kind", required=True, type=click.Choice(list(KINDS)), help="Which provider it is.")
@_SETTING
@_SECRET
@_JSON
def add(name: str, slug: str, kind: str, settings: tuple[str, ...], secret_stdin: bool, as_json: bool) -> None:
    """Configure the provider NAME. Its secret is kept encrypted and never shown again."""
    draft = Draft(name=name, kind=kind, settings=_pairs(settings), secret=_secret(from_stdin=secret_stdin))
    with open_installation() as opened, transaction(opened.engine) as session:
        account_id = account_by_slug(session, slug).id
        made = service.add(session, account_id, user_id=None, draft=draft, secret_key=opened.settings.secret_key)
    if as_json:
        print_json({"id": made, "name": name, "kind": kind})
    else:
        click.echo(f"Added {name}. Try it: sendonce provider check {name} --account {slug}")
        click.echo(f"Use it:  sendonce route set {name} --account {slug}")


@provider.command("edit")
@click.argument("name")
@_ACCOUNT
@_SETTING
@_SECRET
@_JSON
def edit(name: str, slug: str, settings: tuple[str, ...], secret_stdin: bool, as_json: bool) -> None:
    """Change settings of the provider NAME, or its secret; what is not named stays."""
    with open_installation() as opened, transaction(opened.engine) as session:
        row = store.provider_by_name(session, account_by_slug(session, slug).id, name)
        service.edit(
            session,
            row.account_id,
            row.id,
            user_id=None,
            version=row.version,
            settings=_pairs(settings),
            secret=_secret(from_stdin=secret_stdin),
            secret_key=opened.settings.secret_key,
        )
    if as_json:
        print_json({"id": row.id, "name": name})
    else:
        click.echo(f"Changed {name}.")


@provider.command("list")
@_ACCOUNT
@_JSON
def list_all(slug: str, as_json: bool) -> None:
    """Show the account's providers; their secrets are not shown."""
    with open_database() as engine, transaction(engine) as session:
        rows = store.configured(session, account_by_slug(session, slug).id)
    if as_json:
        print_json([_document(row) for row in rows])
        return
    click.echo(f"{OWN}: the installation's own SMTP server")
    for row in rows:
        shown = ", ".join(f"{name}={value}" for name, value in sorted(row.settings.items()))
        click.echo(f"{row.name}: {KINDS[row.kind].label}{', ' + shown if shown else ''}")


@provider.command("check")
@click.argument("name")
@_ACCOUNT
@_JSON
def check(name: str, slug: str, as_json: bool) -> None:
    """Find out whether the provider NAME (smtp: the installation's own) would take messages, without sending one."""
    with open_installation() as opened:
        with transaction(opened.engine) as session:
            account_id = account_by_slug(session, slug).id
            row = None if name == OWN else store.provider_by_name(session, account_id, name)
        trouble = open_provider(opened.settings, row).check()
    if as_json:
        print_json({"name": name, "is_fine": trouble is None, "trouble": trouble.reason if trouble else None})
    elif trouble is None:
        click.echo(f"{name} answers and knows us.")
    if trouble is not None:
        if not as_json:
            click.echo(f"{name}: {trouble.reason}", err=True)
        sys.exit(1)


@provider.command("reports")
@click.argument("name")
@_ACCOUNT
@_SECRET
@_JSON
def reports(name: str, slug: str, secret_stdin: bool, as_json: bool) -> None:
    """Make the address that the provider NAME reports to, and print it, this once; a second time ends the first one.

    With --secret-stdin: take what its reports are signed with, or USER:PASSWORD where nothing is signed.
    """
    with open_installation() as opened, transaction(opened.engine) as session:
        row = store.provider_by_name(session, account_by_slug(session, slug).id, name)
        if secret_stdin:
            report_address.set_secret(
                session,
                row.account_id,
                row.id,
                user_id=None,
                secret=_secret(from_stdin=True) or "",
                secret_key=opened.settings.secret_key,
            )
            url = None
        else:
            url = report_address.make(session, row.account_id, row.id, user_id=None).url(opened.settings.base_url)
    if as_json:
        print_json({"name": name, "url": url})
    elif url is None:
        click.echo(f"The secret of {name}'s reports is set.")
    else:
        click.echo(url)


@cli.group()
def route() -> None:
    """In which order providers are tried."""


@route.command("set")
@click.argument("providers", nargs=-1, required=True, metavar="PROVIDER...")
@_ACCOUNT
@click.option("--name", default=store.DEFAULT_ROUTE, show_default=True, help="The route; message types name one.")
@_JSON
def set_route(providers: Sequence[str], slug: str, name: str, as_json: bool) -> None:
    """Let messages go by the first PROVIDER, and by the next ones when it surely does not take them."""
    with open_database() as engine, transaction(engine) as session:
        account_id = account_by_slug(session, slug).id
        made = service.set_route(session, account_id, user_id=None, name=name, providers=providers)
    if as_json:
        print_json({"name": name, "providers": list(made)})
    else:
        click.echo(f"The route {name} goes by {', then '.join(made)}.")


@route.command("list")
@_ACCOUNT
@_JSON
def list_routes(slug: str, as_json: bool) -> None:
    """Show the account's routes."""
    with open_database() as engine, transaction(engine) as session:
        rows = store.routes(session, account_by_slug(session, slug).id)
    if as_json:
        print_json([{"name": row.name, "providers": list(row.providers)} for row in rows])
        return
    for row in rows:
        click.echo(f"{row.name}: {', then '.join(row.providers)}")
    if not any(row.name == store.DEFAULT_ROUTE for row in rows):
        click.echo(f"{store.DEFAULT_ROUTE}: {OWN}")


def _pairs(settings: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in settings:
        name, separator, value = text.partition("=")
        if not separator:
            raise InvalidInput(f"--setting takes NAME=VALUE; {text[:40]!r} has no =.", field="setting")
        pairs[name.strip()] = value
    return pairs


def _secret(*, from_stdin: bool) -> str | None:
    if not from_stdin:
        return None
    line = sys.stdin.buffer.readline().decode(errors="replace").rstrip("\r\n")
    if not line:
        raise InvalidInput("The first line of standard input is empty: no secret is there.", field="secret")
    return line


def _document(row: Configured) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "kind": row.kind,
        "settings": dict(row.settings),
        "has_secret": bool(row.sealed_secret),
    }
