"""`sendonce demo` as a person runs it: it tells what it does, stops when asked, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from console.demo.children import sendonce

pytestmark = pytest.mark.kill


@pytest.fixture
def environ() -> Iterator[dict[str, str]]:
    """With a data directory of its own, that the embedded database's user can reach."""
    with tempfile.TemporaryDirectory(prefix="sendonce-demo-") as folder:
        Path(folder).chmod(0o711)
        bare = {name: value for name, value in os.environ.items() if not name.startswith("SENDONCE_")}
        # The demo must not mind settings that are meant for the real thing.
        yield bare | {
            "SENDONCE_DATA_DIR": f"{folder}/data",
            "SENDONCE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
            "SENDONCE_SMTP_URL": "smtp://127.0.0.1:1",
            "PYTHONUNBUFFERED": "1",
        }


class Shown:
    """A running demo and what it has said by now."""

    def __init__(self, environ: dict[str, str], *arguments: str):
        self.running = subprocess.Popen(
            sendonce("demo", *arguments), env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.began = time.monotonic()
        self.first_output_s: float | None = None
        self.text = ""
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, words: str, *, timeout_s: float = 90.0) -> None:
        deadline = time.monotonic() + timeout_s
        while words not in self.text:
            assert time.monotonic() < deadline, self.text
            assert self.running.poll() is None or words in self.text, self.text
            time.sleep(0.05)

    def _read(self) -> None:
        assert self.running.stdout is not None
        for line in self.running.stdout:
            self.first_output_s = self.first_output_s or time.monotonic() - self.began
            self.text += line


def _figure(text: str, name: str) -> int:
    found = re.search(rf"^ *{name} +([\d,]+)", text, re.MULTILINE)
    assert found, text
    return int(found[1].replace(",", ""))


def test_the_demo_keeps_its_promise_twice_in_a_row_and_leaves_no_process(environ: dict[str, str]) -> None:
    for _ in range(2):
        shown = Shown(environ, "--recipients", "300", "--exit")
        family = []
        while shown.running.poll() is None:
            family = psutil.Process(shown.running.pid).children(recursive=True) or family
            time.sleep(0.2)
        assert shown.running.returncode == 0, shown.text
        assert shown.first_output_s is not None
        assert shown.first_output_s < 5
        assert "SIGKILL" in shown.text
        assert "SIGSTOP" in shown.text
        assert "The promise held" in shown.text
        assert _figure(shown.text, "recipients") == 300
        assert (_figure(shown.text, "duplicates"), _figure(shown.text, "lost")) == (0, 0)
        assert _figure(shown.text, "suppressed") == 3 + 5
        assert _figure(shown.text, "failed") == 3
        total = sum(_figure(shown.text, name) for name in ("sent", "in doubt", "suppressed", "failed"))
        assert total == 300
        assert psutil.wait_procs(family, timeout=5)[1] == []


def test_the_console_stays_open_with_its_sign_ins_until_control_c(environ: dict[str, str]) -> None:
    shown = Shown(environ, "--recipients", "120")
    shown.wait_for("Ctrl-C ends the demo")
    for role in ("marketer", "approver", "support", "operator", "admin"):
        assert re.search(rf"^ *\w+@demo\.example\.com +\S+ +\w+ \w+, {role}$", shown.text, re.MULTILINE), shown.text
    url = re.search(r"http://127\.0\.0\.1:\d+", shown.text)
    assert url
    with urllib.request.urlopen(url[0], timeout=10) as answer:
        assert answer.status == 200
    family = psutil.Process(shown.running.pid).children(recursive=True)
    assert len(family) > 4
    shown.running.send_signal(signal.SIGINT)
    assert shown.running.wait(30) == 0
    assert psutil.wait_procs(family, timeout=5)[1] == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_demo_that_is_stopped_in_the_middle_takes_everything_with_it(
    environ: dict[str, str], how: signal.Signals
) -> None:
    """While one worker is frozen; and the next start is none the worse for it."""
    shown = Shown(environ, "--recipients", "300", "--exit")
    shown.wait_for("SIGSTOP")
    family = psutil.Process(shown.running.pid).children(recursive=True)
    shown.running.send_signal(how)
    shown.running.wait(30)
    assert "Traceback" not in shown.text
    assert psutil.wait_procs(family, timeout=25)[1] == []
