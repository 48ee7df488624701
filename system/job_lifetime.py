"""Jobs of a workflow end when the workflow that started them is killed.

Snakemake runs a job through a shell. When Snakemake itself is killed, shell and job live on, and the same job started
again would meet its predecessor. So a job watches the Snakemake above it and ends with it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

import psutil

WATCH_SECONDS = 1.0
PR_SET_PDEATHSIG = 1  # linux/prctl.h


def _is_snakemake(process: psutil.Process) -> bool:
    try:
        command = process.cmdline()[:3]
    except psutil.Error:
        return False
    return any(Path(word).name in ("snakemake", "snakemake.cli") for word in command)


def _ancestors() -> list[psutil.Process]:
    try:
        ancestors: list[psutil.Process] = psutil.Process().parents()
    except psutil.Error:  # one ended just now
        ancestors = []
    return ancestors


def chain_to_snakemake() -> list[psutil.Process]:
    """This process's ancestors up to the nearest Snakemake; empty if no Snakemake started it."""
    chain = _ancestors()
    for number, process in enumerate(chain, start=1):
        if _is_snakemake(process):
            return chain[:number]
    return []


def end_with_workflow() -> None:
    """From now on send this process SIGTERM as soon as the Snakemake that started it is gone."""
    chain = chain_to_snakemake()
    if not chain:
        return

    def watch() -> None:
        while _ancestors()[: len(chain)] == chain:
            time.sleep(WATCH_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)  # a process in between has lost its parent

    threading.Thread(target=watch, daemon=True).start()


def die_with_parent() -> None:
    """For a child between fork and exec: have the kernel kill it when its parent ends, however that ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
