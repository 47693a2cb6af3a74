"""`sendonce inbox`: endpoints, rules and the events that applications sent."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click
from sqlalchemy import Engine

from console.accounts.store import account_by_slug
from console.cli.root import cli, open_database, open_installation, print_json
from console.db import transaction
from console.errors import InvalidInput
from console.inbox import endpoint_store, event_store, reading, rule_store, rules, service
from console.inbox.event_store import STATUSES, EventRow
from console.inbox.rules import Draft
from console.inbox.service import Wanted
from console.inbox.signatures import ENCODINGS, SCHEMES

PAGE_ROWS = 1000
_ID = click.IntRange(1, 2**63 - 1)

_account = click.option("--account", "slug", required=True, help="The account's name.")
_endpoint = click.option("--endpoint", "endpoint_name", required=True, metavar="NAME", help="The endpoint's name.")
_of_endpoint = click.option("--endpoint", "endpoint_name", metavar="NAME", help="Only of this endpoint.")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_lines = click.option("--json", "as_json", is_flag=True, help="One JSON document a line.")


@cli.group()
def inbox() -> None:
    """Events that applications send, and what is made of them."""


@inbox.group()
def endpoint() -> None:
    """Addresses that applications send events to."""


@endpoint.command("add")
@click.argument("name")
@_account
@click.option("--scheme", type=click.Choice(SCHEMES), default="none", show_default=True, help="How events are signed.")
@click.option("--secret-stdin", is_flag=True, help="Read the secret from the first line of standard input.")
@click.option("--signature-header", default="", help="hmac_sha256: the header with the signature.")
@click.option("--signature-prefix", default="", help="hmac_sha256: what stands before it, such as sha256=.")
@click.option("--signature-encoding", type=click.Choice(ENCODINGS), default="hex", show_default=True)
@click.option("--event-id-header", default="webhook-id", show_default=True, help="The header with the event's id.")
@click.option("--event-id-path", default="$.id", show_default=True, help="The JSON path of the event's id.")
@click.option("--event-type-header", default="", help="The header with the event's type.")
@click.option("--event-type-path", default="$.type", show_default=True, help="The JSON path of the event's type.")
@_json
def add_endpoint(name: str, slug: str, secret_stdin: bool, as_json: bool, **options: Any) -> None:
    """Make an endpoint and print its address. This is the only time that it is shown."""
    wanted = Wanted(secret=_given_secret(options["scheme"], is_named=secret_stdin), **options)
    with open_installation() as opened, transaction(opened.engine) as session:
        made = service.add_endpoint(
            session,
            account_by_slug(session, slug).id,
            user_id=None,
            name=name,
            wanted=wanted,
            secret_key=opened.settings.secret_key,
        )
        url = made.url(opened.settings.base_url)
    if as_json:
        print_json({"id": made.endpoint_id, "name": made.name, "url": url})
    else:
        click.echo(url)
        click.echo("Keep it now, and give it to the sender: it is not shown again.", err=True)


@endpoint.command("list")
@_account
@_lines
def list_endpoints(slug: str, as_json: bool) -> None:
    """List the endpoints."""
    with open_database() as engine, transaction(engine) as session:
        found = endpoint_store.endpoint_rows(session, account_by_slug(session, slug).id)
    for row in found:
        if as_json:
            print_json(asdict(row))
        else:
            state = "open" if row.is_active else "closed"
            click.echo(f"{row.id:>6}  {state:<6}  {row.scheme:<17}  {row.name}")


@inbox.group()
def rule() -> None:
    """What events ask for."""


def _pairs(context: click.Context, option: click.Parameter, typed: tuple[str, ...]) -> dict[str, str]:
    return rules.pairs("\n".join(typed), field=option.name or "")


@rule.command("add")
@click.argument("name")
@_account
@_endpoint
@click.option("--event-type", required=True, help="The type of event; * for those that no other rule is for.")
@click.option("--message-type", required=True, help="The message type that is sent.")
@click.option("--to", "recipient_path", required=True, metavar="PATH", help="The JSON path of the address.")
@click.option("--param", "params", multiple=True, callback=_pairs, metavar="NAME=PATH", help="A template's parameter.")
@click.option("--dedupe-key", "dedupe_pattern", default="", help="A pattern with {names}, or a JSON path.")
@click.option("--entity", "entities", multiple=True, callback=_pairs, metavar="NAME=PATH", help="What it is about.")
@_json
def add_rule(slug: str, endpoint_name: str, as_json: bool, **options: Any) -> None:
    """Write a rule. It does nothing until it was tried out and switched on."""
    with open_database() as engine, transaction(engine) as session:
        account_id = account_by_slug(session, slug).id
        endpoint_id = endpoint_store.endpoint_by_name(session, account_id, endpoint_name).id
        rule_id = rules.add_rule(session, account_id, endpoint_id, user_id=None, draft=Draft(**options))
    if as_json:
        print_json({"id": rule_id, "name": options["name"], "status": "draft"})
    else:
        click.echo(f"Wrote the rule {options['name']}. Try it out with: sendonce inbox rule try {options['name']} ...")


@rule.command("list")
@_account
@_endpoint
@_lines
def list_rules(slug: str, endpoint_name: str, as_json: bool) -> None:
    """List an endpoint's rules."""
    with open_database() as engine, transaction(engine) as session:
        account_id = account_by_slug(session, slug).id
        endpoint_id = endpoint_store.endpoint_by_name(session, account_id, endpoint_name).id
        found = rule_store.rules_of(session, account_id, endpoint_id)
    for row in found:
        if as_json:
            print_json(asdict(row))
        else:
            click.echo(f"{row.id:>6}  {row.status:<5}  {row.event_type:<24}  {row.message_type:<20}  {row.name}")


