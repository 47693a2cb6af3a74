"""A campaign that is sent for real, by workers in the test's process or in processes of their own; and the checks."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stage as stages
from peers.sink import Sink
from sqlalchemy import Engine, text
from stage import Stage

from console import config
from console.config import Settings
from console.db import make_engine, transaction
from console.demo.children import Child, Children, sendonce
from console.demo.verdict import Row, judge
from console.dispatch.worker import Worker
from console.scheduler import Scheduler, ticks

# Everything that takes minutes in earnest takes fractions of a second here.
QUICK = {
    "SENDONCE_SECRET_KEY": "test-key-" + "k" * 32,
    "SENDONCE_TICK_SECONDS": "0.2",
    "SENDONCE_HEARTBEAT_SECONDS": "0.2",
    "SENDONCE_DEAD_AFTER_SECONDS": "1",
    "SENDONCE_RETRY_BASE_SECONDS": "0.5",
    "SENDONCE_LOG_FORMAT": "text",
}


@dataclass(frozen=True)
class House:
    """An installation with one account, and where its workers connect to."""

    stage: Stage
    database_url: str
    environ: dict[str, str]
    folder: Path

    @property
    def engine(self) -> Engine:
        return self.stage.engine

    def settings(self, **changes: str) -> Settings:
        """Settings as the processes have them; `changes` by the name of the variable, without SENDONCE_."""
        return config.load({**self._settings_alone(), **_named(changes)})

    @contextmanager
    def sending(self, **changes: str) -> Iterator[None]:
        """Sends in the test's own process while the block runs, then drains."""
        settings = self.settings(**changes)
        engine = make_engine(self.database_url)
        scheduler, worker = Scheduler(ticks(settings), engine, settings), Worker(settings, self.database_url)
        worker.start()
        scheduler.start()
        try:
            yield
        finally:
            worker.drain(within_s=5)
            scheduler.stop(within_s=1)
            is_over = worker.join(8)
            engine.dispose()
        assert is_over, "the worker did not end"

    @contextmanager
    def children(self) -> Iterator[Children]:
        """Ends the processes started within the block, whatever happens."""
        with Children(self.folder) as children:
            yield children

    def worker(self, children: Children, **changes: str) -> Child:
        """Starts `sendonce worker`; returns when it works."""
        before = self._alive_pids()
        name = f"worker {len(children.started) + 1}"
        child = children.start(name, sendonce("worker"), environ={**self.environ, **_named(changes)})
        self.wait_until(lambda: child.pid in self._alive_pids() - before or not child.is_alive(), timeout_s=60)
        assert child.is_alive(), child.log_tail()
        return child

    def rows(self, *columns: str, campaign_id: int | None = None) -> dict[str, Any]:
        """A column (or several, as a tuple) of each send, by address."""
        with transaction(self.engine) as session:
            found = session.execute(
                text(
                    f"SELECT email, {', '.join(columns)} FROM sends"
                    " WHERE CAST(:campaign_id AS bigint) IS NULL OR campaign_id = :campaign_id ORDER BY id"
                ),
                {"campaign_id": campaign_id},
            ).all()
        return {email: values[0] if len(columns) == 1 else tuple(values) for email, *values in found}

    def statuses(self) -> dict[str, str]:
        """The state of each send, by address."""
        return self.rows("status")

    def wait_until(self, is_so: Callable[[], bool], *, timeout_s: float = 20.0) -> None:
        """Asks every 20 ms until something is so. Raises: TimeoutError telling the states of the sends."""
        deadline = time.monotonic() + timeout_s
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not so after {timeout_s} s; {dict(Counter(self.statuses().values()))}")
            time.sleep(0.02)

    def wait_until_sent(self, campaign_id: int, *, timeout_s: float = 20.0) -> None:
        """Waits until the campaign is `sent`."""
        self.wait_until(lambda: self.stage.row(campaign_id).status == "sent", timeout_s=timeout_s)

    def check_books(self, sink: Sink, *campaign_ids: int, doubts: int = 0) -> None:
        """The checks of cases.md after every case: nobody twice, books balance, counters are right, nobody else mailed.

        Takes: doubts, how many sends are expected to be in doubt.
        """
        assert not sink.violations
        audience: set[str] = set()
        for campaign_id in campaign_ids:
            with transaction(self.engine) as session:
                rows = [
                    Row(*row)
                    for row in session.execute(
                        text("SELECT email_lower, status, message_id FROM sends WHERE campaign_id = :id"),
                        {"id": campaign_id},
                    )
                ]
            audience |= {row.email_lower for row in rows}
            message_ids = {row.message_id for row in rows}
            assert len(message_ids) == len(rows)
            tally = Counter(
                (each.recipient, each.message_id) for each in sink.accepted if each.message_id in message_ids
            )
            counts = self.stage.row(campaign_id).counts
            verdict = judge(rows, expected=len(rows), counts=counts, tally=tally, in_doubt_limit=doubts)
            assert verdict.broken == []
            assert verdict.states["in_doubt"] == doubts
        assert {recipient for event in sink.events for recipient in event.recipients} <= audience

    def _settings_alone(self) -> dict[str, str]:
        return {name: value for name, value in self.environ.items() if name.startswith("SENDONCE_")}

    def _alive_pids(self) -> set[int]:
        with transaction(self.engine) as session:
            return set(session.execute(text("SELECT pid FROM workers WHERE status = 'alive'")).scalars())


def house(
    engine: Engine,
    database_url: str,
    folder: Path,
    *,
    emails: Sequence[str] = ("rita@example.com", "rob@example.com"),
    smtp_url: str,
    stage: Stage | None = None,
    **changes: str,
) -> House:
    """An account with one list of these people, unless there is a `stage`.

    Takes: changes, settings by their variable's name without SENDONCE_.
    """
    environ = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        **QUICK,
        "SENDONCE_DATABASE_URL": database_url,
        "SENDONCE_SMTP_URL": smtp_url,
        "SENDONCE_DATA_DIR": str(folder / "data"),
        **_named(changes),
    }
    return House(stage or stages.stage(engine, emails=tuple(emails)), database_url, environ, folder)


def _named(changes: dict[str, str]) -> dict[str, str]:
    return {f"SENDONCE_{name}": value for name, value in changes.items()}
