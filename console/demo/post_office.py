"""The mailbox as the demo, the drill and the tests use it: started, and its journal counted. See mailbox.py."""

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from console.demo.children import Child, Children


@dataclass(frozen=True)
class PostOffice:
    """A running mailbox."""

    child: Child
    port: int
    journal: Path

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    def accepted_count(self) -> int:
        """Gives how many messages were accepted by now."""
        return self.journal.read_bytes().count(b"\n") if self.journal.exists() else 0

    def moments(self) -> dict[str, float]:
        """Gives when each recipient's last message was accepted, by time.time(); only of a journal with moments."""
        lines = self.journal.read_text("utf-8", "replace").split("\n")[:-1]
        return {fields[0].lower(): float(fields[2]) for fields in (line.split("\t") for line in lines)}

    def tally(self) -> "Tally":
        return read_tally(self.journal)


# How often each (recipient in lower case, Message-ID) was accepted.
Tally = Counter[tuple[str, str]]


def open_post_office(
    children: Children,
    *,
    environ: Mapping[str, str],
    dot_delay_ms: float = 0.0,
    port: int = 0,
    has_moments: bool = False,
) -> PostOffice:
    """Starts a mailbox with an empty journal in the children's folder.

    Raises: SendonceError when it does not start.
    """
    journal = children.folder / "mailbox.journal"
    journal.unlink(missing_ok=True)
    command = [sys.executable, "-m", "console.demo.mailbox", "--journal", str(journal)]
    command += ["--dot-delay-ms", f"{dot_delay_ms:g}", "--port", str(port)]
    command += ["--moments"] if has_moments else []
    child = children.start("mailbox", command, environ=environ, has_output=True)
    return PostOffice(child=child, port=int(child.first_line()), journal=journal)


def read_tally(journal: Path) -> Tally:
    """Counts a journal; a line that is still being written is left out."""
    tally: Tally = Counter()
    if not journal.exists():
        return tally
    for line in journal.read_bytes().split(b"\n")[:-1]:
        recipient, message_id, *_ = line.decode("utf-8", "replace").split("\t")
        tally[recipient.lower(), message_id] += 1
    return tally
