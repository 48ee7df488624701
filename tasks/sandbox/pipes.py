"""Talk to a sandboxed process: hand it its job, and read what it writes up to a limit of bytes and time."""

from __future__ import annotations

import os
import selectors
import time
from typing import IO, NamedTuple

READ = 1 << 16  # bytes
KEPT = 4096  # bytes of standard error
SETUP_SECONDS = 60.0  # for the sandbox to start, on a busy machine
LATE_SECONDS = 10.0  # longer than a busy machine takes to come back to it
READY = b"ready\n"  # the first line of tasks.sandbox.runner


class Streams(NamedTuple):
    """This process's ends of the pipes of a sandboxed process."""

    job: IO[bytes]
    results: IO[bytes]
    errors: IO[bytes]


class ProcessOutput(NamedTuple):
    """What a sandboxed process wrote: its results, the beginning of its standard error.

    `ended` is `time` or `output` if it was cut short, else empty.
    """

    results: bytes
    errors: bytes
    ended: str

    @property
    def ready(self) -> bool:
        """Whether the runner started, so that what follows is the program's doing."""
        return self.results.startswith(READY)


def exchange(streams: Streams, job: bytes, most: int, wall_s: float) -> ProcessOutput:
    """Write the job, and read until the process closes its results, says too much, or takes too long.

    Args:
        streams: of the process; the one of the job is closed afterwards.
        job: for its standard input.
        most: bytes of its results, and as many of its standard error.
        wall_s: seconds from when it is ready; until then it has SETUP_SECONDS.
    """
    results, errors, printed = bytearray(), bytearray(), 0
    waiting = memoryview(job)
    looked, pause, ready = time.monotonic(), 0.0, False
    end = looked + SETUP_SECONDS
    with selectors.DefaultSelector() as selector:
        for stream, event in (
            (streams.job, selectors.EVENT_WRITE),
            (streams.results, selectors.EVENT_READ),
            (streams.errors, selectors.EVENT_READ),
        ):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, event)
        while streams.results in _open(selector):
            before, looked = looked, time.monotonic()
            if looked - before > pause + LATE_SECONDS:  # this process was suspended, which is not the program's doing
                end += looked - before
            if (pause := end - looked) <= 0:
                return ProcessOutput(bytes(results), bytes(errors), "time")
            for key, _ in selector.select(pause):
                if key.fileobj is streams.job:
                    waiting = _write(streams.job, waiting, selector)
                    continue
                stream = streams.results if key.fileobj is streams.results else streams.errors
                read = os.read(stream.fileno(), READ)
                if not read:
                    selector.unregister(stream)
                elif stream is streams.results:
                    results += read
                    if not ready:
                        ready, end = True, time.monotonic() + wall_s
                else:
                    printed += len(read)
                    errors += read[: KEPT - len(errors)]
            if len(results) > most or printed > most:
                return ProcessOutput(bytes(results[:most]), bytes(errors), "output")
    return ProcessOutput(bytes(results), bytes(errors), "")


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
