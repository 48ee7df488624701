"""Go on as a fork of a process that has imported the environment's packages; see system/fork_server.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from system import fork_client, fork_server, interruptible, subreaper, warm_processes

FORKING = "CROSSZERO_FORKING"  # environment variable: this process is to become the server


def fork_processes(modules: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run this program again, in a fork of a process that has imported `modules`, and exit with its status.

    In that fork this function returns at once. To be called before much is imported or started.

    Args:
        modules: of the installed packages.
        environment: what these packages read when they are imported.
    """
    if sys.platform != "linux" or fork_server.is_fork():
        return
    if os.environ.pop(FORKING, ""):
        fork_server.preload(modules)
        fork_server.serve(fork_server.this_program())
    if workflow := warm_processes.workflow():
        sys.exit(warm_processes.run_again(workflow, modules, environment))
    _run_again(environment)


def fork_in_workflow(modules: Sequence[str], environment: Mapping[str, str]) -> None:
    """`fork_processes` in a job of a workflow; elsewhere nothing, for programs that start one process alone.

    Args:
        modules: of the installed packages.
        environment: what these packages read when they are imported.
    """
    if warm_processes.workflow():
        fork_processes(modules, environment)


def _run_again(environment: Mapping[str, str]) -> NoReturn:
    process = subprocess.Popen(
        [sys.executable, subreaper.__file__, sys.executable, *sys.orig_argv[1:]],
        env={**os.environ, **environment, FORKING: "1"},
        start_new_session=True,
    )
    for number in fork_client.FORWARDED:
        signal.signal(number, lambda *_: process.terminate())
    sys.exit(fork_client.shell_status(interruptible.wait(process)))
