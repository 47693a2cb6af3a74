"""`sendonce subscribers` and `sendonce suppress`: who gets mail, and who must not."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import BinaryIO

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from console.accounts.store import account_by_slug, user_by_email
from console.audience import csv_import, service
from console.audience.csv_import import Report
from console.cli.root import cli, open_database, print_json
from console.db import transaction
from console.errors import InvalidInput

SHOWN_REFUSALS = 20


@cli.group()
def subscribers() -> None:
    """The people who get mail."""


@subscribers.command("import")
@click.argument("path", metavar="FILE", type=click.Path(allow_dash=True))
@click.option("--account", "slug", required=True, help="The account's name.")
@click.option("--list", "list_name", required=True, help="The list's name; made when there is none.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def import_file(path: str, slug: str, list_name: str, as_json: bool) -> None:
    """Bring the people in a CSV file (- for standard input) into an account and onto a list.

    Column email, and if you like external_id and status (confirmed or unconfirmed; active, subscribed and enabled count
    as confirmed; pending, inactive and disabled as unconfirmed). Every other column is a merge field. A person is an
    address with an external_id: who is known is updated, and when a file has somebody twice, the last line counts
    (the others are counted in unchanged, as duplicates). Who has opted out stays so.
    """
    with _opened(path) as file, open_database() as engine, _progress(is_shown=not as_json) as on_progress:
        with transaction(engine) as session:
            account_id = account_by_slug(session, slug).id
        report = csv_import.import_csv(engine, account_id, list_name=list_name, file=file, on_progress=on_progress)
    if as_json:
        print_json(asdict(report))
    else:
        _print_report(report, list_name)


@subscribers.command("show")
@click.argument("email")
@click.option("--account", "slug", required=True, help="The account's name.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def show(email: str, slug: str, as_json: bool) -> None:
    """Show what is known about an address."""
    with open_database() as engine, transaction(engine) as session:
        description = service.describe(session, account_by_slug(session, slug).id, email=email)
    if as_json:
        print_json(asdict(description))
        return
    click.echo(f"{description.email} ({description.status})")
    click.echo(f"  lists: {', '.join(description.lists) or 'none'}")
    if description.unsubscribed:
        click.echo(f"  has left: {', '.join(description.unsubscribed)}")
    for stop in description.suppressions:
        what = f"the list {stop['list']}" if stop["list"] else "all mail"
        click.echo(f"  stopped: {what}, since {stop['since']:%Y-%m-%d %H:%M %Z}, {stop['kind']}: {stop['reason']}")
    for name, value in sorted(description.attributes.items()):
        click.echo(f"  {name}: {value}")


@cli.command()
@click.argument("email")
@click.option("--account", "slug", required=True, help="The account's name.")
@click.option("--reason", required=True, help="Why; whoever finds it later reads this.")
@click.option("--as", "user_email", metavar="EMAIL", help="Who does it, for the audit log.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def suppress(email: str, slug: str, reason: str, user_email: str | None, as_json: bool) -> None:
    """Stop all mail of an account to an address, from the next hand-over on."""
    with open_database() as engine, transaction(engine) as session:
        account_id = account_by_slug(session, slug).id
        user_id = None if user_email is None else user_by_email(session, account_id, user_email).id
        is_new = service.suppress(session, account_id, email=email, reason=reason, user_id=user_id)
    if as_json:
        print_json({"email": email, "is_new": is_new})
    else:
        click.echo(f"No mail of {slug} goes to {email} any more." if is_new else f"{email} was suppressed already.")


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below; only the opening may be refused here
    except OSError as error:
        raise InvalidInput(f"The file {path} can't be read: {error.strerror}.", field="file") from None
    with file:
        yield file


@contextmanager
def _progress(*, is_shown: bool) -> Iterator[csv_import.Progress | None]:
    """Draws a bar on standard error while the block runs, on a terminal only."""
    if not (is_shown and sys.stderr.isatty()):
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Reading", total=None)
        yield lambda doing, done, total: bar.update(task, description=doing, completed=done, total=total)


def _print_report(report: Report, list_name: str) -> None:
    click.echo(
        f"{report.rows:,} rows: {report.added:,} added, {report.updated:,} updated, {report.unchanged:,} unchanged,"
        f" {len(report.refused):,} refused. {report.joined:,} put on the list {list_name}."
    )
    if report.duplicates:
        click.echo(f"{report.duplicates:,} of the unchanged came again further down, where the last line counts.")
    if report.suppressed:
        click.echo(f"{report.suppressed:,} have opted out and stay so: no mail goes to them.")
    for refused in report.refused[:SHOWN_REFUSALS]:
        click.echo(f"  line {refused.line}: {refused.email}: {refused.reason}")
    if len(report.refused) > SHOWN_REFUSALS:
        click.echo(f"  and {len(report.refused) - SHOWN_REFUSALS:,} more; --json lists them all.")