@rule.command("try")
@click.argument("name")
@_account
@_endpoint
@click.option("--event", "event_id", type=_ID, required=True, help="The number of a stored event.")
@_json
def try_rule(name: str, slug: str, endpoint_name: str, event_id: int, as_json: bool) -> None:
    """Show what a rule would do with a stored event; send nothing."""
    with open_database() as engine, transaction(engine) as session:
        account_id, rule_id, _ = _rule(session, slug, endpoint_name, name)
        trial = reading.try_out(session, account_id, rule_id, user_id=None, event_id=event_id)
    asked, receipt = trial.asked, trial.receipt
    document = {
        "would_work": not trial.problem,
        "problem": trial.problem,
        "to": asked.to if asked else None,
        "message_type": asked.message_type if asked else None,
        "params": dict(asked.params) if asked else None,
        "entities": dict(asked.entities) if asked else None,
        "dedupe_key": receipt.dedupe_key if receipt else None,
        "decision": receipt.decision if receipt else None,
        "warnings": list(receipt.warnings) if receipt else [],
    }
    if as_json:
        print_json(document)
    elif trial.problem:
        click.echo(f"It would fail: {trial.problem}")
    else:
        click.echo(f"It would work: {document['decision']}, to {document['to']}, key {document['dedupe_key']}")
    if trial.problem:
        sys.exit(1)


@rule.command("on")
@click.argument("name")
@_account
@_endpoint
@_json
def switch_on(name: str, slug: str, endpoint_name: str, as_json: bool) -> None:
    """Switch a rule on that was tried out, in the place of the one that is on for the same type."""
    with open_database() as engine, transaction(engine) as session:
        account_id, rule_id, version = _rule(session, slug, endpoint_name, name)
        replaced = rules.switch_on(session, account_id, rule_id, user_id=None, seen_version=version)
    _tell(as_json, {"id": rule_id, "status": "on", "replaced": replaced}, f"The rule {name} is on.")


@rule.command("off")
@click.argument("name")
@_account
@_endpoint
@_json
def switch_off(name: str, slug: str, endpoint_name: str, as_json: bool) -> None:
    """Switch a rule off."""
    with open_database() as engine, transaction(engine) as session:
        account_id, rule_id, _ = _rule(session, slug, endpoint_name, name)
        rules.switch_off(session, account_id, rule_id, user_id=None)
    _tell(as_json, {"id": rule_id, "status": "off"}, f"The rule {name} is off.")


