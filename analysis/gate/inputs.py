"""Read the graded samples of a checkpoint, and check whether two checkpoints can be compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis import comparability
from analysis.comparability import Result
from contracts import provenance, steps
from contracts.errors import UserError
from eval.score import check_complete, read_graded


@dataclass(frozen=True)
class GradedCheckpoint:
    """The graded samples of one checkpoint, by benchmark, and the settings of each table ({} if not recorded)."""

    name: str
    tables: dict[str, pd.DataFrame]
    settings: dict[str, dict[str, Any]]
    refused: dict[str, str]  # benchmarks whose samples are incomplete, and why

    def result(self, benchmark: str) -> Result:
        """What is compared of one benchmark."""
        return Result(self.tables[benchmark], self.settings[benchmark])


def _settings(path: Path) -> dict[str, Any]:
    samples = path.parents[2] / "samples" / path.parent.name / path.name
    return comparability.settings(provenance.read(path), provenance.read(samples))


def read(place: Path, name: str | None = None) -> GradedCheckpoint:
    """Read graded samples.

    Args:
        place: a file, a folder of <benchmark>.parquet, or a folder of step-<n>, of which the last is read.
        name: of the checkpoint. By default, the path.

    Raises:
        UserError: there are no graded samples.
    """
    files = [place] if place.is_file() else sorted(place.glob("*.parquet"))
    if not files:
        checkpoints = list(steps.folders(place).values())
        files = sorted(checkpoints[-1].glob("*.parquet")) if checkpoints else []
    if not files:
        raise UserError(
            f"{place} should contain graded samples, <benchmark>.parquet, but has none; run eval.grade first"
        )
    tables, settings, refused = {}, {}, {}
    for path in files:
        graded = read_graded(path).sort_values(["problem_id", "repeat"], ignore_index=True)
        benchmark = str(graded["benchmark"].iloc[0]) if len(graded) else path.stem
        if benchmark in tables:
            raise UserError(
                f"{place} should have each benchmark once, but {path.name} is {benchmark} again; remove one"
            )
        try:
            check_complete(graded, str(path))
        except UserError as error:
            refused[benchmark] = f"incomplete samples: {error}"
        tables[benchmark], settings[benchmark] = graded, _settings(path)
    return GradedCheckpoint(name or str(place), tables, settings, refused)


def by_problem(graded: pd.DataFrame, values: pd.Series) -> npt.NDArray[Any]:
    """The values of a column with shape (problems, repeats). Problems are in the order of their ids."""
    return values.to_numpy().reshape(graded["problem_id"].nunique(), -1)


def correct(graded: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether each completion is correct, with shape (problems, repeats). Ungradable ones are not correct."""
    return by_problem(graded, graded["verdict"].eq("correct"))


def obstacles(
    checkpoint: GradedCheckpoint, baseline: GradedCheckpoint, benchmark: str, accepted: Collection[str] = ()
) -> list[str]:
    """Why two checkpoints cannot be compared on a benchmark.

    What is not recorded on both sides (prompts of imported generations) is no obstacle. See `unknown`. Else the
    comparison is that of all results (analysis.comparability).

    Args:
        checkpoint: one side.
        baseline: the other.
        benchmark: its name.
        accepted: what may differ, of comparability.ACCEPTABLE.

    Returns:
        The reasons in words. None if they can be compared.
    """
    reasons = [side.refused[benchmark] for side in (checkpoint, baseline) if benchmark in side.refused]
    for side in (checkpoint, baseline):
        if benchmark not in side.tables:
            reasons.append(f"no samples of {side.name}")
    if reasons:
        return reasons
    return comparability.differences(baseline.result(benchmark), checkpoint.result(benchmark), accepted)


def unknown(checkpoint: GradedCheckpoint, baseline: GradedCheckpoint, benchmarks: Iterable[str]) -> list[str]:
    """What could not be checked because a side did not record it.

    Args:
        checkpoint: one side.
        baseline: the other.
        benchmarks: those compared.

    Returns:
        A sentence for each fact, with its benchmarks.
    """
    found: dict[str, list[str]] = {}
    for benchmark in benchmarks:
        for side in (checkpoint, baseline):
            for what in comparability.unrecorded(side.result(benchmark)):
                found.setdefault(f"{what} of {side.name}", []).append(benchmark)
    return [f"not recorded, so not compared: {what} on {', '.join(names)}" for what, names in found.items()]
