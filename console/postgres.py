"""One PostgreSQL server of our own: made, started, found again and stopped. Its caller holds the start lock.

Where it stands is console/placement.py's business, who shares it console/embedded.py's.
"""

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from console.errors import DatabaseError
from console.files import make_folder
from console.placement import Place, can_enter, give, spawn_options

MAJOR_VERSION = "18"
PORT = 5432  # only a part of the socket's name: the server does not listen on the network
SOCKET_NAME = f".s.PGSQL.{PORT}"
LONGEST_SOCKET_PATH_BYTES = 107  # sun_path holds 108 with the closing zero, unix(7)
LARGEST_LOG_BYTES = 10_000_000
START_LIMIT_S = 120  # recovery after a crash replays at most max_wal_size
STOP_LIMIT_S = 60
SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "192MB",
    "max_wal_size": "2GB",
    "fsync": "on",
    "synchronous_commit": "on",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}


class Server:
    """The server of one cluster. All methods but url() are called under the start lock."""

    def __init__(self, place: Place):
        self._place = place
        self._log = place.home / "server.log"
        self._pid_file = place.cluster / "postmaster.pid"
        self._launched: subprocess.Popen[Any] | None = None

    def url(self, database: str) -> str:
        """Gives the URL of a database on the running server."""
        return f"postgresql://postgres@/{database}?host={quote(str(self._sockets))}&port={PORT}"

    def start(self) -> None:
        """Returns when the server takes connections: the one that runs already, or a new one.

        Raises: DatabaseError with the end of the server's log.
        """
        self._make_cluster()
        self._launched = None
        log_start = 0
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            if self._launched is None and not self.is_alive():
                self._clear_remains()
                log_start = self._turn_log()
                self._launched = self._launch()
            if self._is_ready():
                return
            if self._launched is not None and self._launched.poll() is not None:
                raise DatabaseError(f"The embedded PostgreSQL did not start.{self._log_tail(log_start)}")
            time.sleep(0.05)
        raise DatabaseError(
            f"The embedded PostgreSQL was not ready after {START_LIMIT_S} seconds.{self._log_tail(log_start)}"
        )

    def make_database(self, name: str) -> None:
        """Makes the database unless it is there."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).rowcount:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    def stop(self) -> None:
        """Stops the server cleanly (sessions are ended, a checkpoint is written); nothing to do when none runs."""
        postmaster = self._postmaster()
        if postmaster is None:
            if self._launched is not None and self._launched.poll() is None:
                self._launched.kill()  # we were interrupted before it had written its pid: it has not begun anything
                self._launched.wait()
            return
        for sign, limit_s in ((signal.SIGINT, STOP_LIMIT_S), (signal.SIGQUIT, 10), (signal.SIGKILL, 10)):
            if not self._end([postmaster], sign, limit_s=limit_s):
                return

    def is_alive(self) -> bool:
        """Tells whether a server runs on this cluster, be it in another container that shares the folder."""
        return self._postmaster() is not None or self._is_listening()

    def _make_cluster(self) -> None:
        cluster, user = self._place.cluster, self._place.user
        if cluster.exists():
            made_by = (cluster / "PG_VERSION").read_text(encoding="ascii").strip()
            if made_by != MAJOR_VERSION:
                raise DatabaseError(
                    f"The database in {cluster} was made by PostgreSQL {made_by}; this program carries {MAJOR_VERSION}."
                )
            return
        for leftover in self._place.home.glob("draft.*"):
            shutil.rmtree(leftover, ignore_errors=True)
        draft = self._place.home / f"draft.{secrets.token_hex(8)}"
        make_folder(draft, mode=0o700)
        give(draft, user)
        command = [str(self._place.programs / "initdb"), "-D", str(draft), "-U", "postgres", "--auth=trust"]
        # The builtin C.UTF-8 sorts by code point and is the same on every machine: an update of the system's
        # locales can't corrupt an index, and upper() and lower() still know all of Unicode.
        command += ["--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, **spawn_options(user))
        if done.returncode != 0:
            shutil.rmtree(draft, ignore_errors=True)
            raise DatabaseError(f"The embedded database can't be made in {draft.parent}: {_reason(done.stderr)}.")
        # Renamed when whole, so that a start that was killed in the middle leaves nothing that looks like a cluster.
        draft.rename(cluster)

    def _launch(self) -> subprocess.Popen[Any]:
        sockets = self._make_sockets()
        command = [str(self._place.programs / "postgres"), "-D", str(self._place.cluster)]
        for name, value in (SETTINGS | {"unix_socket_directories": f'"{sockets}"'}).items():
            command += ["-c", f"{name}={value}"]
        with open(open_private(self._log, os.O_WRONLY | os.O_APPEND), "ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, **spawn_options(self._place.user))

    def _pid_lines(self) -> list[str]:
        try:
            return self._pid_file.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []

    def _postmaster(self) -> psutil.Process | None:
        lines = self._pid_lines()
        if not lines or not lines[0].strip().isdigit():
            return None
        # The pid of a server that was killed may belong to anybody by now.
        try:
            found = psutil.Process(int(lines[0]))
            return found if self._is_ours(found) else None
        except psutil.Error:
            return None

    def _is_ours(self, found: psutil.Process) -> bool:
        """Tells whether the process is a living postgres of this cluster (each of them stands in its folder)."""
        try:
            if found.name() != "postgres" or found.status() == psutil.STATUS_ZOMBIE:
                return False
            return os.path.realpath(found.cwd()) == os.path.realpath(self._place.cluster)
        except psutil.Error:
            return False

    def _end(self, processes: list[psutil.Process], sign: signal.Signals, *, limit_s: float) -> list[psutil.Process]:
        """Signals the server's processes and waits; gives those that are still there after `limit_s`.

        psutil's own wait would wait for zombies too, which stay as long as their parent does not ask for them.
        """
        for found in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                found.send_signal(sign)
        deadline = time.monotonic() + limit_s
        while (left := [found for found in processes if self._is_ours(found)]) and time.monotonic() < deadline:
            time.sleep(0.02)
        return left

    def _is_listening(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(self._sockets / SOCKET_NAME))
            except OSError:
                return False
        return True

    def _is_ready(self) -> bool:
        try:
            with psycopg.connect(self.url("postgres"), connect_timeout=5):
                return True
        except psycopg.OperationalError:
            return False

    def _clear_remains(self) -> None:
        """Clears the way after a server that was killed: its orphans, its pid file, its socket."""
        orphans = [found for found in psutil.process_iter() if self._is_ours(found)]
        # Without their server they can only be waited for; a new one recovers from the write-ahead log anyway.
        self._end(orphans, signal.SIGKILL, limit_s=5)
        lines = self._pid_lines()
        if lines:
            # PostgreSQL passes over a pid file with its parent's pid, and still refuses to start while anybody holds
            # the shared memory that the file names. With the file deleted it could not see that.
            lines[0] = str(os.getpid())
            self._overwrite_pid_file("\n".join(lines) + "\n")
        elif self._pid_file.exists():
            self._pid_file.unlink()
        for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
            (self._sockets / name).unlink(missing_ok=True)

    def _overwrite_pid_file(self, content: str) -> None:
        # In one write and not emptied first: a kill in between would leave a file without the shared memory's line.
        descriptor = os.open(self._pid_file, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            os.ftruncate(descriptor, os.write(descriptor, content.encode()))
        finally:
            os.close(descriptor)

    @cached_property
    def _sockets(self) -> Path:
        """The socket's folder: beside the cluster, or a short one when that path is too long for a socket."""
        beside = self._place.home / "sockets"
        if _fits(beside):
            return beside
        # The same for every process whatever its TMPDIR, so that they find one another.
        name = "sendonce-" + hashlib.sha256(os.fsencode(self._place.cluster)).hexdigest()[:16]
        for parent in (Path("/tmp"), Path("/var/tmp"), Path(tempfile.gettempdir())):
            if _fits(parent / name) and can_enter(parent, self._place.user):
                return parent / name
        raise DatabaseError("No folder for temporary files has a path short enough for the database's socket.")

    def _make_sockets(self) -> Path:
        folder, user = self._sockets, self._place.user
        if make_folder(folder, mode=0o700):
            give(folder, user)
        status = folder.lstat()
        owner = user.uid if user else os.geteuid()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o077:
            raise DatabaseError(f"The folder {folder} for the database's socket belongs to somebody else: remove it.")
        return folder

    def _turn_log(self) -> int:
        """Puts a log that has grown large aside; gives how many bytes the log has."""
        size = self._log.stat().st_size if self._log.exists() else 0
        if size <= LARGEST_LOG_BYTES:
            return size
        self._log.replace(self._log.with_suffix(".log.1"))
        return 0

    def _log_tail(self, start: int) -> str:
        try:
            with self._log.open("rb") as file:
                file.seek(start)
                lines = file.read().decode(errors="replace").splitlines()[-10:]
        except FileNotFoundError:
            lines = []
        return "\n".join([f" The end of its log, {self._log}:", *lines])


def _reason(said: str) -> str:
    """Gives the one reason in what initdb said, with its hint: the first error; later ones follow from it."""
    found = re.search(r"(?m)(?:FATAL|PANIC|ERROR|error): +(.+)(?:\n.*(?:HINT|hint): +(.+))?$", said)
    if found is None:
        return said.strip().rpartition("\n")[2] or "initdb gave no reason"
    return ". ".join(part.rstrip(".") for part in found.groups() if part)


def open_private(path: Path, flags: int) -> int:
    """Opens (and makes, with mode 0600) a file of ours; never through a symbolic link."""
    descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    owner = path.parent.stat()
    # root may use the data directory of a user, who must be able to open the file afterwards.
    if os.fstat(descriptor).st_uid != owner.st_uid and os.geteuid() == 0:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
    return descriptor


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder / SOCKET_NAME)) <= LONGEST_SOCKET_PATH_BYTES
