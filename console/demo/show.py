"""What the demo and the bench print: plain lines, and on a terminal colours, tables and a moving bar."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from console.demo.drill import Meter

PLAIN_EVERY_S = 2.0


class Show:
    """The demo's stage towards the person who looks."""

    def __init__(self, console: Console | None = None):
        self._console = console or Console(highlight=False)

    def say(self, words: str) -> None:
        # Flushed at once: somebody may be looking at it through a pipe.
        self._console.print(words, markup=False, soft_wrap=True)
        self._console.file.flush()

    def head(self, words: str) -> None:
        self._console.print(words, style="bold", markup=False, soft_wrap=True)
        self._console.file.flush()

    def verdict(self, words: str, *, is_good: bool) -> None:
        self._console.print(words, style="bold green" if is_good else "bold red", markup=False, soft_wrap=True)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        if not self._console.is_terminal:
            widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
            for row in (headings, *rows):
                self.say("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
            return
        table = Table(*headings)
        for row in rows:
            table.add_row(*row)
        self._console.print(table)

    @contextmanager
    def meter(self, what: str) -> Iterator[Meter]:
        """Gives what is called with (done, all); lines said meanwhile stand above the bar."""
        if not self._console.is_terminal:
            yield _PlainMeter(self, what).tell
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._console, transient=True) as progress:
            task = progress.add_task(what)
            yield lambda done, total: progress.update(task, completed=done, total=total)


class _PlainMeter:
    def __init__(self, show: Show, what: str):
        self._show = show
        self._what = what
        self._said_at = 0.0

    def tell(self, done: int, total: int) -> None:
        if time.monotonic() - self._said_at >= PLAIN_EVERY_S:
            self._said_at = time.monotonic()
            self._show.say(f"{self._what}: {done:,} of {total:,}")
