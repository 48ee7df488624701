"""Reads the TensorBoard events that a trainer wrote."""

from __future__ import annotations

from pathlib import Path

from frameworks import tensorboard_files
from system.errors import UserError

PREFIX = "train/"  # of the tags of transformers' and OpenRLHF's trainers
Found = dict[int, dict[str, tuple[float, float]]]  # by step and tag, time and value


def scalars(folder: Path) -> dict[int, dict[str, float]]:
    """By native step, the scalars below the tag `train/`; where a resumed training repeated a step, the later counts.

    An event file that cannot be read is reported, and the rest of it left out.
    """
    found: Found = {}
    for file in sorted(folder.rglob(tensorboard_files.PATTERN)):
        try:
            _add(found, file, PREFIX)
        except (UserError, OSError) as error:
            print(f"WARNING: {file} cannot be read, so the training log has gaps: {error}", flush=True)
    return _newest(found)


def of_file(file: Path, prefix: str = PREFIX) -> dict[int, dict[str, float]]:
    """The same of one event file, which has to be whole.

    Args:
        file: the file.
        prefix: of the tags that are read; it is left out of the names.

    Raises:
        UserError: it is no event file, or is damaged.
    """
    found: Found = {}
    _add(found, file, prefix)
    return _newest(found)


def _add(found: Found, file: Path, prefix: str) -> None:
    for event in tensorboard_files.read(file):
        if event.tag.startswith(prefix):
            of_step, name = found.setdefault(event.step, {}), event.tag.removeprefix(prefix)
            of_step[name] = max(of_step.get(name, (0.0, 0.0)), (event.wall_time, event.value))


def _newest(found: Found) -> dict[int, dict[str, float]]:
    return {step: {name: value for name, (_, value) in of_step.items()} for step, of_step in sorted(found.items())}
