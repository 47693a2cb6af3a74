"""`sendonce bounces`: the mailbox that bounces come back to."""

import sys

import click

from console.accounts.store import account_by_slug
from console.cli.root import cli, open_database, open_installation, print_json
from console.db import transaction
from console.errors import InvalidInput, NotFound
from console.inbox import mailbox, mailbox_store, mailboxes
from console.inbox.mailbox import MailboxTrouble

_ACCOUNT = click.option("--account", "slug", required=True, help="The account's name.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@cli.group()
def bounces() -> None:
    """The mailbox that mail servers' reports come back to, read by IMAP: that of your senders' address."""


@bounces.command("set")
@click.argument("url")
@_ACCOUNT
@_JSON
def set_mailbox(url: str, slug: str, as_json: bool) -> None:
    """Read bounces from the mailbox URL, such as imaps://bounces%40example.com@mail.example.com/INBOX.

    Its password is read from the first line of standard input, kept encrypted and never shown. The mailbox is tried
    first. Its mails stay where they are and are marked as seen.
    """
    password = sys.stdin.buffer.readline().decode(errors="replace").rstrip("\r\n")
    place = mailbox.parse_url(url, password=password)
    with open_installation() as opened:
        with transaction(opened.engine) as session:
            account_id = account_by_slug(session, slug).id
        try:
            with mailbox.visit(place):
                pass
        except MailboxTrouble as trouble:
            raise InvalidInput(f"The mailbox {place.url} can't be read: {trouble}.", field="url") from None
        with transaction(opened.engine) as session:
            shown = mailboxes.set_mailbox(
                session, account_id, url=url, password=password, secret_key=opened.settings.secret_key
            )
    if as_json:
        print_json({"url": shown})
    else:
        click.echo(f"Bounces are read from {shown} from now on.")


@bounces.command("show")
@_ACCOUNT
@_JSON
def show(slug: str, as_json: bool) -> None:
    """Show the account's mailbox, when it was read last, and what stood in the way."""
    with open_database() as engine, transaction(engine) as session:
        row = mailbox_store.mailbox_of(session, account_by_slug(session, slug).id)
    if row is None:
        raise NotFound("The account has no bounce mailbox. Set one with: sendonce bounces set URL")
    if as_json:
        print_json({"url": row.url, "visited_at": row.visited_at, "error": row.error})
        return
    click.echo(row.url)
    click.echo(f"Read last: {row.visited_at.isoformat() if row.visited_at else 'not yet'}")
    if row.error:
        click.echo(f"What stood in the way: {row.error}")


@bounces.command("remove")
@_ACCOUNT
def remove(slug: str) -> None:
    """Read the mailbox no more; what came from it stays."""
    with open_database() as engine, transaction(engine) as session:
        mailboxes.remove_mailbox(session, account_by_slug(session, slug).id)
    click.echo("The mailbox is read no more.")
