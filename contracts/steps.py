"""Folders named after a training step (`step-<n>`) or a stage (`stage-<n>`)."""

from __future__ import annotations

from pathlib import Path

_STEP, _STAGE = "step-", "stage-"


def folder(step: int | str) -> str:
    """Name of the folder of a step (or of a Snakemake wildcard): 20 gives `step-20`."""
    return f"{_STEP}{step}"


def parse(name: str) -> int:
    """The step of such a folder: `step-20` gives 20; raises ValueError for any other name."""
    number = name.removeprefix(_STEP)
    if name == number or not (number.isascii() and number.isdecimal()):
        raise ValueError(f"{name!r} does not name a step, such as {_STEP}20")
    return int(number)


def folders(parent: Path) -> dict[int, Path]:
    """The step folders inside a folder, by step in rising order; anything else in it is left out."""
    by_step = {}
    for child in parent.glob(f"{_STEP}*/"):
        try:
            by_step[parse(child.name)] = child
        except ValueError:
            continue
    return dict(sorted(by_step.items()))


def stage_folder(stage: int | str) -> str:
    """Name of the folder of a stage (or of a Snakemake wildcard): 1 gives `stage-1`."""
    return f"{_STAGE}{stage}"
