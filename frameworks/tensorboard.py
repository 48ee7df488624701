"""Reads the TensorBoard events that a trainer wrote."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from contracts.errors import UserError
from frameworks import event_files


def scalars(folder: Path) -> dict[int, dict[str, float]]:
    """By native step, the scalars below the tag `train/`; where a resumed training repeated a step, the later counts.

    An event file that cannot be read is reported, and the rest of it left out.
    """
    return of_files(sorted(folder.rglob(event_files.PATTERN)))


def of_files(files: Iterable[Path]) -> dict[int, dict[str, float]]:
    """The same of some event files."""
    found: dict[int, dict[str, tuple[float, float]]] = {}
    for file in files:
        try:
            for event in event_files.read(file):
                if event.tag.startswith("train/"):
                    of_step, name = found.setdefault(event.step, {}), event.tag.removeprefix("train/")
                    of_step[name] = max(of_step.get(name, (0.0, 0.0)), (event.wall_time, event.value))
        except (UserError, OSError, KeyError, IndexError, struct.error) as error:
            print(f"WARNING: {file} cannot be read, so the training log has gaps: {error}", flush=True)
    return {step: {name: value for name, (_, value) in of_step.items()} for step, of_step in sorted(found.items())}
