"""Give copied results the time stamps that they had: Snakemake makes again what is older than what it was made from.

A copy without time stamps (`cp -r`, `git clone`, `rsync` without -t) has them in the order of copying. Every record has
the time at which its artefact was made. A record is never edited, so one that is much newer than that was copied.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

COPIED_AFTER_S = 120  # a record is written within seconds of the time in it, or half a minute where nvidia-smi hangs
RECORD = "provenance.json"
FOLDER_TIME = ".snakemake_timestamp"  # in a folder that Snakemake counts as one output; its time is the folder's
_MADE_AT = re.compile(r'"made_at": "([^"]+)"')


def restore_times(results: Path) -> int:
    """Set the times of all copied artefacts below a folder to those in their records; returns how many there were.

    A folder of copied artefacts that has a time in the future gets the present: Snakemake refuses what it makes of it.

    Args:
        results: `results/<scale>`. What cannot be changed is left as it is.
    """
    folders: dict[Path, float] = {}
    count = 0
    for record, made_at in _copied(results):
        own = record.name == RECORD
        artefact = record.parent if own else record.with_name(record.name.removesuffix(f".{RECORD}"))
        for path in (artefact, record):
            _set_time(path, made_at)
        for folder in (artefact, *artefact.parents) if own else artefact.parents:
            if folder == results:
                break
            folders[folder] = max(made_at, folders.get(folder, made_at))
        count += 1
    for folder, made_at in folders.items():  # such as samples/, which is as old as the newest table in it
        _set_time(folder / FOLDER_TIME, made_at)
        if folder.is_dir() and folder.stat().st_mtime > (now := time.time()):  # as after a clock was set back
            _set_time(folder, now)
    return count


def _copied(results: Path) -> Iterator[tuple[Path, float]]:
    """The records that are newer than what they say, with the time in them (seconds since 1970)."""
    for folder, _, names in os.walk(results):
        for name in names:
            if not name.endswith(RECORD):
                continue
            record = Path(folder, name)
            with contextlib.suppress(OSError, UnicodeDecodeError, ValueError), record.open(encoding="utf-8") as file:
                match = _MADE_AT.search(file.read(200))
                made_at = datetime.fromisoformat(match[1]).timestamp() if match else float("inf")
                if record.stat().st_mtime - made_at > COPIED_AFTER_S:
                    yield record, made_at


def _set_time(path: Path, seconds: float) -> None:
    with contextlib.suppress(OSError):
        os.utime(path, (seconds, seconds))
