"""`sendonce campaign`: writing campaigns and moving them through their life."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from console.accounts.store import account_by_slug, user_by_email
from console.audience.store import list_by_name
from console.campaigns import schedule, service, store, ticks
from console.campaigns.counts_store import check_counters
from console.campaigns.store import CampaignRow
from console.cli.root import cli, open_database, open_installation, print_json
from console.db import transaction
from console.errors import InvalidInput

_SHOWN = (
    "id", "name", "status", "list_name", "subject", "sender", "author_email", "approver_email", "audience_estimate",
    "scheduled_for", "schedule_zone", "submitted_at", "approved_at", "started_at", "audience_built_at", "finished_at",
    "note", "fingerprint", "approved_fingerprint", "version", "correlation_id", "counts",
)  # fmt: skip

_account = click.option("--account", "slug", required=True, help="The account's name.")
_acting = click.option("--as", "user_email", required=True, metavar="EMAIL", help="Who does it.")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_id = click.argument("campaign_id", metavar="ID", type=click.IntRange(1, 2**63 - 1))
_file = click.Path(path_type=Path)


@cli.group()
def campaign() -> None:
    """Campaigns: one message to everybody on a list."""


@campaign.command()
@_account
@click.option("--name", required=True, help="The campaign's name for your colleagues.")
@click.option("--subject", required=True, help="The subject, with merge fields if you like.")
@click.option("--from", "sender", required=True, help="The sender: an address, or Name <address>.")
@click.option("--list", "list_name", required=True, help="The list that is mailed.")
@click.option("--html", required=True, type=_file, help="File with the HTML part, UTF-8.")
@click.option("--text", type=_file, help="File with the text part, UTF-8; made from the HTML when not given.")
@_acting
@_json
def create(
    slug: str,
    name: str,
    subject: str,
    sender: str,
    list_name: str,
    html: Path,
    text: Path | None,
    user_email: str,
    as_json: bool,
) -> None:
    """Write a campaign; it is a draft until it is submitted."""
    html_part, text_part = _read(html), "" if text is None else _read(text)

    def write(session: Session, account_id: int, user_id: int) -> int:
        draft = service.Draft(
            name=name,
            list_id=list_by_name(session, account_id, list_name).id,
            subject=subject,
            sender=sender,
            html=html_part,
            text=text_part,
        )
        return service.create(session, account_id, author_id=user_id, draft=draft)

    with open_database() as engine:
        _act(engine, slug, user_email, write, as_json=as_json)


@campaign.command()
@_id
@_account
@_acting
@_json
def submit(campaign_id: int, slug: str, user_email: str, as_json: bool) -> None:
    """Put a draft before the approvers."""
    with open_database() as engine:
        _act(engine, slug, user_email, _step(service.submit, campaign_id), as_json=as_json)


@campaign.command()
@_id
@_account
@click.option(
    "--at",
    metavar="ISO-TIME[ZONE]",
    help="When to start: 2027-01-05T09:00[Europe/Lisbon], 2027-01-05T09:00Z or 2027-01-05T09:00+01:00;"
    " without zone or offset UTC. Default, and for times in the past: now.",
)
@_acting
@_json
def approve(campaign_id: int, slug: str, at: str | None, user_email: str, as_json: bool) -> None:
    """Approve a submitted campaign; its author can't."""
    planned = None if at is None else schedule.parse(at)
    step = _step(
        service.approve,
        campaign_id,
        scheduled_for=planned.at if planned else None,
        zone=planned.zone if planned else None,
    )
    with open_database() as engine:
        _act(engine, slug, user_email, step, as_json=as_json)


@campaign.command()
@_id
@_account
@click.option("--reason", required=True, help="What the author has to change.")
@_acting
@_json
def reject(campaign_id: int, slug: str, reason: str, user_email: str, as_json: bool) -> None:
    """Give a campaign back to its author."""
    with open_database() as engine:
        _act(engine, slug, user_email, _step(service.reject, campaign_id, reason=reason), as_json=as_json)


@campaign.command()
@_id
@_account
@click.option("--reason", help="Why.")
@_acting
@_json
def pause(campaign_id: int, slug: str, reason: str | None, user_email: str, as_json: bool) -> None:
    """Stop a campaign until it is resumed; what is handed over already goes on."""
    with open_database() as engine:
        _act(engine, slug, user_email, _step(service.pause, campaign_id, reason=reason), as_json=as_json)


