"""Runs a command within a time limit, with its output in a log, and watches the GPU's memory while it runs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from system.errors import ROOT

LOOK_SECONDS = 0.2
MEMORY_SECONDS = 2.0
PATIENCE_SECONDS = 60.0  # between SIGTERM and SIGKILL: the trainer is ended, and its servers


class Ended(NamedTuple):
    """How a command ended."""

    status: int  # 0 if it did what it should
    output: str
    peak_gb: float  # memory in use on the fullest GPU, of all processes
    stopped: bool  # because `until` said so
    late: bool  # it reached its limit


def used_gb() -> float:
    """Memory in use on the fullest GPU; 0 without one."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return 0.0
    return max((int(line) * 2**20 / 1e9 for line in said.split() if line.isdigit()), default=0.0)


def run(command: Sequence[str | Path], log: Path, limit: float, until: Callable[[], bool] = lambda: False) -> Ended:
    """Run a command in the project's folder to its end, its limit, or until it should be stopped.

    Args:
        command: the command.
        log: its output is appended.
        limit: in seconds; then it gets SIGTERM, as from a scheduler, and SIGKILL a minute later.
        until: asked several times a second; where it says so, the command is ended in the same way.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    started, looked, peak, stopped, late = time.monotonic(), 0.0, 0.0, False, False
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(map(str, command))}\n")
        file.flush()
        begin = file.tell()
        process = subprocess.Popen(
            list(command),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while process.poll() is None and not (stopped or late):
                time.sleep(LOOK_SECONDS)
                if time.monotonic() - looked > MEMORY_SECONDS:
                    looked, peak = time.monotonic(), max(peak, used_gb())
                stopped, late = until(), time.monotonic() - started > limit
        finally:  # also where this process is interrupted
            _end(process)
    output = log.read_bytes()[begin:].decode(errors="replace")
    return Ended(process.returncode, output, peak, stopped, late)


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM for the command and its children, then SIGKILL; nothing where it has ended."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_SECONDS)
