"""Give results that were copied or linked the times that they had, and find those that were changed afterwards.

Snakemake makes again what is older than what it was made from. A copy without time stamps (`cp -r`, `git clone`,
`rsync` without -t) has them in the order of copying; a link to a folder that was moved is as new as the link. Every
record has the time at which its artefact was made. A record is never edited, so one that is much newer than that was
copied.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from contracts import provenance

COPIED_AFTER_S = 120  # a record is written within seconds of the time in it, or half a minute where nvidia-smi hangs
RECORD = "provenance.json"
FOLDER_TIME = ".snakemake_timestamp"  # in a folder that Snakemake counts as one output; its time is the folder's
REPLACED_AFTER_S = 120  # Snakemake touches files when their job has ended
_MADE_AT = re.compile(r'"made_at": "([^"]+)"')


def restore_times(results: Path) -> int:
    """Set the times of all copied artefacts below a folder to those in their records; returns how many there were.

    A link is as old as the artefacts behind it. A folder of copied artefacts that has a time in the future gets the
    present: Snakemake refuses what it makes of it.

    Args:
        results: `results/<scale>`. What cannot be changed is left as it is.
    """
    folders: dict[Path, float] = {}
    count = 0
    for record, made_at in _copied(results):
        artefact = _artefact(record)
        for path in (artefact, *_files(artefact), record):
            _set_time(path, made_at)
        for folder in _folders(artefact, results):
            folders[folder] = max(made_at, folders.get(folder, made_at))
        count += 1
    for folder, made_at in folders.items():  # such as samples/, which is as old as the newest table in it
        # Snakemake takes a folder's own time if a copy has left out hidden files.
        _set_time(carrier if (carrier := folder / FOLDER_TIME).exists() else folder, made_at)
        if folder.is_dir() and folder.stat().st_mtime > (now := time.time()):  # as after a clock was set back
            _set_time(folder, now)
    _restore_links(results)
    return count


def check_unchanged(results: Path) -> None:
    """Look for artefacts that were changed or replaced after their record was written, by their times and hashes.

    Raises:
        UserError: there is one.
    """
    for record in _records(results):
        with contextlib.suppress(OSError):  # removed meanwhile
            newest = max((file.stat().st_mtime for file in _files(_artefact(record))), default=0.0)
            if newest - record.stat().st_mtime > REPLACED_AFTER_S:
                provenance.check(_artefact(record))


def _artefact(record: Path) -> Path:
    return record.parent if record.name == RECORD else record.with_name(record.name.removesuffix(f".{RECORD}"))


def _files(artefact: Path) -> list[Path]:
    """The files that a record's hash is of."""
    if not artefact.is_dir():
        return [artefact]
    return [
        file for file in artefact.iterdir() if file.is_file() and not file.name.startswith(".") and file.name != RECORD
    ]


def _folders(artefact: Path, results: Path) -> list[Path]:
    """The folders around an artefact, itself included, up to that of all results."""
    return [folder for folder in (artefact, *artefact.parents) if folder.is_relative_to(results) and folder != results]


def _restore_links(results: Path) -> None:
    links, plain = dict[Path, float](), set[Path]()
    for record in _records(results):
        for path in _folders(_artefact(record), results):
            if path not in plain and path.is_symlink():
                links[path] = max(record.stat().st_mtime, links.get(path, 0.0))
            else:
                plain.add(path)
    for link, seconds in links.items():
        with contextlib.suppress(OSError, NotImplementedError):
            if link.lstat().st_mtime > seconds:
                os.utime(link, (seconds, seconds), follow_symlinks=False)


def _records(results: Path) -> Iterator[Path]:
    """All records below a folder, those behind links included, from each real folder once."""
    seen = set()
    for folder, below, names in os.walk(results, followlinks=True):
        if (real := os.path.realpath(folder)) in seen:
            below.clear()
            continue
        seen.add(real)
        yield from (Path(folder, name) for name in names if name.endswith(RECORD))


def _copied(results: Path) -> Iterator[tuple[Path, float]]:
    """The records that are newer than what they say, with the time in them (seconds since 1970)."""
    for record in _records(results):
        with contextlib.suppress(OSError, UnicodeDecodeError, ValueError), record.open(encoding="utf-8") as file:
            match = _MADE_AT.search(file.read(200))
            made_at = datetime.fromisoformat(match[1]).timestamp() if match else float("inf")
            if record.stat().st_mtime - made_at > COPIED_AFTER_S:
                yield record, made_at


def _set_time(path: Path, seconds: float) -> None:
    with contextlib.suppress(OSError):
        os.utime(path, (seconds, seconds))