@campaign.command()
@_id
@_account
@click.option("--reason", help="Why.")
@_acting
@_json
def resume(campaign_id: int, slug: str, reason: str | None, user_email: str, as_json: bool) -> None:
    """Let a paused campaign send on."""
    with open_database() as engine:
        _act(engine, slug, user_email, _step(service.resume, campaign_id, reason=reason), as_json=as_json)


@campaign.command()
@_id
@_account
@click.option("--reason", help="Why.")
@_acting
@_json
def cancel(campaign_id: int, slug: str, reason: str | None, user_email: str, as_json: bool) -> None:
    """Stop a campaign for good; what is queued is cancelled."""
    with open_installation() as opened:
        account_id = _change(opened.engine, slug, user_email, _step(service.cancel, campaign_id, reason=reason))[0]
        while ticks.cancel_rest(opened.engine, opened.settings):
            pass
        _print(opened.engine, account_id, campaign_id, as_json=as_json)


@campaign.command()
@_id
@_account
@_json
def show(campaign_id: int, slug: str, as_json: bool) -> None:
    """Show a campaign and how far it is."""
    with open_database() as engine:
        with transaction(engine) as session:
            account_id = account_by_slug(session, slug).id
        _print(engine, account_id, campaign_id, as_json=as_json)


@campaign.command()
@click.option("--account", "slug", help="Only this account.")
@click.option("--repair", is_flag=True, help="Put the counters right.")
@_json
def check(slug: str | None, repair: bool, as_json: bool) -> None:
    """Hold the counters of campaigns against their rows; exit code 1 when they differ and were not repaired."""
    with open_database() as engine, transaction(engine) as session:
        account_id = None if slug is None else account_by_slug(session, slug).id
        differences = check_counters(session, account_id, repair=repair)
    if as_json:
        print_json({"differences": [asdict(item) for item in differences], "is_repaired": repair})
    else:
        for item in differences:
            click.echo(f"Campaign {item.campaign_id}: {item.counted:,} counted as {item.status}, {item.rows:,} rows.")
        words = "agree with the rows" if not differences else "were repaired" if repair else "differ: run with --repair"
        click.echo(f"The counters {words}.")
    if differences and not repair:
        raise SystemExit(1)


Step = Callable[[Session, int, int], int]


def _step(change: Callable[..., Any], campaign_id: int, **options: Any) -> Step:
    """Gives a change of one campaign as a function of session, account and user that gives the campaign's id."""

    def run(session: Session, account_id: int, user_id: int) -> int:
        change(session, account_id, campaign_id, user_id=user_id, **options)
        return campaign_id

    return run


def _act(engine: Engine, slug: str, user_email: str, step: Step, *, as_json: bool) -> None:
    """Makes a change as the user, and prints the campaign as it is then."""
    account_id, campaign_id = _change(engine, slug, user_email, step)
    _print(engine, account_id, campaign_id, as_json=as_json)


def _change(engine: Engine, slug: str, user_email: str, step: Step) -> tuple[int, int]:
    with transaction(engine) as session:
        account_id = account_by_slug(session, slug).id
        user_id = user_by_email(session, account_id, user_email).id
        return account_id, step(session, account_id, user_id)


def _print(engine: Engine, account_id: int, campaign_id: int, *, as_json: bool) -> None:
    with transaction(engine) as session:
        row = store.show(session, account_id, campaign_id)
    if as_json:
        print_json({name: getattr(row, name) for name in _SHOWN})
    else:
        _print_text(row)


def _print_text(row: CampaignRow) -> None:
    click.echo(f"Campaign {row.id} {row.name!r}: {row.status}")
    click.echo(f"  to the list {row.list_name}, from {row.sender}, by {row.author_email}")
    if row.scheduled_for:
        zone = f" (entered for {row.schedule_zone})" if row.schedule_zone else ""
        click.echo(f"  approved by {row.approver_email}, due {row.scheduled_for:%Y-%m-%d %H:%M:%S %Z}{zone}")
    if row.started_at:
        click.echo(f"  started {row.started_at:%Y-%m-%d %H:%M:%S %Z}")
        click.echo("  " + ", ".join(f"{count:,} {state.replace('_', ' ')}" for state, count in row.counts.items()))
    if row.note:
        click.echo(f"  note: {row.note}")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not encoded in UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise InvalidInput(f"The file {path} can't be read: {reason}.", field=path.suffix.lstrip(".")) from None
