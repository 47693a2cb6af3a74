"""`sendonce timeline`: what happened to a recipient, from the records alone."""

from datetime import UTC, datetime

import click

from console.accounts.store import account_by_slug
from console.cli.root import cli, open_database, print_json
from console.db import transaction
from console.errors import InvalidInput
from console.incidents import service


@cli.command("timeline")
@click.argument("wanted", metavar="EMAIL|ID")
@click.option("--account", "slug", required=True, help="The account's name.")
@click.option("--from", "since", help="The window's begin, ISO 8601; UTC when it names no zone.")
@click.option("--to", "until", help="The window's end.")
@click.option("--type", "message_type", help="Only messages of this type; 'campaign' for those of campaigns.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def show_timeline(
    wanted: str, slug: str, since: str | None, until: str | None, message_type: str | None, as_json: bool
) -> None:
    """Tells what happened to the messages to EMAIL, and why there were as many as there were.

    ID is a message's number, Message-ID, provider's id, dedupe key or correlation id. Without a window: the last day of
    an address, or a quarter of an hour around the message.
    """
    with open_database() as engine, transaction(engine) as session:
        found = service.show(
            session,
            account_by_slug(session, slug).id,
            wanted,
            since=_moment(since, field="--from"),
            until=_moment(until, field="--to"),
            message_type=message_type,
        )
    if as_json:
        print_json(found.document())
    else:
        click.echo(found.text(), nl=False)


def _moment(text: str | None, *, field: str) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{field} is {text!r}; write 2026-12-07T10:00 or 2026-12-07T10:00:00+01:00.") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
