"""`sendonce demo`, `drill` and `bench`: what shows, breaks on purpose and measures."""

import logging
import os
import sys

import click
from rich.console import Console

from console import logs
from console.cli.root import cli, print_json
from console.demo import bench as benches
from console.demo import demo as demos
from console.demo import drill as drills
from console.demo.bench_urgent import MESSAGES
from console.demo.place import own_place
from console.demo.show import Show

SEEDS = 2**31 - 1


@cli.command()
@click.option("--recipients", default=2000, show_default=True, type=click.IntRange(50, 200_000))
@click.option("--exit", "exits", is_flag=True, help="Stop everything at the end; exit with 1 if a promise was broken.")
def demo(recipients: int, exits: bool) -> None:
    """Show it all: a campaign to made-up people, workers killed and frozen on the way, and what arrived.

    In a folder and a PostgreSQL of its own below the data directory, emptied at every start. Nothing leaves the
    machine, and nothing of yours is touched.
    """
    logs.set_up("text", level=logging.WARNING)
    verdict = demos.run(Show(), recipients=recipients, environ=os.environ, stays_open=not exits)
    if not verdict.held:
        sys.exit(1)


@cli.command()
@click.option("--recipients", default=5000, show_default=True, type=click.IntRange(1, 1_000_000))
@click.option("--kills", default=6, show_default=True, type=click.IntRange(0, 1000), help="SIGKILLs, with a restart.")
@click.option(
    "--freezes", default=2, show_default=True, type=click.IntRange(0, 1000), help="SIGSTOPs past the deadline."
)
@click.option(
    "--seed", default=1, show_default=True, type=click.IntRange(0, SEEDS), help="The same seed, the same moments."
)
@click.option(
    "--dot-delay-ms", default=5.0, show_default=True, type=click.FloatRange(0, 10_000), help="Of the mailbox."
)
@click.option(
    "--mailbox", is_flag=True, help="Send to a mailbox of its own that counts, also with SENDONCE_SMTP_URL set."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document with all figures.")
def drill(
    recipients: int, kills: int, freezes: int, seed: int, dot_delay_ms: float, mailbox: bool, as_json: bool
) -> None:
    """Send a campaign while its workers are killed and frozen, and count what arrived.

    With SENDONCE_DATABASE_URL in that database, which nobody else may be using for sending, else in a PostgreSQL of
    its own in the data directory. With SENDONCE_SMTP_URL to that server, where nobody counts, else to a mailbox of
    its own. Exits with 1 when a promise was broken.
    """
    plan = drills.Plan(recipients=recipients, kills=kills, freezes=freezes, seed=seed, dot_delay_ms=dot_delay_ms)
    logs.set_up("text", level=logging.WARNING)
    overrides = {name: value for name, value in drills.PACE.items() if name not in os.environ}
    is_embedded = not os.environ.get("SENDONCE_DATABASE_URL")
    has_mailbox = mailbox or not os.environ.get("SENDONCE_SMTP_URL")
    with own_place("drill", environ=os.environ, overrides=overrides, is_embedded=is_embedded) as place:
        report = drills.run(
            place, plan, has_mailbox=has_mailbox, tell=lambda words: click.echo(words, err=True), meter=lambda *_: None
        )
    if as_json:
        print_json(report.document())
    if not report.verdict.held:
        sys.exit(1)


@cli.command()
@click.argument("names", nargs=-1, type=click.Choice(list(benches.MEASURES)), metavar="[WHAT]...")
@click.option("--recipients", type=click.IntRange(100, 10_000_000), help="Of each campaign; default: as promised.")
@click.option("--messages", default=MESSAGES, show_default=True, type=click.IntRange(2, 100_000), help="Of urgent.")
@click.option("--long", "is_long", is_flag=True, help="Campaigns as large as the promises say, up to 1,000,000.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document with all figures.")
def bench(names: tuple[str, ...], recipients: int | None, messages: int, is_long: bool, as_json: bool) -> None:
    """Measure how fast it is, against a reference taken in the same run.

    WHAT is one or more of throughput, tenths, workers, pages, idle, build, api, urgent, fill; all of them when none is
    named. In a PostgreSQL of its own in the data directory, with default settings. throughput, tenths, workers and
    pages need smtp-sink and smtp-source of postfix, on the PATH or in SENDONCE_POSTFIX_DIR. Exits with 1 when a target
    is missed.
    """
    logs.set_up("text", level=logging.WARNING)
    show = Show(Console(stderr=as_json, highlight=False))
    chosen = list(names) or list(benches.MEASURES)
    results = benches.run(
        show, chosen, environ=os.environ, recipients=recipients, is_long=is_long, urgent_count=messages
    )
    if as_json:
        print_json([result.document() for result in results])
    if not all(result.is_met for result in results):
        sys.exit(1)
