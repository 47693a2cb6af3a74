"""The `sendonce` command. Each module adds the commands of one area to `cli`."""

import errno
import os
import signal
import sys
from collections.abc import Sequence

import click

from console.cli import (
    accounts,
    bounces,
    campaigns,
    database,
    demo,
    inbox,
    incidents,
    keys,
    providers,
    sends,
    serve,
    settle,
    subscribers,
    types,
)
from console.cli.root import cli
from console.errors import InvalidInput, SendonceError

__all__ = [
    "accounts",
    "bounces",
    "campaigns",
    "cli",
    "database",
    "demo",
    "inbox",
    "incidents",
    "keys",
    "main",
    "providers",
    "sends",
    "serve",
    "settle",
    "subscribers",
    "types",
]

# The disk is full, by quota or by the size of a file, or the terminal is gone.
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def main() -> None:
    """Runs the command; a user's mistake is one sentence on stderr and exit code 1 (2 for wrong usage)."""
    _open_closed_streams()
    # As an exception, so that the embedded database is let go of; `serve` and `worker` have their own way to stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        _refuse_undecoded(sys.argv[1:])
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
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        # Python writes out what waits for standard output at its end, and would fail there once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        click.echo(f"Error: {error.filename or 'The output'} can't be written: {error.strerror}.", err=True)
        sys.exit(1)


def _open_closed_streams() -> None:
    """Opens those standard streams on nothing that the program was started without, as some daemons do.

    In this order each gets its own number, which is the lowest that is free: the next file to be opened, such as the
    connection to the database, would get it otherwise, with whatever is written to the stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


def _refuse_undecoded(arguments: Sequence[str]) -> None:
    """Raises: InvalidInput for an argument whose bytes are not UTF-8; no output and no database takes it."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(argument).decode(errors="replace")
            raise InvalidInput(
                f"The argument {shown!r} is not encoded in UTF-8: write it anew, or rename the file that it names."
            ) from None
