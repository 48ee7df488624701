"""Wait for a program so that signals are answered: by this process, or by the program itself."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from system import subreaper


def wait(process: subprocess.Popen[Any]) -> int:
    """The exit status of a process; signal handlers run while it is waited for.

    A signal that arrives just before a blocking wait does not end it. With a time limit Python waits in short sleeps
    (docs.python.org, subprocess.Popen.wait), and handlers run between them.
    """
    return process.wait(threading.TIMEOUT_MAX)


def run_interruptible(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: Path | None = None,
    answered_later: bool = False,
    output: IO[bytes] | None = None,
) -> int:
    """Run a program that decides itself what Ctrl-C means; returns its exit status, 130 if it died of it.

    If this process is killed, the program is, too.

    Args:
        command: the program.
        environment: its variables.
        cwd: its folder, the user's by default.
        output: where it writes what it says; the terminal by default. With one, nothing is asked of the user.
        answered_later: whether the program starts with Ctrl-C blocked, and lets it through once it can answer it.
    """

    def take_interrupts() -> None:
        subreaper.die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK if answered_later else signal.SIG_UNBLOCK, [signal.SIGINT])

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program has it as well; it is in the same group
    try:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            preexec_fn=take_interrupts,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL if output else None,
        )
        status = process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return status if status >= 0 else 128 - status
