"""Read the graded samples of a checkpoint, and check whether two checkpoints can be compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from contracts import provenance, steps
from contracts.errors import UserError
from eval.score import check_complete, read_graded

# What may differ if the user accepts it. Problems must always be the same.
ACCEPTABLE = ("prompt", "protocol", "grader")
# Keys of the records beside the samples and the graded samples, in words.
RECORDED = {"protocol": "protocol settings", "task_sha256": "benchmark data", "extraction": "answer extraction"}


@dataclass(frozen=True)
class GradedCheckpoint:
    """The graded samples of one checkpoint, by benchmark, and the record of how each table was made ({} if none)."""

    name: str
    tables: dict[str, pd.DataFrame]
    records: dict[str, dict[str, Any]]
    refused: dict[str, str]  # benchmarks whose samples are incomplete, and why


def _record(path: Path) -> dict[str, Any]:
    """How a table was made: the record beside it, and that of the samples that it grades."""
    found: dict[str, Any] = {}
    for table in (path.parents[2] / "samples" / path.parent.name / path.name, path):
        found |= provenance.read(table)
    if isinstance(found.get("protocol"), dict):
        found["protocol"].pop("source", None)  # a citation, which has no effect
    return {key: found[key] for key in RECORDED if key in found}


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
    tables, records, refused = {}, {}, {}
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
        tables[benchmark], records[benchmark] = graded, _record(path)
    return GradedCheckpoint(name or str(place), tables, records, refused)


def by_problem(graded: pd.DataFrame, values: pd.Series) -> npt.NDArray[Any]:
    """The values of a column with shape (problems, repeats). Problems are in the order of their ids."""
    return values.to_numpy().reshape(graded["problem_id"].nunique(), -1)


def correct(graded: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether each completion is correct, with shape (problems, repeats). Ungradable ones are not correct."""
    return by_problem(graded, graded["verdict"].eq("correct"))


def _differs(first: pd.DataFrame, second: pd.DataFrame, column: str) -> int:
    """Number of problems for which both sides have a value in a column, and the values differ."""
    one, two = (side.groupby("problem_id")[column].first() for side in (first, second))
    both = one.notna() & two.notna()
    return int((one[both] != two[both]).sum())


def obstacles(
    checkpoint: GradedCheckpoint, baseline: GradedCheckpoint, benchmark: str, accepted: Collection[str] = ()
) -> list[str]:
    """Why two checkpoints cannot be compared on a benchmark.

    What is not recorded on both sides (prompts of imported generations) is no obstacle. See `unknown`.

    Args:
        checkpoint: one side.
        baseline: the other.
        benchmark: its name.
        accepted: what may differ, of ACCEPTABLE.

    Returns:
        The reasons in words. None if they can be compared.
    """
    reasons = [side.refused[benchmark] for side in (checkpoint, baseline) if benchmark in side.refused]
    for side in (checkpoint, baseline):
        if benchmark not in side.tables:
            reasons.append(f"no samples of {side.name}")
    if reasons:
        return reasons
    first, second = baseline.tables[benchmark], checkpoint.tables[benchmark]
    problems = [set(first["problem_id"]), set(second["problem_id"])]
    if problems[0] != problems[1]:
        only = [len(problems[0] - problems[1]), len(problems[1] - problems[0])]
        return [f"different problems: {only[0]} only of the baseline, {only[1]} only of the checkpoint"]
    if count := _differs(first, second, "gold"):
        reasons.append(f"different gold answers on {count} problems")
    if "prompt" not in accepted and (count := _differs(first, second, "prompt")):
        reasons.append(f"different prompts on {count} problems")
    for column in ("protocol", "grader"):
        values = [", ".join(sorted(side[column].dropna().unique())) for side in (first, second)]
        if column not in accepted and values[0] != values[1]:
            reasons.append(f"different {column}: {values[0] or 'none'} and {values[1] or 'none'}")
    one, two = baseline.records[benchmark], checkpoint.records[benchmark]
    for key, words in RECORDED.items():
        accepted_by = "grader" if key == "extraction" else key
        if key in one and key in two and one[key] != two[key] and accepted_by not in accepted:
            reasons.append(f"different {words}{_fields(one[key], two[key])}")
    return list(dict.fromkeys(reasons))


def _fields(one: Any, two: Any) -> str:
    if not (isinstance(one, dict) and isinstance(two, dict)):
        return ""
    keys = [key for key in {**one, **two} if one.get(key) != two.get(key)]
    return ": " + ", ".join(f"{key} {one.get(key)} and {two.get(key)}" for key in keys)


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
            if side.tables[benchmark]["prompt"].isna().any():
                found.setdefault(f"prompts of {side.name}", []).append(benchmark)
            if "task_sha256" not in side.records[benchmark]:
                found.setdefault(f"data hash of {side.name}", []).append(benchmark)
    return [f"not recorded, so not compared: {what} on {', '.join(names)}" for what, names in found.items()]
