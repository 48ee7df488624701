"""Samples on their way: JSON lines that survive a kill, so that a restart makes only what is missing.

A folder holds the samples of one benchmark and checkpoint under one set of settings; its name carries their hash, so
that samples made under other settings can never be mixed in. Every process appends to a file of its own. A process
that was killed may leave a torn last line, which is dropped.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from contracts.errors import UserError

logger = logging.getLogger(__name__)

Key = tuple[str, int]  # problem_id, repeat
SECONDS_BETWEEN_SYNCS = 1.0


def seed_of(base: int, benchmark: str, problem_id: str, repeat: int) -> int:
    """The sampling seed of one completion, from 0 to 2^31-1: a hash, so neither order nor number of GPUs matters."""
    text = json.dumps([base, benchmark, problem_id, repeat])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def settings_hash(settings: Mapping[str, Any]) -> str:
    """Hash of everything that decides what the completions are."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def expected(problem_ids: Iterable[str], repeats: int) -> list[Key]:
    """All the samples that a benchmark asks for, in order."""
    return [(problem_id, repeat) for problem_id in problem_ids for repeat in range(repeats)]


class Writer:
    """Appends samples to a new file of `folder`, on disk within about a second of being given."""

    def __init__(self, folder: Path) -> None:
        """Open a new file in `folder`, which is made if it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{time.time_ns()}-{os.getpid()}.jsonl").open("x", encoding="utf-8")
        self._synced = time.monotonic()

    def write(self, samples: Iterable[Mapping[str, Any]]) -> None:
        """Append samples; each needs problem_id and repeat."""
        lines = "".join(json.dumps(sample) + "\n" for sample in samples)
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


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                if not line.endswith(b"\n"):
                    raise ValueError
                yield json.loads(line)
            except ValueError:
                if lines.read(1):
                    raise UserError(
                        f"line {number} of {file} is damaged, and it is not the last: delete this file, and its "
                        "samples will be made again"
                    ) from None
                logger.warning("%s: the last line is incomplete and was dropped", file)


def read(folder: Path) -> dict[Key, dict[str, Any]]:
    """The samples of a folder by problem and repeat."""
    samples = {}
    for file in sorted(folder.glob("*.jsonl")):
        for sample in _lines(file):
            samples[(sample["problem_id"], sample["repeat"])] = sample
    return samples


class Progress:
    """Counts the samples in folders as they grow, reading each byte once."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Count in these folders, which need not exist yet."""
        self._folders = list(folders)
        self._counted: dict[Path, tuple[int, int]] = {}

    def count(self) -> int:
        """Complete lines in all files so far."""
        for folder in self._folders:
            for file in folder.glob("*.jsonl"):
                position, found = self._counted.get(file, (0, 0))
                with file.open("rb") as lines:
                    lines.seek(position)
                    text = lines.read()
                self._counted[file] = (position + len(text), found + text.count(b"\n"))
        return sum(found for _, found in self._counted.values())
