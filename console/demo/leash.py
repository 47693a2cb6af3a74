"""Runs a command that ends when whoever started it ends, even by SIGKILL. Linux only (prctl).

    python -m console.demo.leash PARENT_PID COMMAND...

A program of its own, because asking for the signal between fork and exec is not safe in a process with threads. What
it asks for outlives the exec. Source: prctl(2), PR_SET_PDEATHSIG.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent_pid, command = int(sys.argv[1]), sys.argv[2:]
    # SIGTERM rather than SIGKILL: a worker drains, and the last one stops the embedded database.
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    # A frozen child gets SIGHUP with the SIGCONT that the system thaws it by (setpgid(2)); it shall end by SIGTERM too.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if os.getppid() != parent_pid:  # it ended before we asked
        sys.exit(0)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
