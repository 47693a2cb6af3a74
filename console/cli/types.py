"""`sendonce template` and `sendonce message-type`: how an application's messages are made and treated."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from console import config
from console.accounts.store import account_by_slug
from console.cli.root import cli, open_database, print_json
from console.content import template_store
from console.db import transaction
from console.errors import InvalidInput, NotFound
from console.sends import message_types, type_store
from console.sends.message_types import AGE_CAPS_S, ATTEMPT_CAP, LANES
from console.sends.type_store import TypeRow

_ACCOUNT = click.option("--account", "slug", required=True, help="The account.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@cli.group()
def template() -> None:
    """Templates of single messages, in versions."""


@template.command("add")
@click.argument("name")
@_ACCOUNT
@click.option("--subject", required=True, help="The subject, with merge fields.")
@click.option("--html", "html_file", required=True, type=_FILE, help="The HTML part, with merge fields.")
@click.option("--text", "text_file", type=_FILE, help="The text part; made from the HTML part when not given.")
@_JSON
def add_template(name: str, slug: str, subject: str, html_file: Path, text_file: Path | None, as_json: bool) -> None:
    """Add the template NAME, or its next version: message types that use it use that from now on."""
    html, body = _read(html_file, "html"), _read(text_file, "text") if text_file else ""
    with open_database() as engine, transaction(engine) as session:
        account_id = account_by_slug(session, slug).id
        version = message_types.save_template(session, account_id, name=name, subject=subject, html=html, body=body)
    if as_json:
        print_json({"name": name, "version": version})
    else:
        click.echo(f"Version {version} of the template {name} is in force.")


@template.command("list")
@_ACCOUNT
@_JSON
def list_templates(slug: str, as_json: bool) -> None:
    """List the templates with their versions in force."""
    with open_database() as engine, transaction(engine) as session:
        rows = template_store.all_newest(session, account_by_slug(session, slug).id)
    if as_json:
        print_json([{"name": row.name, "version": row.version, "subject": row.subject} for row in rows])
        return
    for row in rows:
        click.echo(f"{row.name}  version {row.version}  {row.subject}")


@template.command("show")
@click.argument("name")
@_ACCOUNT
@click.option("--version", type=click.IntRange(1, 2**63 - 1), help="Another version than the newest.")
@_JSON
def show_template(name: str, slug: str, version: int | None, as_json: bool) -> None:
    """Show the template NAME as it was written."""
    with open_database() as engine, transaction(engine) as session:
        rows = template_store.versions(session, account_by_slug(session, slug).id, name)
    row = next((row for row in rows if version in (None, row.version)), None)
    if row is None:
        raise NotFound(f"The template {name!r} has no version {version}.")
    if as_json:
        print_json(asdict(row))
        return
    click.echo(f"Version {row.version} of {row.name}, {row.created_at:%Y-%m-%d %H:%M}, by {row.author_name or '-'}")
    click.echo(f"Subject: {row.subject}")
    click.echo(f"\n{row.html}")
    if row.text.strip():
        click.echo(f"\n{row.text}")


@cli.group("message-type")
def message_type() -> None:
    """Message types: lane, template, dedupe keys and limits of messages of one kind."""


@message_type.command("set")
@click.argument("name")
@_ACCOUNT
@click.option("--lane", type=click.Choice(LANES), help="urgent for codes and resets, normal for receipts.")
@click.option("--template", "template_name", help="The template; without one, callers give finished parts.")
@click.option("--sender", help="The From field, such as 'Shop <shop@example.com>'.")
@click.option("--route", help="By which route it goes; the account's default when not given.")
@click.option("--window", help="How long a dedupe key is taken: forever, or a duration such as 24h.")
@click.option("--mode", type=click.Choice(["enforce", "observe"]), help="observe: repeats go out and are noted.")
@click.option("--on-conflict", type=click.Choice(["refuse", "first"]), help="A taken key with other content.")
@click.option("--key-pattern", help="Makes dedupe keys, such as order_receipt:{order_id}:{email_type}.")
@click.option("--in-doubt", type=click.Choice(["hold", "resend"]), help="What becomes of messages in doubt.")
@click.option(
    "--attempts", type=click.IntRange(1, 1000), help=f"Attempts before it is given up; {ATTEMPT_CAP} at first."
)
@click.option("--max-age", help="How long it may wait before it is given up, such as 15m.")
@_JSON
def set_type(name: str, slug: str, as_json: bool, **given: Any) -> None:
    """Make the message type NAME, or change what is given of it.

    A new one needs a lane. Its messages are given up, when nothing else is said, after 15m (urgent) or 4d.
    """
    with open_database() as engine, transaction(engine) as session:
        account_id = account_by_slug(session, slug).id
        try:
            before = type_store.show(session, account_id, name)
        except NotFound:
            before = _first(name, given)
        row = _changed(before, given)
        is_new = message_types.put_type(session, account_id, row)
    if as_json:
        print_json(asdict(row))
    else:
        click.echo(f"{'Made' if is_new else 'Set'} the message type {name}.")


@message_type.command("list")
@_ACCOUNT
@_JSON
def list_types(slug: str, as_json: bool) -> None:
    """List the message types."""
    with open_database() as engine, transaction(engine) as session:
        rows = type_store.all_types(session, account_by_slug(session, slug).id)
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    for row in rows:
        window = "forever" if row.window_s is None else message_types.duration(row.window_s)
        click.echo(f"{row.name}  {row.lane}  template {row.template or '-'}  {row.mode}  window {window}")


def _first(name: str, given: dict[str, Any]) -> TypeRow:
    lane = given["lane"]
    if lane is None:
        raise InvalidInput("A new message type needs --lane.", field="lane")
    return TypeRow(
        name=name,
        lane=lane,
        template=None,
        sender=config.load().default_sender,
        window_s=None,
        mode="enforce",
        on_conflict="refuse",
        key_pattern=None,
        in_doubt_policy="hold",
        attempt_cap=ATTEMPT_CAP,
        age_cap_s=AGE_CAPS_S[lane],
    )


def _changed(before: TypeRow, given: dict[str, Any]) -> TypeRow:
    columns = {"template_name": "template", "in_doubt": "in_doubt_policy", "attempts": "attempt_cap"}
    values = {columns.get(name, name): value for name, value in given.items() if value is not None}
    if "window" in values:
        text = str(values.pop("window"))
        values["window_s"] = None if text == "forever" else message_types.seconds(text, field="window")
    if "max_age" in values:
        values["age_cap_s"] = message_types.seconds(str(values.pop("max_age")), field="max_age")
    return TypeRow(**(asdict(before) | values))


def _read(path: Path, field: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not in UTF-8 (byte {error.start}).", field=field) from None
