"""Compare checkpoints on the same problems: what rose, what fell, and where noise does not allow to tell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis import comparability
from analysis.results import RunResults
from eval import statistics
from eval.statistics import Estimate


def mean_of(parts: Sequence[Estimate]) -> Estimate:
    """The unweighted mean of independent values, with its interval.

    The half-widths on each side are added in quadrature (MOVER: Zou and Donner, Statistics in Medicine 27:1693, 2008,
    eq. 5), so that asymmetric intervals, as near 0 and 1, stay asymmetric.
    """
    count = len(parts)
    value = sum(part.value for part in parts) / count
    below = math.sqrt(sum((part.value - part.low) ** 2 for part in parts)) / count
    above = math.sqrt(sum((part.high - part.value) ** 2 for part in parts)) / count
    return Estimate(value, value - below, value + above)


def accuracy(run: RunResults, step: int, benchmark: str) -> Estimate:
    """avg@k of one checkpoint on one benchmark as a fraction, with the interval in the SCORE table."""
    row = run.score(step, benchmark)
    return Estimate(float(row["avg_at_k"]), float(row["ci_low"]), float(row["ci_high"]))


def average_accuracy(run: RunResults, step: int) -> Estimate:
    """The unweighted mean over the benchmarks, as in the published tables."""
    return mean_of([accuracy(run, step, benchmark) for benchmark in run.benchmarks])


def difference(run: RunResults, step: int, benchmark: str, before: int | None = None) -> Estimate:
    """Accuracy of a checkpoint less that of an earlier one, paired by problem.

    Args:
        run: has both checkpoints.
        step: of the later checkpoint.
        benchmark: its name.
        before: step of the earlier checkpoint. By default, the first of the run.

    Returns:
        The difference as a fraction, with its 95 % interval (statistics.paired_difference).
    """
    earlier = run.correct(run.steps[0] if before is None else before, benchmark)
    return statistics.paired_difference(earlier, run.correct(step, benchmark), clusters=run.clusters(benchmark))


def between_runs(first: RunResults, second: RunResults, benchmarks: Sequence[str]) -> Estimate:
    """Average accuracy of the second run's last checkpoint less that of the first's, paired by problem.

    Args:
        first: one run.
        second: the other; `obstacles` must have none on these benchmarks.
        benchmarks: those to average over.

    Returns:
        The difference as a fraction, with its 95 % interval.
    """
    return mean_of(
        [
            statistics.paired_difference(
                first.correct(first.last, name), second.correct(second.last, name), clusters=first.clusters(name)
            )
            for name in benchmarks
        ]
    )


def obstacles(first: RunResults, second: RunResults, benchmarks: Sequence[str]) -> str:
    """Why the last checkpoints of two runs may not be compared on these benchmarks, in one line; empty if they may."""
    by_reason: dict[str, list[str]] = {}
    for name in benchmarks:
        reasons = comparability.differences(first.result(first.last, name), second.result(second.last, name))
        if reasons:
            by_reason.setdefault("; ".join(reasons), []).append(name)
    everywhere = len(by_reason) == 1 and list(by_reason.values()) == [list(benchmarks)]
    return "; ".join(reason if everywhere else f"{reason} ({', '.join(names)})" for reason, names in by_reason.items())
