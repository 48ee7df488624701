"""Which GPUs of this machine a process takes when no scheduler assigns them: one kernel lock per GPU while it lives.

Slurm sets CUDA_VISIBLE_DEVICES for its jobs. On a machine without a scheduler nobody does, and two trainings that
Snakemake runs side by side would both take GPU 0.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from filelock import FileLock, Timeout

from system import private_folder
from system.errors import UserError

POLL_SECONDS = 2.0
_held: dict[str, FileLock] = {}  # locks of this process, by GPU


def visible() -> list[str]:
    """The GPUs that this process may use, by their names in CUDA_VISIBLE_DEVICES."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip()]
    try:
        listing = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return []
    return [str(number) for number, _ in enumerate(listing.splitlines())]


def take(needed: int, what: str, folder: Path | None = None) -> list[str]:
    """Take GPUs for this process alone until it ends, waiting while other processes hold too many.

    In a Slurm job all of the job's GPUs are its own, so none is locked.

    Args:
        needed: number of GPUs.
        what: needs them, for the message.
        folder: of the locks; by default in the user's own (system/private_folder.py).

    Raises:
        UserError: this process may not use that many, or the folder of the locks is not safe.
    """
    pool = visible()
    if len(pool) < needed:
        named = f"CUDA_VISIBLE_DEVICES names {','.join(pool) or 'none'}" if "CUDA_VISIBLE_DEVICES" in os.environ else ""
        raise UserError(
            f"{what} needs {needed} GPUs, but {named or f'this machine has {len(pool)}'}: make more visible, or set "
            "full.hardware.gpus and the batch in its run file",
            code="too-few-gpus",
            needed=needed,
            visible=len(pool),
        )
    if "SLURM_JOB_ID" in os.environ:
        return pool
    folder = private_folder.make(folder or private_folder.of_user() / "gpus")
    reported = False
    while True:
        # One process at a time chooses, so that no two hold half of what each needs.
        with FileLock(folder / "choosing"):
            mine = [name for name in pool if name in _held]
            for name in pool:
                if len(mine) < needed and name not in mine and _lock(folder, name):
                    mine.append(name)
            if len(mine) >= needed:
                return mine[:needed]
            for name in mine:
                _held.pop(name).release()
        if not reported:
            print(f"{what} waits for {needed} of {len(pool)} GPUs: other processes hold them", flush=True)
            reported = True
        time.sleep(POLL_SECONDS)


def _lock(folder: Path, name: str) -> bool:
    lock = FileLock(folder / name.replace("/", "-"))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    _held[name] = lock
    return True
