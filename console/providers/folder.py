"""A provider for development and trials: each message becomes an .eml file in a folder, and goes nowhere else."""

import os
import re
from contextlib import suppress
from pathlib import Path

from console.providers.base import (
    Accepted,
    Answer,
    Capabilities,
    Deferred,
    Finding,
    Idempotency,
    Message,
    NotThere,
    Reply,
    Trouble,
    Unknown,
)
from console.providers.call_channel import Call, CallChannel

WRITE_TIMEOUT_S = 30.0
_UNSAFE = re.compile(r"[^A-Za-z0-9._@+-]")


class Folder:
    """See providers.base.Provider. A file's name is the message's key, so that a second hand-over changes nothing."""

    capabilities = Capabilities(
        idempotency=Idempotency.REPLAY,
        window_s=10 * 365 * 86_400.0,
        may_look_up=True,
        settle_s=1.0,
        horizon_s=10 * 365 * 86_400.0,
        is_absence_proof=True,
        keeps_message_id=True,
    )

    def __init__(self, name: str, *, folder: Path):
        self.name = name
        self._folder = folder

    def connect(self) -> CallChannel | Trouble:
        return self.check() or CallChannel(_Writer(self), timeout_s=WRITE_TIMEOUT_S)

    def check(self) -> Trouble | None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            return Trouble(f"the folder {self._folder} can't be made: {error.strerror}", is_lasting=True)
        if not os.access(self._folder, os.W_OK | os.X_OK):
            return Trouble(f"the folder {self._folder} can't be written to", is_lasting=True)
        return None

    def find(self, message: Message) -> Finding:
        path = self.path_of(message)
        try:
            is_there = path.exists()
        except OSError as error:
            return Unknown(f"{path.name} can't be looked for: {error.strerror}")
        return Accepted(_written(path), path.name) if is_there else NotThere(Reply("response", text="no such file"))

    def path_of(self, message: Message) -> Path:
        """Gives the message's file."""
        return self._folder / f"{_UNSAFE.sub('_', message.key or message.rcpt_to)[:200]}.eml"

    def write(self, message: Message) -> Answer:
        """Writes the file under another name, then gives it its own, unless there is one already."""
        path = self.path_of(message)
        draft = path.with_suffix(f".{os.getpid()}-{os.urandom(4).hex()}.part")
        try:
            with draft.open("xb") as file:
                file.write(message.wire)
                file.flush()
                os.fsync(file.fileno())
            # Unlike rename, a link never replaces: of two writers at once one finds the other's.
            with suppress(FileExistsError):
                os.link(draft, path)
        except OSError as error:
            return Deferred(Reply("request", text=f"{path.name} can't be written: {error.strerror}"))
        finally:
            draft.unlink(missing_ok=True)
        return Accepted(_written(path), path.name)


class _Writer:
    """See call_channel.Caller."""

    def __init__(self, folder: Folder):
        self._folder = folder

    def prepare(self, message: Message) -> Call:
        return lambda: self._folder.write(message)

    def close(self) -> None:
        """Nothing is kept open."""


def _written(path: Path) -> Reply:
    return Reply("response", text=f"written to {path.name}")
