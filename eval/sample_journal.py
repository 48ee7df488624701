"""Samples as they are generated: JSON Lines that survive a kill, so that a restart generates only what is missing.

A folder holds the samples of one benchmark and checkpoint under one set of settings. Its name carries the settings'
hash, so that samples made under other settings are never mixed in. Every process appends to a file of its own. A killed
process may leave a torn last line, which is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from system import durable, json_lines
from system.errors import UserError

Key = tuple[str, int]  # problem_id, repeat
SECONDS_BETWEEN_SYNCS = 1.0


def settings_hash(settings: Mapping[str, Any]) -> str:
    """Hash of everything that decides what the completions are."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def expected(problem_ids: Iterable[str], repeats: int) -> list[Key]:
    """All samples that are requested of a benchmark, in order."""
    return [(problem_id, repeat) for problem_id in problem_ids for repeat in range(repeats)]


class Writer:
    """Appends samples to a new file of `folder`; they are on disk within about a second."""

    def __init__(self, folder: Path) -> None:
        """Open a new file in `folder`, which is created if needed."""
        durable.make_folder(folder)
        name = f"{time.time_ns()}-{secrets.token_hex(8)}.jsonl"  # processes on two machines may have the same number
        self._file = (folder / name).open("x", encoding="utf-8")
        durable.sync(folder)
        self._synced = time.monotonic()

    def write(self, samples: Iterable[Mapping[str, Any]]) -> None:
        """Append samples; each needs problem_id and repeat."""
        lines = "".join(json_lines.dump(dict(sample)) for sample in samples)
        if lines:
            self._file.write(lines)
            self._file.flush()
        if time.monotonic() - self._synced >= SECONDS_BETWEEN_SYNCS:
            self.sync()

    def sync(self) -> None:
        """Wait until everything written is on the disk."""
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def close(self) -> None:
        """Sync and close."""
        self.sync()
        self._file.close()


def read(folder: Path) -> dict[Key, dict[str, Any]]:
    """The samples of a folder by problem and repeat.

    Raises:
        UserError: a line before the last of its file is damaged.
    """
    samples = {}
    for file in sorted(folder.glob("*.jsonl")):
        try:
            for sample in json_lines.read(file, torn_last_line=True):
                samples[(sample["problem_id"], sample["repeat"])] = sample
        except (UserError, KeyError, TypeError) as error:
            problem = str(error) if isinstance(error, UserError) else f"{file}: a line has no {error}"
            raise UserError(
                f"{problem}; delete this file, and its samples are generated again",
                code="damaged-journal",
                path=str(file),
            ) from None
    return samples


class SampleCounter:
    """Counts the samples in folders while they grow, reading each byte once."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Count in these folders; they need not exist yet."""
        self._folders = list(folders)
        self._counted: dict[Path, tuple[int, int]] = {}

    def count(self) -> int:
        """Complete lines in all files so far."""
        for folder in self._folders:
            for file in folder.glob("*.jsonl"):
                position, lines_before = self._counted.get(file, (0, 0))
                with file.open("rb") as lines:
                    lines.seek(position)
                    text = lines.read()
                self._counted[file] = (position + len(text), lines_before + text.count(b"\n"))
        return sum(lines_before for _, lines_before in self._counted.values())
