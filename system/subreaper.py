"""Run a command, and end everything that it started with it: `python system/subreaper.py COMMAND…`.

A trainer may start processes that detach themselves, as Ray does; when it is killed, some of them live on. This process
becomes their parent when they lose theirs (Linux), so it can find them. It kills them when the command ends, on SIGTERM
or SIGUSR1, and when the process that started it is gone. Its exit status is the command's. It uses only the standard
library, because it runs in every environment, before anything else.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
LOOK_SECONDS = 0.05
PATIENCE_SECONDS = 15.0  # between asking the command to end and killing it


def prctl(option: int, value: int) -> None:
    """The system call on Linux; elsewhere nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


def children() -> list[int]:
    """Processes whose parent is this one."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                pids.append(int(entry.name))
    return pids


def end_all() -> None:
    """Kill all children, then the orphans that they leave, until none is left."""
    while pids := children():
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _status(pid: int) -> int | None:
    """The exit status of a child as a shell shows it; None while it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def wait(pid: int, signals: list[int], client: socket.socket | None = None) -> int:
    """Wait for a child, and ask it to end when a signal came or the client is gone; returns its exit status.

    Args:
        pid: of the child.
        signals: signals that this process got, appended by its handlers.
        client: a connection on which nothing comes but its end.
    """
    gone: list[socket.socket] = []
    while (status := _status(pid)) is None and not (signals or gone):
        gone = select.select([client] if client else [], [], [], LOOK_SECONDS)[0]
    until = time.monotonic() + PATIENCE_SECONDS
    if status is None:
        os.kill(pid, signal.SIGTERM)
    while status is None and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
        status = _status(pid)
    return 128 + signal.SIGKILL if status is None else status


def main() -> int:
    """Run the command of the command line; returns its exit status."""
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGUSR1):  # srun turns SIGTERM into a kill, but passes SIGUSR1 on
        signal.signal(number, lambda number, _: signals.append(number))
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    command = subprocess.Popen(
        sys.argv[1:], preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL), stdin=subprocess.DEVNULL
    )
    command.returncode = wait(command.pid, signals)
    end_all()
    return command.returncode


if __name__ == "__main__":
    sys.exit(main())
