"""What a rule can measure on stored completions: shares and lengths of checkpoints, paired by problem.

Each measurement takes the trainings of a recipe, one per seed. With several, its interval is that of the recipes' test,
for new seeds and new problems; with one, and for a base model, which all seeds share, that of a checkpoint, for new
problems. Shares are fractions, lengths are in tokens, and steps count over all stages of a run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis import comparability
from analysis.measures import reasoning, reasoning_patterns, turning_points
from analysis.measures.thinking_lengths import split_tokens
from analysis.results import BASE, RunResults, as_arrow
from analysis.statistics import mean_intervals, recipe_difference
from analysis.statistics.checkpoint_difference import mean_of
from analysis.statistics.mean_intervals import NotMeasured, Numbers, linear_ratio
from analysis.statistics.training_seeds import Recipe
from contracts.tables import VERDICTS
from eval import statistics
from eval.statistics import Estimate, clusters

RIGHT_REASONS = "right_reasons"
CALCULATIONS = "calculations"
LENGTHS = ("tokens", "thinking_tokens", "answer_tokens", CALCULATIONS)
MIN_CHECKABLE = 0.5  # share of completions with a step that can be checked, below which the rest says nothing of faults
AVERAGE = "average"  # over the benchmarks of the run, or over those that both runs have
Seeds = Sequence[RunResults]
Interval = Callable[[Numbers, float], Estimate]  # of one value per problem, at a confidence


def _step_number(run: RunResults, step: int | str) -> int:
    return run.last if step == "last" else int(step)


def _by_completion(run: RunResults, step: int | str, benchmark: str, what: Any) -> Numbers:
    """A number for each completion, of shape (problems, repeats): 1 or 0 for a verdict, keyword or range of tokens."""
    step = _step_number(run, step)
    if step not in run.steps or benchmark not in run.benchmarks:
        raise NotMeasured(f"{run.name} was not evaluated at step {step} on {benchmark}")
    read = run.rows if what in (*VERDICTS, "tokens") else run.samples
    rows = read(step, benchmark).sort_values(["problem_id", "repeat"])
    values = _values_of_rows(run, step, benchmark, what, rows)
    if np.isnan(values).all():
        raise NotMeasured(f"{run.name} has no {what} at step {step} on {benchmark}")
    return values.reshape(len(run.problems(benchmark)), -1)


def _values_of_rows(run: RunResults, step: int, benchmark: str, what: Any, rows: pd.DataFrame) -> Numbers:
    tokens: Numbers = rows["completion_tokens"].to_numpy(dtype=float, na_value=np.nan)
    if what == "tokens":
        return tokens
    if what in VERDICTS:
        return np.asarray(rows["verdict"] == what, dtype=float)
    if what in ("thinking_tokens", "answer_tokens"):
        parts = split_tokens(as_arrow(rows["completion"]), rows["completion_tokens"])
        return np.asarray(parts[what.removesuffix("_tokens")], dtype=float)
    if what == CALCULATIONS:
        return np.asarray(_checked_steps(run, step, benchmark, rows)["checkable"], dtype=float)
    if isinstance(what, dict) and "all_of" in what:
        each = [_values_of_rows(run, step, benchmark, one, rows) for one in what["all_of"]]
        return np.asarray(np.prod(each, axis=0), dtype=float)
    if what == RIGHT_REASONS:
        return _right_reasons(run, step, benchmark, rows)
    if isinstance(what, dict) and "fault" in what:
        return _first_faults(run, step, benchmark, rows, what["fault"])
    if isinstance(what, dict) and "contains" in what:
        return np.asarray(rows["completion"].str.contains(what["contains"], regex=False), dtype=float)
    if isinstance(what, dict) and "of_wrong" in what:
        is_counted = rows["verdict"].isin(what["of_wrong"])
        return np.where(rows["verdict"] == "correct", np.nan, is_counted.astype(float))
    if isinstance(what, dict):
        low, high = what["tokens"]
        return np.where(np.isnan(tokens), np.nan, np.logical_and(low <= tokens, tokens < high))
    regex = {item.name: item.regex for item in reasoning_patterns.load_lists()}[what]
    return (reasoning_patterns.count(rows["completion"], regex) > 0).astype(float)


def _checked_steps(run: RunResults, step: int, benchmark: str, rows: pd.DataFrame) -> pd.DataFrame:
    steps = reasoning.checked(rows, run.problem_rows.get(benchmark, {}), most=len(rows))
    if steps is None:
        raise NotMeasured(f"{run.name} has no steps that can be checked on {benchmark}")
    return steps


def _right_reasons(run: RunResults, step: int, benchmark: str, rows: pd.DataFrame) -> Numbers:
    """For each right answer with reasoning that can be checked, whether all of it is right; NaN for the others."""
    kinds = _checked_steps(run, step, benchmark, rows)["kind"]
    return np.asarray(kinds.map({"right_right": 1.0, "right_wrong": 0.0}), dtype=float)


def _first_faults(run: RunResults, step: int, benchmark: str, rows: pd.DataFrame, reason_part: str) -> Numbers:
    """For each completion, whether its first wrong step is wrong for a reason with these words."""
    checked_steps = _checked_steps(run, step, benchmark, rows)
    if (checked_steps["checkable"] > 0).mean() < MIN_CHECKABLE:
        raise NotMeasured(f"{run.name} has too few completions with a step that can be checked on {benchmark}")
    return np.asarray(checked_steps["why"].str.contains(reason_part, regex=False), dtype=float)


def _by_seed(seeds: Seeds, step: int | str, benchmark: str, what: Any) -> Numbers:
    """A value per seed and problem (or cluster of them) whose mean is that of the completions which have the number."""
    rows = []
    for run in seeds:
        values = _by_completion(run, step, benchmark, what)
        counted, shared = ~np.isnan(values), run.clusters(benchmark)
        totals, sizes = (clusters.sums(part.sum(axis=1), shared) for part in (np.nan_to_num(values), counted))
        rows.append(linear_ratio(totals, sizes.astype(float)))
    return np.stack(rows)


def _measured_seeds(seeds: Seeds, benchmark: str, *steps: int | str) -> Seeds:
    """The seeds to measure: one where only the base model is, which all of them share."""
    if set(steps) == {BASE}:
        return seeds[:1]
    for run in seeds[1:]:
        _check_comparable(seeds[0], steps[0], run, steps[0], benchmark)
    return seeds


def _check_comparable(
    first: RunResults, first_step: int | str, second: RunResults, second_step: int | str, benchmark: str
) -> None:
    cells = [(run, _step_number(run, step)) for run, step in ((first, first_step), (second, second_step))]
    for run, step in cells:
        if (step, benchmark) not in run.cells:
            raise NotMeasured(f"{run.name} was not evaluated at step {step} on {benchmark}")
    one, two = (run.result(step, benchmark) for run, step in cells)
    if reasons := comparability.differences(one, two):
        raise NotMeasured(f"not comparable on {benchmark}: {'; '.join(reasons)}")


def _length_interval(values: Numbers, confidence: float) -> Estimate:
    """Of a mean that has no bounds. Equal values get two imagined ones beside them, as in eval.statistics."""
    if not np.ptp(values):
        values = np.append(values, [values[0] - 1, values[0] + 1])
    return mean_intervals.mean(values, confidence)


def _interval_of(what: Any, is_change: bool) -> Interval:
    if isinstance(what, str) and what in LENGTHS:
        return _length_interval
    return statistics.mean_difference if is_change else statistics.mean_over_problems


def _mean(parts: Sequence[Numbers], interval: Interval, confidence: float) -> Estimate:
    """The mean over seeds and benchmarks.

    Args:
        parts: per benchmark, values of shape (seeds, problems).
        interval: for new problems alone. The whole interval contains it, because where few problems differ their spread
            says little.
        confidence: of the interval.
    """
    for_problems = mean_of([interval(part.mean(axis=0), confidence) for part in parts])
    if len(parts[0]) == 1:
        return for_problems
    for_seeds = recipe_difference.mean_over_seeds(parts, confidence, math.inf)
    low, high = min(for_problems.low, for_seeds.low), max(for_problems.high, for_seeds.high)
    return Estimate(for_problems.value, low, high)


def _shared_benchmarks(benchmark: str, *recipes: Seeds) -> list[str]:
    runs = list(itertools.chain(*recipes))
    shared = [name for name in runs[0].benchmarks if all(name in run.benchmarks for run in runs)]
    if benchmark == AVERAGE and not shared:
        raise NotMeasured(f"{' and '.join(run.name for run in runs)} have no benchmark in common")
    return shared if benchmark == AVERAGE else [benchmark]


def heldout(
    run: Seeds, step: int | str, what: Any = "correct", benchmark: str = AVERAGE, confidence: float = 0.95
) -> Estimate:
    """A share or a mean length of the completions of one checkpoint.

    Args:
        run: stored results, one per seed.
        step: of the checkpoint, or `last`.
        what: a verdict, a keyword list, tokens, thinking_tokens, answer_tokens, calculations, the steps that the step
            checker can read, {tokens: [from, below]}, {fault: words} of why the first wrong step is wrong, {contains:
            text}, {all_of: …}, those that have each of several, right_reasons, the right answers whose reasoning is
            right, or {of_wrong: verdicts}, those that have them among the answers that are not right.
        benchmark: one, or their unweighted average.
        confidence: of the interval.
    """
    names = _shared_benchmarks(benchmark, run)
    parts = [_by_seed(_measured_seeds(run, name, step), step, name, what) for name in names]
    estimate = _mean(parts, _interval_of(what, is_change=False), confidence)
    return estimate._replace(low=max(0.0, estimate.low))


def _changes(
    run: Seeds, before: int | str, after: int | str, what: Any, benchmark: str, less: Any = None
) -> list[Numbers]:
    """Per benchmark, the change by seed and problem; less that of another quantity."""
    parts = []
    for name in _shared_benchmarks(benchmark, run):
        seeds = _measured_seeds(run, name, before, after)
        early, late = (_by_seed(seeds, step, name, what) for step in (before, after))
        gaps = late - early
        parts.append(gaps - _changes(seeds, before, after, less, name)[0] if less else gaps)
    return parts


def heldout_change(
    run: Seeds,
    before: int | str,
    after: int | str,
    what: Any = "correct",
    benchmark: str = AVERAGE,
    less: Any = None,
    confidence: float = 0.95,
) -> Estimate:
    """Change between two checkpoints, paired by seed and problem.

    Args:
        run: stored results, one per seed.
        before: step of the first checkpoint.
        after: step of the second one.
        what: as in `heldout`.
        benchmark: one, or their unweighted average.
        less: another `what` whose change is taken off.
        confidence: of the interval.
    """
    parts = _changes(run, before, after, what, benchmark, less)
    return _mean(parts, _interval_of(what, is_change=True), confidence)


def heldout_size_of_change(
    run: Seeds,
    before: int | str,
    after: int | str,
    what: Any,
    less: Any,
    benchmark: str = AVERAGE,
    confidence: float = 0.95,
) -> Estimate:
    """How much larger one change is than another, whichever way both go: |change of `what`| - |change of `less`|.

    |a| - |b| is the largest over the sign of a of the smallest over the sign of b of ±a ± b, and so are its limits, at
    half the error because the larger of two is taken. The arguments are those of `heldout_change`.
    """
    first, second = (_changes(run, before, after, one, benchmark) for one in (what, less))

    def signed(a: int, b: int) -> Estimate:
        parts = [a * one + b * two for one, two in zip(first, second, strict=True)]
        return _mean(parts, _interval_of(what, is_change=True), (1 + confidence) / 2)

    by_sign = [[signed(a, b) for b in (1, -1)] for a in (1, -1)]
    value, low, high = (max(min(one[part] for one in row) for row in by_sign) for part in range(3))
    return Estimate(value, low, high)


def heldout_ratio(
    run: Seeds,
    before: int | str,
    after: int | str,
    what: Any = "tokens",
    benchmark: str = AVERAGE,
    confidence: float = 0.95,
) -> Estimate:
    """A later checkpoint's mean over an earlier one's, per seed and benchmark; the ratio is linearised by problem.

    The arguments are those of `heldout_change`.
    """
    parts = []
    for name in _shared_benchmarks(benchmark, run):
        seeds = _measured_seeds(run, name, before, after)
        early, late = (_by_seed(seeds, step, name, what) for step in (before, after))
        if (early.mean(axis=1) <= 0).any():
            raise NotMeasured("a mean of zero has no ratio")
        parts.append(np.stack([linear_ratio(two, one) for one, two in zip(early, late, strict=True)]))
    return _mean(parts, _length_interval, confidence)


def heldout_between(
    run: Seeds,
    against: Seeds,
    step: int | str,
    against_step: int | str,
    what: Any = "correct",
    benchmark: str = AVERAGE,
    confidence: float = 0.95,
) -> Estimate:
    """Checkpoints of `run` less those of `against`, paired by problem, if all were measured in the same way.

    Args:
        run: stored results, one per seed.
        against: those of the other recipe.
        step: of `run`'s checkpoints.
        against_step: of the other's.
        what: as in `heldout`.
        benchmark: one, or the average of those that both have.
        confidence: of the interval.
    """
    parts = []
    for name in _shared_benchmarks(benchmark, run, against):
        sides = [
            (_measured_seeds(seeds, name, own_step), own_step)
            for seeds, own_step in ((against, against_step), (run, step))
        ]
        _check_comparable(against[0], against_step, run[0], step, name)
        first, second = (_by_seed(seeds, own_step, name, what) for seeds, own_step in sides)
        parts.append((first, second))
    gaps = [(second.mean(axis=0) - first.mean(axis=0))[None] for first, second in parts]
    for_problems = _mean(gaps, _interval_of(what, is_change=True), confidence)
    if min(len(side) for side in parts[0]) == 1:
        return for_problems
    for_seeds = recipe_difference.difference_over_seeds(parts, confidence)
    low, high = min(for_problems.low, for_seeds.low), max(for_problems.high, for_seeds.high)
    return Estimate(for_seeds.value, low, high)


def heldout_best_step(run: Seeds, confidence: float = 0.95) -> Estimate:
    """The step of the checkpoint with the best average accuracy, between the first and last that may be the best.

    Args:
        run: stored results, one per seed.
        confidence: 0.95, or more: the interval is then the same.
    """
    turn = turning_points.find(Recipe(list(run)))
    if turn is None:
        raise NotMeasured(f"{run[0].name} has fewer than {turning_points.FEWEST} checkpoints")
    return Estimate(turn.best, turn.first, turn.end)
