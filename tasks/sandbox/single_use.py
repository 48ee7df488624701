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
    process = subprocess.Popen(
        [*bubblewrap.sandbox_command(), "--die-with-parent", *bubblewrap.python_command(bubblewrap.RUNNER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,  # never a file or device of this machine: its owner could change it from inside
        start_new_session=True,
        cwd="/",
        env={},
    )
    assert process.stdin and process.stdout and process.stderr
    with process:
        try:
            return pipes.exchange(pipes.Streams(process.stdin, process.stdout, process.stderr), job, most, wall_s)
        finally:
            process.kill()  # the rest dies with it: --die-with-parent, and the first process of a namespace
