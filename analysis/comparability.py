"""Whether two results may be compared: one comparison of their samples and of what is recorded about them.

Comparisons of checkpoints, the report and provenance_diff all call `differences`. Scores are comparable if the problems
and gold answers, the prompts, the protocol's values, the grader with its version and the extraction of answers are the
same. What a side did not record (imported generations) is no difference: see `unrecorded`. Repeats and seeds may
differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from eval import subset as subsets

# What may differ if the user accepts it. Problems must always be the same.
ACCEPTABLE = ("prompt", "protocol", "grader")
# Keys of the records beside the samples and the graded samples: what they are called, and under what they are accepted.
RECORDED = {
    "protocol": ("protocol settings", "protocol"),
    "chat_template_sha256": ("chat template", "prompt"),
    "extraction": ("answer extraction", "grader"),
    "subset": ("part of the benchmark", "problems"),
    "problems_sha256": ("benchmark data", "problems"),
    "task_sha256": ("benchmark data", "problems"),  # of releases that hashed the benchmark's file with its problems
}
IMPORTED = "imported:"  # prefix of the protocol of samples made by another harness
OF_PROMPT = {"prompt", "chat_template"}  # the fields of a protocol that are accepted as prompt
NOT_COMPARED = {
    "name",
    "source",
    "extraction",
    "fallback",
}  # the table names the protocol; the grading's record the rule


@dataclass(frozen=True)
class Result:
    """The graded samples of one checkpoint on one benchmark, and how they were made, by the keys of RECORDED."""

    samples: pd.DataFrame
    settings: Mapping[str, Any] = field(default_factory=dict)


def settings(graded: Mapping[str, Any], samples: Mapping[str, Any]) -> dict[str, Any]:
    """What decides whether scores are comparable, from the records beside a graded table and beside its samples.

    The first repeats what is needed of the second, which may be elsewhere ({}).
    """
    sampling = {key: samples[key] for key in ("protocol", "chat_template_sha256") if key in samples}
    repeated = graded.get("samples")
    records = {**sampling, **(repeated if isinstance(repeated, dict) else {}), **graded}
    if isinstance(records.get("protocol"), dict):
        records["protocol"] = {key: value for key, value in records["protocol"].items() if key not in NOT_COMPARED}
    return {key: records[key] for key in RECORDED if key in records}


def _count_unequal(first: pd.DataFrame, second: pd.DataFrame, column: str) -> int:
    """Number of problems for which both sides have a value in a column, and the values differ."""
    one, two = (
        side[["problem_id", column]].dropna().drop_duplicates("problem_id").set_index("problem_id")[column]
        for side in (first, second)
    )
    both = one.index.intersection(two.index)
    return int((one[both] != two[both]).sum())


def differences(first: Result, second: Result, accepted: Collection[str] = ()) -> list[str]:
    """Why two results on the same benchmark may not be compared, in words; empty if they may.

    Args:
        first: one result, called the baseline.
        second: the other one, called the checkpoint.
        accepted: what may differ, of ACCEPTABLE.
    """
    if reason := _different_problems(first, second):
        return [reason]
    reasons = []
    for column, plural in (("gold", "gold answers"), ("prompt", "prompts")):
        if column not in accepted and (count := _count_unequal(first.samples, second.samples, column)):
            reasons.append(f"different {plural} on {count} problems")
    for column in ("protocol", "grader"):
        one, two = (", ".join(sorted(side.samples[column].dropna().unique())) for side in (first, second))
        both_imported = column == "protocol" and one.startswith(IMPORTED) and two.startswith(IMPORTED)
        if column not in accepted and one != two and not both_imported:  # then no side recorded its protocol
            reasons.append(f"different {column}: {one or 'none'} and {two or 'none'}")
    return list(dict.fromkeys(reasons + _recorded_differences(first.settings, second.settings, accepted)))


def _different_problems(first: Result, second: Result) -> str:
    """Which problems only one side has, in words; empty if both have the same."""
    one, two = (set(side.samples["problem_id"].unique()) for side in (first, second))
    if one == two:
        return ""
    parts = [f" ({part})" if (part := subsets.label(side.settings)) else "" for side in (first, second)]
    sizes = f"the baseline has {len(one):,}{parts[0]}, the checkpoint {len(two):,}{parts[1]}"
    if not one & two:
        return f"the sides share no problem: {sizes}"
    return f"different problems: {sizes}, and {len(one & two):,} are on both sides"


def _recorded_differences(first: Mapping[str, Any], second: Mapping[str, Any], accepted: Collection[str]) -> list[str]:
    reasons = []
    for key, (title, accepted_as) in RECORDED.items():
        one, two = first.get(key), second.get(key)
        if accepted_as in accepted or key not in first or key not in second:
            continue
        if isinstance(one, dict) and isinstance(two, dict):
            free = OF_PROMPT if "prompt" in accepted else set()
            names = [name for name in {**one, **two} if name not in free and one.get(name) != two.get(name)]
            if names:
                reasons.append(f"different {title}: " + ", ".join(f"{n} {one.get(n)} and {two.get(n)}" for n in names))
        elif one != two:
            reasons.append(f"different {title}" + ("" if key.endswith("sha256") else f": {one} and {two}"))
    return reasons


def unrecorded(result: Result) -> list[str]:
    """What cannot be compared because this side did not record it."""
    missing = []
    if result.samples["prompt"].isna().any():
        missing.append("prompts")
    if "protocol" not in result.settings:
        missing.append("protocol settings")
    if not {"problems_sha256", "task_sha256"} & result.settings.keys():
        missing.append("data hash")
    return missing


def same_completions(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    """Whether all completions that both tables have are the same, and there are any: those of one model, or a copy."""
    columns = ["problem_id", "repeat", "completion"]
    both = first[columns].merge(second[columns], on=columns[:2])
    return bool(len(both) and both["completion_x"].notna().all() and both["completion_x"].equals(both["completion_y"]))
