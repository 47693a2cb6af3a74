"""Children end with their parent, whatever happens to it, and however they stand."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from console.demo.children import Children
from console.errors import SendonceError

PARENT = """
import os, sys, time
from pathlib import Path
from console.demo.children import Children
with Children(Path(sys.argv[1])) as children:
    child = children.start("sleeper", ["sleep", "60"], environ=os.environ)
    print(child.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("is_frozen", [False, True])
def test_children_end_when_their_parent_does(tmp_path: Path, how: signal.Signals, is_frozen: bool) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    deadline = time.monotonic() + 10
    while child.name() != "sleep":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    if is_frozen:
        child.suspend()
    parent.send_signal(how)
    parent.wait(20)
    assert psutil.wait_procs([child], timeout=5)[1] == []
    parent.stdout.close()


def test_a_child_that_does_not_end_when_asked_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.demo.children.END_LIMIT_S", 0.5)
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('here', flush=True); time.sleep(60)"
    )
    with Children(tmp_path) as children:
        child = children.start("stubborn", [sys.executable, "-c", stubborn], environ=os.environ, has_output=True)
        assert child.first_line() == "here"
    assert child.running.returncode == -signal.SIGKILL


def test_a_child_that_does_not_start_says_why(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        code = "import sys; sys.exit('no such luck')"
        child = children.start("thing", [sys.executable, "-c", code], environ=os.environ, has_output=True)
        with pytest.raises(SendonceError, match=r"The thing did not start\.(.|\n)*no such luck"):
            child.first_line()
