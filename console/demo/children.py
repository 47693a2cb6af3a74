"""Child processes of the demo, the drill and the bench: started on a leash, killed, frozen, ended together.

Start children from the main thread: the leash follows the thread that started them.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from console.errors import SendonceError

# `sendonce worker` grants itself 7.5 s to end, and the embedded database some more.
END_LIMIT_S = 12.0
_LOG_TAIL_LINES = 12


class Child:
    """One process with its log. Its output goes to the log too, unless `has_output`."""

    def __init__(
        self, name: str, command: list[str], *, environ: Mapping[str, str], log: Path, has_output: bool = False
    ):
        self.name = name
        self.command = command
        self.log = log
        with log.open("ab") as file:
            self.running = subprocess.Popen(
                [sys.executable, "-m", "console.demo.leash", str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if has_output else file,
                stderr=file,
                env=dict(environ),
                # Out of the terminal's reach: Ctrl-C is for us, who then end the children in order.
                process_group=0,
            )

    @property
    def pid(self) -> int:
        return self.running.pid

    def is_alive(self) -> bool:
        return self.running.poll() is None

    def first_line(self, *, within_s: float = 30.0) -> str:
        """Gives the first line of its output.

        Raises: SendonceError with the end of its log when it ended, or nothing came in time.
        """
        output = self.running.stdout
        assert output is not None
        lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=lambda: lines.put(output.readline()), daemon=True).start()
        with suppress(queue.Empty):
            line = lines.get(timeout=within_s).decode(errors="replace").strip()
            if line:
                return line
        raise SendonceError(f"The {self.name} did not start.{self.log_tail()}")

    def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        self.running.kill()
        self.running.wait()

    def freeze(self) -> None:
        self.running.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.running.send_signal(signal.SIGCONT)

    def ask_to_end(self) -> None:
        """SIGTERM; a frozen child is thawed for it. Returns at once."""
        self.running.terminate()
        self.thaw()

    def wait(self, limit_s: float) -> int:
        """Waits for its end, which is forced when the time is up; gives its exit code."""
        try:
            return self.running.wait(max(0.0, limit_s))
        except subprocess.TimeoutExpired:
            self.kill()
            return self.running.wait()

    def log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        return "\n".join([f" The end of its log, {self.log}:", *lines]) if lines else f" Its log, {self.log}, is empty."


class Children:
    """Those that are to be ended together, whatever happens: all that were ever started, in order."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.started: list[Child] = []

    def __enter__(self) -> "Children":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _undisturbed():
            self.end(self.started)

    def start(self, name: str, command: list[str], *, environ: Mapping[str, str], has_output: bool = False) -> Child:
        log = self.folder / f"{name.replace(' ', '-')}.log"
        child = Child(name, command, environ=environ, log=log, has_output=has_output)
        self.started.append(child)
        return child

    @staticmethod
    def end(children: list[Child]) -> None:
        """Ends them, all at once, by SIGTERM and, when that is not enough, by SIGKILL."""
        for child in children:
            if child.is_alive():
                child.ask_to_end()
        deadline = time.monotonic() + END_LIMIT_S
        for child in children:
            child.wait(deadline - time.monotonic())


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Lets nobody's second Ctrl-C or SIGTERM leave children behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, way in before.items():
            signal.signal(number, way)


def sendonce(*arguments: str) -> list[str]:
    """Gives the command line of a `sendonce` command of this very installation."""
    return [sys.executable, "-m", "console", *arguments]
