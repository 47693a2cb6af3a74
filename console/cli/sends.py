"""`sendonce sends`: the rows of the ledger, for scripts and for people."""

from collections.abc import Iterator
from dataclasses import asdict

import click
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from console.accounts.store import account_by_slug
from console.audience.address import parse
from console.cli.root import cli, open_database, print_json
from console.db import transaction
from console.errors import InvalidInput
from console.sends.search_store import (
    Found,
    SendRow,
    page_newest,
    page_of_campaign,
    page_of_recipient,
    search_text,
    show_campaign,
)
from console.sends.states import State

PAGE_ROWS = 1000
# The fields that scripts may rely on; further ones may come.
FIELDS = (
    "id",
    "email",
    "status",
    "dedupe_key",
    "message_id",
    "attempts",
    "provider_reply",
    "correlation_id",
    "campaign_id",
    "finished_at",
)


@cli.command()
@click.option("--account", "slug", required=True, help="The account's name.")
@click.option("--campaign", "campaign_id", type=click.IntRange(1, 2**63 - 1), help="Only this campaign.")
@click.option("--recipient", help="Only sends to this address (whole, upper or lower case).")
@click.option("--status", type=click.Choice([str(state) for state in State]), help="Only sends in this state.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document a line.")
def sends(slug: str, campaign_id: int | None, recipient: str | None, status: str | None, as_json: bool) -> None:
    """Lists sends: of a campaign, to a recipient, or all, newest first."""
    with open_database() as engine:
        with transaction(engine) as session:
            account_id = account_by_slug(session, slug).id
            if campaign_id is not None:
                show_campaign(session, account_id, campaign_id)
        email_lower = None if recipient is None else _email_lower(recipient)
        rows = _all_rows(engine, account_id, campaign_id=campaign_id, email_lower=email_lower, status=status)
        for row in rows:
            _print(row, as_json=as_json)


def _all_rows(
    engine: Engine, account_id: int, *, campaign_id: int | None, email_lower: str | None, status: str | None
) -> Iterator[SendRow]:
    """Gives the rows page by page, each page in a transaction of its own: flat memory, no long snapshot."""
    after: str | None = None
    while True:
        with transaction(engine) as session:
            found = _page(session, account_id, campaign_id, email_lower=email_lower, status=status, after=after)
        for row in found.rows:
            if (campaign_id is None or row.campaign_id == campaign_id) and status in (None, row.status):
                yield row
        after = found.next_after
        if after is None:
            return


def _page(
    session: Session,
    account_id: int,
    campaign_id: int | None,
    *,
    email_lower: str | None,
    status: str | None,
    after: str | None,
) -> Found:
    if email_lower is not None:
        return page_of_recipient(session, account_id, email_lower, after=after, limit=PAGE_ROWS)
    if campaign_id is not None:
        return page_of_campaign(session, account_id, campaign_id, status=status, after=after, limit=PAGE_ROWS)
    return page_newest(session, account_id, before=after, limit=PAGE_ROWS)


def _email_lower(recipient: str) -> str:
    """Gives the address as the ledger keeps it; what is no address is looked for as it was typed."""
    try:
        return parse(recipient).email_lower
    except InvalidInput:
        return search_text(recipient)


def _print(row: SendRow, *, as_json: bool) -> None:
    if as_json:
        print_json({name: value for name, value in asdict(row).items() if name in FIELDS})
        return
    attempts = "1 attempt" if row.attempts == 1 else f"{row.attempts} attempts"
    click.echo(f"{row.id:>10}  {row.status:<10}  {attempts:<11}  {row.email}  {row.provider_reply or ''}".rstrip())
