"""The `sendonce` command. Each module adds the commands of one area to `cli`."""

import signal
import sys

import click

from console.cli import accounts, campaigns, database, demo, sends, serve, settle, subscribers
from console.cli.root import cli
from console.errors import SendonceError

__all__ = ["accounts", "campaigns", "cli", "database", "demo", "main", "sends", "serve", "settle", "subscribers"]


def main() -> None:
    """Runs the command; a user's mistake is one sentence on stderr and exit code 1 (2 for wrong usage)."""
    # As an exception, so that the embedded database is let go of; `serve` and `worker` have their own way to stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except SendonceError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
