"""A sandbox of its own for one program: started for it, and ended with it."""

from __future__ import annotations

import os
import subprocess

from tasks.sandbox import bubblewrap, pipes, seccomp


def run(job: bytes, most: int, wall_s: float) -> pipes.ProcessOutput:
    """Run a job of tasks.sandbox.runner in a new sandbox.

    Args:
        job: as the runner reads it.
        most: bytes of its results, and as many of its standard error.
        wall_s: seconds from when it is ready.

    Raises:
        OSError: bubblewrap cannot be started.
    """
    rules = [seccomp.descriptor()] if seccomp.available() else []
    filtered = [word for rule in rules for word in ("--seccomp", str(rule))]
    try:
        process = subprocess.Popen(
            [
                *bubblewrap.sandbox_command(),
                "--die-with-parent",
                *filtered,
                *bubblewrap.python_command(bubblewrap.RUNNER),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,  # never a file or device of this machine: its owner could change it from inside
            pass_fds=rules,
            start_new_session=True,
            cwd="/",
            env={},
        )
    finally:
        for rule in rules:
            os.close(rule)
    assert process.stdin and process.stdout and process.stderr
    with process:
        try:
            return pipes.exchange(pipes.Streams(process.stdin, process.stdout, process.stderr), job, most, wall_s)
        finally:
            process.kill()  # the rest dies with it: --die-with-parent, and the first process of a namespace
