"""`sendonce dead-letters` and `sendonce in-doubt`: what waits for a person, and what that person does with it."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import click
from sqlalchemy import Engine

from console.accounts.store import account_by_slug, user_by_email
from console.cli.root import cli, open_database, print_json
from console.db import transaction
from console.sends import settle, settle_store, unsettled_store
from console.sends.settle import Ran
from console.sends.settle_store import FrozenSetRow
from console.sends.states import Change, State
from console.sends.unsettled_store import Chosen, Unsettled
from console.sends.words import CHANGES

PAGE_ROWS = 1000
_ID = click.IntRange(1, 2**63 - 1)

_account = click.option("--account", "slug", required=True, help="The account's name.")
_class = click.option("--class", "error_class", metavar="CLASS", help="Only this error class, as `list` names it.")
_campaign = click.option("--campaign", "campaign_id", type=_ID, help="Only of this campaign.")
_lines = click.option("--json", "as_json", is_flag=True, help="One JSON document a line.")


def _choosing(command: Callable[..., None]) -> Callable[..., None]:
    """Adds what the commands that change something share: which sends, who, why."""
    options = (
        click.argument("send_ids", metavar="[ID]...", nargs=-1, type=_ID),
        _account,
        click.option("--all", "is_all", is_flag=True, help="All of the account."),
        _class,
        _campaign,
        click.option("--as", "user_email", required=True, metavar="EMAIL", help="Who does it."),
        click.option("--reason", required=True, help="Why; kept with each message."),
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document, and do not ask."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@cli.group("dead-letters")
def dead_letters() -> None:
    """Sends whose attempts or time ran out."""


@dead_letters.command("list")
@_account
@_class
@_campaign
@_lines
def list_dead_letters(slug: str, error_class: str | None, campaign_id: int | None, as_json: bool) -> None:
    """List dead letters, class by class."""
    _list(slug, Chosen(State.DEAD, error_class, campaign_id), as_json=as_json)


@dead_letters.command("retry")
@_choosing
def retry(**options: Any) -> None:
    """Send dead letters again: those with these IDs, those of a class or campaign, or --all.

    The set is fixed when its size is shown; what becomes a dead letter later is not touched.
    """
    _settle(Change.REVIVE, **options)


@cli.group("in-doubt")
def in_doubt() -> None:
    """Sends that were handed over and whose answer never came."""


@in_doubt.command("list")
@_account
@_class
@_campaign
@_lines
def list_in_doubt(slug: str, error_class: str | None, campaign_id: int | None, as_json: bool) -> None:
    """List sends in doubt with what is known about each."""
    _list(slug, Chosen(State.IN_DOUBT, error_class, campaign_id), as_json=as_json)


@in_doubt.command("settle")
@click.option("--as-sent", is_flag=True, help="They were accepted; nothing is sent.")
@click.option("--send-again", is_flag=True, help="Hand them over again, which may send them twice.")
@click.option("--give-up", is_flag=True, help="Record them as failed; nothing is sent.")
@_choosing
def settle_in_doubt(as_sent: bool, send_again: bool, give_up: bool, **options: Any) -> None:
    """Decide about sends in doubt: those with these IDs, those of a class or campaign, or --all.

    The set is fixed when its size is shown; what comes to be in doubt later is not touched.
    """
    asked = {Change.SETTLE_SENT: as_sent, Change.SETTLE_RESEND: send_again, Change.SETTLE_FAILED: give_up}
    changes = [change for change, is_asked in asked.items() if is_asked]
    if len(changes) != 1:
        raise click.UsageError("Say what to do, and one thing only: --as-sent, --send-again or --give-up.")
    _settle(changes[0], **options)


def _list(slug: str, chosen: Chosen, *, as_json: bool) -> None:
    with open_database() as engine:
        with transaction(engine) as session:
            account_id = account_by_slug(session, slug).id
        for row in _rows(engine, account_id, chosen):
            if as_json:
                print_json(asdict(row))
            else:
                click.echo(f"{row.id:>10}  {row.error_class:<20}  {row.email}  {row.provider_reply or ''}".rstrip())


def _rows(engine: Engine, account_id: int, chosen: Chosen) -> Iterator[Unsettled]:
    """Gives the rows page by page, each page in a transaction of its own."""
    after: str | None = None
    while True:
        with transaction(engine) as session:
            found = unsettled_store.page(session, account_id, chosen, after=after, limit=PAGE_ROWS)
        yield from found.rows
        after = found.next_after
        if after is None:
            return


def _settle(
    change: Change,
    *,
    send_ids: tuple[int, ...],
    slug: str,
    is_all: bool,
    error_class: str | None,
    campaign_id: int | None,
    user_email: str,
    reason: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Freezes the set in one transaction, shows its size, and runs it in another."""
    is_narrowed = error_class is not None or campaign_id is not None
    if bool(send_ids) + is_all + is_narrowed != 1:
        raise click.UsageError("Name the sends by their IDs, or by --class or --campaign, or take --all.")
    chosen = None if send_ids else Chosen(settle_store.SOURCES[change], error_class, campaign_id)
    with open_database() as engine:
        with transaction(engine) as session:
            account_id = account_by_slug(session, slug).id
            user_id = user_by_email(session, account_id, user_email).id
            set_id = settle.freeze(
                session, account_id, user_id=user_id, change=change, chosen=chosen, send_ids=send_ids
            )
            shown = None if set_id is None else settle_store.show_set(session, account_id, set_id)
        if shown is not None and not yes and not as_json and _is_terminal():
            word = CHANGES[change]
            click.echo(f"{word.label}: {word.meaning}")
            click.confirm(f"Messages: {shown.row_count:,} (set {shown.id}). Go on?", abort=True)
        if shown is not None:
            with transaction(engine) as session:
                ran = settle.run(session, account_id, shown.id, user_id=user_id, reason=reason)
            _print(ran, shown, as_json=as_json)
        elif as_json:
            print_json({"set": None, "moved": 0, "skipped": [], "has_more": False})
        else:
            click.echo("There is no such message; nothing was done.")


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _print(ran: Ran, shown: FrozenSetRow, *, as_json: bool) -> None:
    if as_json:
        skipped = [asdict(each) for each in ran.skipped]
        print_json({"set": ran.set_id, "moved": ran.moved_count, "skipped": skipped, "has_more": shown.has_more})
        return
    click.echo(f"Set {ran.set_id}: {ran.moved_count:,} of {shown.row_count:,} {CHANGES[shown.change].done}.")
    for each in ran.skipped:
        click.echo(f"  skipped {each.id}: {each.reason}")
    if shown.has_more:
        click.echo("There are more than one set holds; run the command again for the rest.")
