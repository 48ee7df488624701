"""Which GPUs of this machine a process takes, where no scheduler says so: a kernel lock for each, held while it lives.

Slurm sets CUDA_VISIBLE_DEVICES for its jobs. On a machine of one's own nobody does, and two trainings that Snakemake
runs side by side would both take GPU 0.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO

from contracts.errors import UserError

LOOK_SECONDS = 2.0
_held: dict[str, IO[str]] = {}  # locks of this process, by GPU


def visible() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip()]
    try:
        listing = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return []
    return [str(number) for number, _ in enumerate(listing.splitlines())]


def take(needed: int, what: str, folder: Path | None = None) -> list[str]:
    """GPUs for this process alone, until it ends; waits while others have too many of them.

    In a Slurm job all of the job's GPUs are its own, and none is locked.

    Args:
        needed: how many.
        what: needs them, for the message.
        folder: of the locks; the default is one for each user, in the temporary folder.

    Raises:
        UserError: there are not as many.
    """
    pool = visible()
    if len(pool) < needed:
        named = f"CUDA_VISIBLE_DEVICES names {','.join(pool) or 'none'}" if "CUDA_VISIBLE_DEVICES" in os.environ else ""
        raise UserError(
            f"{what} needs {needed} GPUs, but {named or f'this machine has {len(pool)}'}: ask for more, or set "
            "full.hardware.gpus and the batch in its run file"
        )
    if "SLURM_JOB_ID" in os.environ:
        return pool
    folder = folder or Path(tempfile.gettempdir()) / f"crosszero-gpus-{getpass.getuser()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    told = False
    while True:
        # One process at a time chooses, so that two do not hold half of what each needs.
        with (folder / "choosing").open("w") as choosing:
            fcntl.flock(choosing, fcntl.LOCK_EX)
            mine = [name for name in pool if name in _held]
            for name in pool:
                if len(mine) < needed and name not in mine and _lock(folder, name):
                    mine.append(name)
            if len(mine) >= needed:
                return mine[:needed]
            for name in mine:
                _held.pop(name).close()
        if not told:
            print(f"{what} waits for {needed} of {len(pool)} GPUs: others have them", flush=True)
            told = True
        time.sleep(LOOK_SECONDS)


def _lock(folder: Path, name: str) -> bool:
    file = (folder / name.replace("/", "-")).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return False
    _held[name] = file
    return True
