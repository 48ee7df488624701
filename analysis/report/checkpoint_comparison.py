"""Compare checkpoints on the same problems: what rose, what fell, and where noise does not allow to tell."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    return statistics.paired_difference(earlier, run.correct(step, benchmark))


def between_runs(first: RunResults, second: RunResults, benchmarks: Sequence[str]) -> Estimate | None:
    """Average accuracy of the second run's last checkpoint less that of the first's, paired by problem.

    Args:
        first: one run.
        second: the other.
        benchmarks: those to average over.

    Returns:
        The difference as a fraction, with its 95 % interval. None if the runs did not answer the same problems under
        the same protocol.
    """
    gaps = []
    for name in benchmarks:
        if name not in first.benchmarks or name not in second.benchmarks:
            return None
        if first.score(first.last, name)["protocol"] != second.score(second.last, name)["protocol"]:
            return None
        if first.problems(name) != second.problems(name):
            return None
        gaps.append(statistics.paired_difference(first.correct(first.last, name), second.correct(second.last, name)))
    return mean_of(gaps)