@inbox.command("list")
@_account
@_of_endpoint
@click.option("--status", type=click.Choice(STATUSES), help="Only events in this state.")
@click.option("--reports", "is_reports", is_flag=True, help="What providers reported, not what applications sent.")
@_lines
def list_events(slug: str, endpoint_name: str | None, status: str | None, is_reports: bool, as_json: bool) -> None:
    """List events, newest first."""
    reader = "reports" if is_reports else "rules"
    with open_database() as engine:
        account_id, endpoint_id = _place(engine, slug, endpoint_name)
        for row in _events(engine, account_id, reader=reader, endpoint_id=endpoint_id, status=status):
            if as_json:
                print_json(asdict(row))
            else:
                done = f"send {row.send_id}" if row.send_id else row.reason
                click.echo(f"{row.id:>10}  {row.status:<7}  {row.delivery_count:>3}x  {row.event_id}  {done}".rstrip())


@inbox.command("replay")
@click.argument("event_ids", metavar="[ID]...", nargs=-1, type=_ID)
@_account
@_of_endpoint
@click.option("--status", type=click.Choice(("no_rule", "failed")), help="All events in this state.")
@_json
def replay(event_ids: tuple[int, ...], slug: str, endpoint_name: str | None, status: str | None, as_json: bool) -> None:
    """Read events again, by the rules that are on now: those with these IDs, or those of a state.

    An event that made its message makes no second one.
    """
    if bool(event_ids) == bool(status) or (endpoint_name and not status):
        raise click.UsageError("Name the events by their IDs, or by --status (with --endpoint to narrow it).")
    queued: list[int] = []
    with open_database() as engine:
        account_id, endpoint_id = _place(engine, slug, endpoint_name)
        wanted = list(event_ids)
        if status:
            wanted = [row.id for row in _events(engine, account_id, endpoint_id=endpoint_id, status=status)]
        for start in range(0, len(wanted), PAGE_ROWS):
            with transaction(engine) as session:
                queued += reading.replay(session, account_id, user_id=None, event_ids=wanted[start : start + PAGE_ROWS])
    left = sorted(set(wanted) - set(queued))
    words = f"{len(queued)} will be read again." + (f" {len(left)} can't be: {left[:20]}" if left else "")
    _tell(as_json, {"queued": queued, "skipped": left}, words)


def _place(engine: Engine, slug: str, endpoint_name: str | None) -> tuple[int, int | None]:
    with transaction(engine) as session:
        account_id = account_by_slug(session, slug).id
        if endpoint_name is None:
            return account_id, None
        return account_id, endpoint_store.endpoint_by_name(session, account_id, endpoint_name).id


def _rule(session: Any, slug: str, endpoint_name: str, name: str) -> tuple[int, int, int]:
    account_id = account_by_slug(session, slug).id
    endpoint_id = endpoint_store.endpoint_by_name(session, account_id, endpoint_name).id
    found = rule_store.rule_by_name(session, account_id, endpoint_id, name)
    return account_id, found.id, found.version


def _events(
    engine: Engine, account_id: int, *, endpoint_id: int | None, status: str | None, reader: str = "rules"
) -> Iterator[EventRow]:
    """Gives the rows page by page, each page in a transaction of its own."""
    before_id: int | None = None
    while True:
        with transaction(engine) as session:
            found = event_store.page(
                session,
                account_id,
                reader=reader,
                endpoint_id=endpoint_id,
                status=status,
                before_id=before_id,
                limit=PAGE_ROWS,
            )
        yield from found
        if len(found) < PAGE_ROWS:
            return
        before_id = found[-1].id


def _given_secret(scheme: str, *, is_named: bool) -> str | None:
    """Gives the secret; it never stands among the arguments, which every process of the machine can read."""
    if scheme == "none":
        if is_named:
            raise InvalidInput("Without a signature scheme there is no secret; give --scheme too.", field="scheme")
        return None
    if not is_named and sys.stdin.isatty():
        return click.prompt("Secret", hide_input=True)
    return sys.stdin.buffer.readline().decode(errors="replace").rstrip("\r\n")


def _tell(as_json: bool, document: dict[str, Any], words: str) -> None:
    if as_json:
        print_json(document)
    else:
        click.echo(words)
