"""Waits of processes that forward signals end at a signal that does not wake them."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from system import fork_client, interruptible

DELAY_SECONDS = 0.3  # the wait has begun; if it has not, the test passes as well
SLEEP_SECONDS, ATTEMPTS = 1.0, 3  # on a busy machine the first may be before the wait


def wait_for_process() -> tuple[Callable[[], int], Callable[[], None]]:
    process = subprocess.Popen(["sleep", "600"])
    return lambda: interruptible.wait(process), process.terminate


def wait_for_fork() -> tuple[Callable[[], int], Callable[[], None]]:
    client, server = socket.socketpair()
    return lambda: fork_client.exit_status(client), lambda: server.sendall((-signal.SIGTERM % 2**64).to_bytes(8, "big"))


@pytest.mark.slow
@pytest.mark.parametrize("start", [wait_for_process, wait_for_fork])
def test_a_wait_ends_at_a_signal_that_does_not_wake_it(
    start: Callable[[], tuple[Callable[[], int], Callable[[], None]]],
) -> None:
    """Python notes it in another thread, as it does just before the main thread blocks."""
    wait, end = start()
    before = signal.signal(signal.SIGUSR2, lambda *_: end())
    timer = threading.Timer(DELAY_SECONDS, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR2))
    timer.start()
    try:
        assert wait() % 2**64 == -signal.SIGTERM % 2**64
    finally:
        signal.signal(signal.SIGUSR2, before)
        signal.set_wakeup_fd(-1)


WAITING = """
import socket
from system import fork_client
client, server = socket.socketpair()
print("ready", flush=True)
fork_client.exit_status(client)
"""


@pytest.mark.slow
def test_what_waits_for_a_fork_sleeps_until_it_ends() -> None:
    """A training has dozens of these."""
    with subprocess.Popen([sys.executable, "-c", WAITING], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        counts = [times_woken(process.pid)]
        for _ in range(ATTEMPTS):
            time.sleep(SLEEP_SECONDS)
            counts.append(times_woken(process.pid))
        process.kill()
    assert any(before == after for before, after in pairwise(counts)), counts


def times_woken(process: int) -> str:
    status = Path(f"/proc/{process}/status").read_text()
    return status.partition("voluntary_ctxt_switches:")[2].split()[0]
