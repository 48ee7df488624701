"""Measures that can get worse while the score does not: truncation, length, format errors, keyword patterns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.compare_checkpoints.graded_checkpoint import by_problem
from analysis.measures import reasoning_patterns
from eval.statistics import Estimate, significance


@dataclass(frozen=True)
class MeasureChange:
    """One measure on one benchmark: the mean of each side, the paired difference, and Holm's p-value."""

    benchmark: str
    measure: str
    unit: str  # share or tokens
    baseline: float
    checkpoint: float
    difference: Estimate
    p_adjusted: float
    change: str  # rose, fell, cannot tell


def _truncated(graded: pd.DataFrame) -> pd.Series | None:
    return graded["finish_reason"].eq("length") if graded["finish_reason"].notna().all() else None


def _tokens(graded: pd.DataFrame) -> pd.Series | None:
    return graded["completion_tokens"].astype(float) if graded["completion_tokens"].notna().all() else None


def _no_format(graded: pd.DataFrame) -> pd.Series:
    return graded["verdict"].isin(["format_error", "no_answer"])


def _pattern(regex: str) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda graded: pd.Series(reasoning_patterns.count(graded["completion"], regex) > 0)


def measures() -> dict[str, tuple[str, Callable[[pd.DataFrame], pd.Series | None]]]:
    """Unit and function of every measure by name. A function returns None if the samples do not record the measure."""
    lists = reasoning_patterns.load_lists()
    return {
        "truncated": ("share", _truncated),
        "no answer or format error": ("share", _no_format),
        "completion length": ("tokens", _tokens),
        **{f"with {item.title}": ("share", _pattern(item.regex)) for item in lists},
    }


def compare(pairs: Mapping[str, tuple[pd.DataFrame, pd.DataFrame]], alpha: float) -> tuple[MeasureChange, ...]:
    """Compare every measure that both sides record, on every benchmark.

    By Student's paired t test over problems, with Holm's correction over all lines of this table but not the scores.

    Args:
        pairs: per benchmark the tables of baseline and checkpoint, complete and sorted.
        alpha: chance of any false "rose" or "fell" in the table.
    """
    changes, p_values = [], []
    for benchmark, tables in pairs.items():
        for name, (unit, measure) in measures().items():
            values = [value.astype(float) for value in map(measure, tables) if value is not None]
            if len(values) < 2:
                continue
            # Means per problem: repeats of one problem are not independent.
            first, second = (by_problem(*pair).mean(axis=1) for pair in zip(tables, values, strict=True))
            gaps = second - first
            mean, error = float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else 0.0
            half = significance.t_quantile(len(gaps)) * error
            p_values.append(significance.student(gaps))
            means = [float(value.mean()) for value in values]
            gap = Estimate(mean, mean - half, mean + half)
            changes.append(MeasureChange(benchmark, name, unit, means[0], means[1], gap, 1.0, "cannot tell"))
    decided = []
    for change, p in zip(changes, significance.holm(p_values), strict=True):
        direction = "rose" if change.difference.value > 0 else "fell"
        decided.append(replace(change, p_adjusted=p, change=direction if p <= alpha else "cannot tell"))
    return tuple(decided)
