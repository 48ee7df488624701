"""Work on hostile input, in a fork of this process that is killed past its limits of CPU time, memory and output."""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

CPU_S = 5
ITEMS_PER_S = 200  # so many more items may take a second more
WALL_S = 300.0  # on a busy machine, or where the fork waits for something
MEMORY = 1 << 30  # bytes, besides what this process has
MOST = 16 << 20  # bytes of output, and MOST_ITEM more for each item
MOST_ITEM = 16 << 10


class PastLimit(Exception):
    """The work took too much time or memory, wrote too much, or ended its process."""


def call(work: Callable[[], bytes], items: int = 0) -> bytes:
    """What `work` returns.

    Args:
        work: called in the fork; what it raises is a mistake in it, and ends the fork.
        items: how many things it does one after the other; the limits of time and output grow with them.

    Raises:
        PastLimit: it did not end by itself, or wrote too much.
    """
    cpu_s, most = CPU_S + items // ITEMS_PER_S, MOST + items * MOST_ITEM
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            _limit(cpu_s)
            output = memoryview(work()[: most + 1])
            while output:
                output = output[os.write(writing, output) :]
            os._exit(0)
        finally:
            os._exit(1)  # no exit handlers, which are the parent's
    os.close(writing)
    try:
        return _read(reading, child, cpu_s, most)
    finally:
        os.close(reading)


def _read(reading: int, child: int, cpu_s: int, most: int) -> bytes:
    """All that the fork writes; it is gone afterwards."""
    output, end, status = bytearray(), time.monotonic() + WALL_S, None
    try:
        while len(output) <= most and select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]:
            if not (part := os.read(reading, 1 << 16)):
                _, status = os.waitpid(child, 0)
                break
            output += part
    finally:
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if status is None:
        raise PastLimit(
            f"writes more than {most >> 20} MB" if len(output) > most else f"takes more than {WALL_S:.0f} s"
        )
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
        raise PastLimit(f"takes more than {cpu_s} s of CPU time")
    if status != 0:
        raise PastLimit(f"takes more than {MEMORY >> 30} GiB of memory, or ends its process")
    return bytes(output)


def _limit(cpu_s: int) -> None:
    """Set the fork's limits; its output goes nowhere, and signals end it."""
    status = Path("/proc/self/statm")
    used = int(status.read_text().split()[0]) * resource.getpagesize() if status.exists() else 0
    for limit, value in (
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        *([(resource.RLIMIT_AS, used + MEMORY)] if used else []),
    ):
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
