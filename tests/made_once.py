"""What tests share is made once, for all files and all processes of pytest: `make test` keeps it in .test_cache/.

An entry's name has the hash of all that it depends on, so that it is never stale. The folder may be deleted at any time
without tests running. Nothing that is under test comes from here: see what the callers make.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from contracts.run_file import ROOT

CACHE = ROOT / ".test_cache"


def folder_made_once(name: str, make: Callable[[Path], object], *, depends_on: object, files: Iterable[Path]) -> Path:
    """The folder that `make` fills, which is to be copied before anything changes it.

    Args:
        name: what it holds.
        make: fills the folder that it is called with.
        depends_on: the arguments, as JSON can write them.
        files: whose contents it depends on.
    """
    digest = hashlib.sha256(json.dumps(depends_on, sort_keys=True, default=str).encode())
    for file in sorted(files):
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    entry = CACHE / f"{name}-{digest.hexdigest()[:20]}"
    CACHE.mkdir(exist_ok=True)
    with entry.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not entry.exists():
            partial = entry.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            make(partial)
            partial.rename(entry)
    return entry
