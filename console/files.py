"""Folders and small files that the program makes for itself: made once, whole, with the right owner and mode.

Nothing here changes the mode or the owner of what was there before.
"""

import os
import secrets
from pathlib import Path


def is_root() -> bool:
    """Tells whether this process may do everything on the machine."""
    return os.geteuid() == 0


def make_folder(path: Path, *, mode: int) -> bool:
    """Makes the folder with exactly `mode`, whatever the umask; gives whether it was made now.

    A folder that is there stays as it is. Missing parents are made as `mkdir -p` makes them.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir()
    except FileExistsError:
        if not path.is_dir():
            raise
        return False
    path.chmod(mode)
    return True


def make_data_dir(path: Path) -> None:
    """Makes the data directory unless it is there: 0700, as root 0711 so that the database's user can pass through."""
    make_folder(path, mode=0o711 if is_root() else 0o700)


def write_once(path: Path, text: str) -> None:
    """Makes the file with mode 0600 unless it is there; whole or not at all, also when two processes start at once."""
    if path.exists():
        return
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        # link() fails when another process was first; its text is then the one that both use.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
