"""Where the demo, the drill and the bench play: a folder and a database of their own, never a user's real ones."""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from console import config, schema
from console.config import Settings
from console.db import make_engine
from console.embedded import database_url
from console.errors import Conflict, SendonceError
from console.files import make_data_dir


@dataclass(frozen=True)
class Place:
    """A migrated database, the settings and environment of the processes that play in it, and a folder for logs."""

    settings: Settings
    environ: dict[str, str]
    url: str
    engine: Engine
    folder: Path


@contextmanager
def own_place(
    name: str, *, environ: Mapping[str, str], overrides: Mapping[str, str], is_embedded: bool = True
) -> Iterator[Place]:
    """Gives a place in the folder `name` of the data directory; one process at a time has it.

    Takes:  environ, the caller's; overrides, SENDONCE_* settings that win over it; is_embedded, to use a PostgreSQL of
            its own in the folder, emptied first; else the database that environ names, which is left as it is.
    Raises: SendonceError when somebody else plays there; ConfigError, DatabaseError.
    """
    folder = config.load(environ).data_dir / name
    own = {"SENDONCE_DATA_DIR": str(folder)} | ({"SENDONCE_DATABASE_URL": ""} if is_embedded else {})
    inner = dict(environ) | own | dict(overrides)
    make_data_dir(folder)
    with _alone(folder / "in_use.lock", name):
        settings = config.load(inner)
        logs = folder / "logs"
        logs.mkdir(exist_ok=True)
        for old in (*logs.glob("*.log"), *logs.glob("*.journal")):
            old.unlink()
        with database_url(settings) as url:
            engine = make_engine(url)
            try:
                _prepare(engine, is_emptied=is_embedded)
                yield Place(settings=settings, environ=inner, url=url, engine=engine, folder=logs)
            finally:
                engine.dispose()


def _prepare(engine: Engine, *, is_emptied: bool) -> None:
    schema.check_server(engine)
    if not is_emptied:
        schema.check_revision(engine)
        return
    if schema.current(engine) is not None:
        schema.downgrade(engine, "base")
    schema.upgrade(engine)


@contextmanager
def _alone(lock: Path, name: str) -> Iterator[None]:
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise Conflict(
            f"A {name} runs already in {lock.parent}: end it first, or set SENDONCE_DATA_DIR to another folder."
        ) from None
    try:
        yield
    finally:
        os.close(descriptor)


def require_quiet(moving: list[tuple[str, int]], live_worker_count: int) -> None:
    """Makes sure that a run in a shared database touches nobody's mail.

    Raises: SendonceError: our workers would send others' campaigns to the mailbox, or others' workers ours for real.
    """
    if moving:
        shown = ", ".join(f"{slug}/{campaign_id}" for slug, campaign_id in moving)
        raise SendonceError(
            f"This database has campaigns that are approved or being sent ({shown}), and the drill's workers would"
            " take them too. Use a database of its own, or wait until they are sent, or pause them."
        )
    if live_worker_count:
        raise SendonceError(
            f"{live_worker_count} sending threads work on this database, and they would take the drill's messages."
            " Stop `sendonce serve` and `sendonce worker`, or use a database of its own."
        )
