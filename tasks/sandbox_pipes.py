"""Talk to a sandboxed process: hand it its job, and read what it writes up to a limit of bytes and time."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from typing import IO

READ = 1 << 16  # bytes
KEPT = 4096  # bytes of standard error


def exchange(
    process: subprocess.Popen[bytes], job: bytes, most: int, wall_s: float, setup_s: float
) -> tuple[bytes, bytes, str]:
    """Write the job, and read until the process closes its results, says too much, or takes too long.

    Args:
        process: with pipes for its three streams.
        job: for its standard input, which is closed afterwards.
        most: bytes of its results, and as many of its standard error.
        wall_s: seconds from when it is ready.
        setup_s: seconds until it writes anything.

    Returns:
        Its results; the beginning of its standard error; `time` or `output` if it was cut short, else nothing.
    """
    assert process.stdin and process.stdout and process.stderr
    results, said, printed = bytearray(), bytearray(), 0
    waiting = memoryview(job)
    end, ready = time.monotonic() + setup_s, False
    with selectors.DefaultSelector() as selector:
        for stream, event in (
            (process.stdin, selectors.EVENT_WRITE),
            (process.stdout, selectors.EVENT_READ),
            (process.stderr, selectors.EVENT_READ),
        ):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, event)
        while process.stdout in _open(selector):
            left = end - time.monotonic()
            if left <= 0:
                return bytes(results), bytes(said), "time"
            for key, _ in selector.select(left):
                if key.fileobj is process.stdin:
                    waiting = _write(process.stdin, waiting, selector)
                    continue
                stream = process.stdout if key.fileobj is process.stdout else process.stderr
                read = os.read(stream.fileno(), READ)
                if not read:
                    selector.unregister(stream)
                elif stream is process.stdout:
                    results += read
                    if not ready:
                        ready, end = True, time.monotonic() + wall_s
                else:
                    printed += len(read)
                    said += read[: KEPT - len(said)]
            if len(results) > most or printed > most:
                return bytes(results[:most]), bytes(said), "output"
    return bytes(results), bytes(said), ""


def _open(selector: selectors.BaseSelector) -> list[object]:
    return [key.fileobj for key in selector.get_map().values()]


def _write(stream: IO[bytes], waiting: memoryview, selector: selectors.BaseSelector) -> memoryview:
    """Write what fits; close the stream after the last byte, or when nobody reads it."""
    try:
        waiting = waiting[os.write(stream.fileno(), waiting[:READ]) :]
    except BrokenPipeError:
        waiting = waiting[:0]
    if not waiting:
        selector.unregister(stream)
        stream.close()
    return waiting
