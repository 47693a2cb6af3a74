"""The reference that the bench measures against: smtp-sink and smtp-source, from Debian's postfix package.

The package need not be installed (its services are not wanted); unpacked it serves as well, see HOW_TO_GET.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from console.demo.children import Child, Children
from console.errors import SendonceError
from console.files import is_root

HOW_TO_GET = (
    "smtp-sink and smtp-source are not on the PATH. They come with postfix; on Debian or Ubuntu they can be had"
    " without its services: `apt-get download postfix`, `dpkg-deb -x postfix_*.deb /opt/postfix`, then set"
    " SENDONCE_POSTFIX_DIR=/opt/postfix."
)
# The sessions that smtp-source keeps at once, as the issue has it.
SESSIONS = 8
BACKLOG = 1000
START_LIMIT_S = 10.0


@dataclass(frozen=True)
class Postfix:
    """The two programs and the environment that they need."""

    sink: str
    source: str
    environ: dict[str, str]

    def start_sink(self, children: Children) -> tuple[Child, int]:
        """Gives a running sink, without counters, and its port.

        Raises: SendonceError when it does not listen.
        """
        port = _free_port()
        user = ["-u", "nobody"] if is_root() else []
        command = [self.sink, *user, f"127.0.0.1:{port}", str(BACKLOG)]
        child = children.start("smtp-sink", command, environ=self.environ)
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline and child.is_alive():
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return child, port
            time.sleep(0.05)
        raise SendonceError(f"smtp-sink does not listen.{child.log_tail()}")

    def feed(self, port: int, *, message_count: int, message_bytes: int) -> float:
        """Feeds the sink by smtp-source; gives messages per second."""
        command = [self.source, "-s", str(SESSIONS), "-d", "-l", str(message_bytes), "-m", str(message_count)]
        command += ["-f", "news@example.com", "-t", "person@example.com", f"127.0.0.1:{port}"]
        began = time.perf_counter()
        done = subprocess.run(command, env=self.environ, check=False, capture_output=True, text=True)
        seconds = time.perf_counter() - began
        if done.returncode != 0:
            raise SendonceError(f"smtp-source failed: {done.stderr.strip()}")
        return message_count / seconds


def find_postfix(folder: Path | None, *, environ: Mapping[str, str]) -> Postfix:
    """Finds the programs in the folder of an unpacked package, or on the PATH.

    Raises: SendonceError saying how to get them.
    """
    path = environ.get("PATH", os.defpath)
    inner = {"PATH": path}
    if folder is not None:
        inner["LD_LIBRARY_PATH"] = str(folder / "usr/lib/postfix")
        path = str(folder / "usr/sbin")
    sink, source = shutil.which("smtp-sink", path=path), shutil.which("smtp-source", path=path)
    if sink is None or source is None:
        raise SendonceError(
            f"SENDONCE_POSTFIX_DIR is {folder}, but has no usr/sbin/smtp-sink." if folder else HOW_TO_GET
        )
    return Postfix(sink=sink, source=source, environ=inner)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
