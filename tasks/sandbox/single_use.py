"""A sandbox of its own for one program: started for it, and ended with it."""

from __future__ import annotations

import subprocess

from tasks.sandbox import bubblewrap, pipes


def run(job: bytes, most: int, wall_s: float) -> pipes.ProcessOutput:
    """Run a job of tasks.sandbox.runner in a new sandbox.

    Args:
        job: as the runner reads it.
        most: bytes of its results, and as many of its standard error.
        wall_s: seconds from when it is ready.

    Raises:
        OSError: bubblewrap cannot be started.
    """
    # Pipes, never a file or device of this machine: its owner could change it from inside
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = bubblewrap.start(bubblewrap.RUNNER, "--die-with-parent", **streams)
    assert process.stdin and process.stdout and process.stderr
    with process:
        try:
            return pipes.exchange(pipes.Streams(process.stdin, process.stdout, process.stderr), job, most, wall_s)
        finally:
            process.kill()  # the rest dies with it: --die-with-parent, and the first process of a namespace
