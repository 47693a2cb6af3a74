"""The embedded PostgreSQL, shared: started by the first process that needs it, stopped by the last one that used it.

Each process that uses the server holds a shared lock; whoever leaves and gets the lock for itself alone is the last.
Starting and stopping happen under a second lock. The system drops both locks of a process that is killed.
A server that is killed while it is in use is started again by one of its users, at the same URL.
"""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import structlog

from console import placement
from console.config import Settings
from console.errors import DatabaseError
from console.postgres import Server, open_private

log = structlog.get_logger(__name__)

DATABASE = "sendonce"
WATCH_EVERY_S = 1.0


@contextmanager
def database_url(settings: Settings) -> Iterator[str]:
    """Gives the database's URL: the one in the settings, or that of the embedded server, held while the block runs.

    Raises: DatabaseError when the embedded server can't be started, with the reason.
    """
    if settings.database_url is not None:
        yield settings.database_url
        return
    try:
        place = placement.find(settings.data_dir)
        users = open_private(place.home / "users.lock", os.O_RDWR)
    except OSError as error:
        raise DatabaseError(f"The embedded database has no place in {settings.data_dir}: {error}.") from error
    try:
        with _in_use(Server(place), users=users, start_lock=place.home / "start.lock") as url:
            yield url
    finally:
        os.close(users)


@contextmanager
def _in_use(server: Server, *, users: int, start_lock: Path) -> Iterator[str]:
    with _locked(start_lock):
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            server.start()
            server.make_database(DATABASE)
        except BaseException as error:  # also Ctrl-C and SIGTERM: nobody would use what has just been started
            if _is_last(users):
                server.stop()
            if isinstance(error, (OSError, psycopg.Error)):
                raise DatabaseError(f"The embedded PostgreSQL can't be started: {error}.") from error
            raise
        url = server.url(DATABASE)
    is_over = threading.Event()
    threading.Thread(target=_watch, args=(server, start_lock, is_over), name="database-watch", daemon=True).start()
    try:
        yield url
    finally:
        is_over.set()
        with _locked(start_lock):
            if _is_last(users):
                server.stop()


def _watch(server: Server, start_lock: Path, is_over: threading.Event) -> None:
    while not is_over.wait(WATCH_EVERY_S):
        if server.is_alive():
            continue
        try:
            with _locked(start_lock):
                if not is_over.is_set():
                    server.start()
                    log.warning("database.started_again")
        except (OSError, DatabaseError, psycopg.Error) as error:
            log.error("database.does_not_start", reason=str(error))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = open_private(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_last(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
