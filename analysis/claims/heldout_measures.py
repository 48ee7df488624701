"""What a rule can measure on stored completions: shares and lengths of checkpoints, paired by problem.

Shares are fractions, lengths are in tokens, and steps count over all stages of a run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from analysis import comparability
from analysis.measures import reasoning, reasoning_patterns, turning_points
from analysis.measures.thinking_lengths import split_tokens
from analysis.results import RunResults, as_arrow
from analysis.statistics.checkpoint_difference import mean_of
from analysis.statistics.mean_intervals import NotMeasured, Numbers, mean
from analysis.statistics.training_seeds import Recipe
from contracts.tables import VERDICTS
from eval import statistics
from eval.statistics import Estimate

RIGHT_REASONS = "right_reasons"
LENGTHS = ("tokens", "thinking_tokens", "answer_tokens")
MIN_CHECKABLE = 0.5  # share of completions with a step that can be checked, below which the rest says nothing of faults
AVERAGE = "average"  # over the benchmarks of the run, or over those that both runs have


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
    if what == RIGHT_REASONS:
        return _right_reasons(run, step, benchmark, rows)
    if isinstance(what, dict) and "fault" in what:
        return _first_faults(run, step, benchmark, rows, what["fault"])
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


def _by_problem(run: RunResults, step: int | str, benchmark: str, what: Any) -> Numbers:
    """The mean over the repeats of each problem; NaN where none of them has the number."""
    means = pd.DataFrame(_by_completion(run, step, benchmark, what)).mean(axis=1)
    return np.asarray(means, dtype=float)


def _paired_mean(first: Numbers, second: Numbers) -> Estimate:
    """The mean difference over the problems that have the number on both sides."""
    gaps = second - first
    kept = gaps[~np.isnan(gaps)]
    if not len(kept):
        raise NotMeasured("no problem has the number on both sides")
    if not np.ptp(kept):  # two imagined problems keep the interval from being empty (eval.statistics)
        kept = np.append(kept, [kept[0] - 1, kept[0] + 1])
    return mean(kept)


def _shared_benchmarks(benchmark: str, *runs: RunResults) -> list[str]:
    shared = [name for name in runs[0].benchmarks if all(name in run.benchmarks for run in runs)]
    if benchmark == AVERAGE and not shared:
        raise NotMeasured(f"{' and '.join(run.name for run in runs)} have no benchmark in common")
    return shared if benchmark == AVERAGE else [benchmark]


def heldout(run: RunResults, step: int | str, what: Any = "correct", benchmark: str = AVERAGE) -> Estimate:
    """A share or a mean length of the completions of one checkpoint.

    Args:
        run: stored results.
        step: of the checkpoint, or `last`.
        what: a verdict, a keyword list, tokens, thinking_tokens, answer_tokens, {tokens: [from, below]}, {fault: words}
            of why the first wrong step is wrong, or right_reasons, the right answers whose reasoning is right.
        benchmark: one, or their unweighted average.
    """
    parts = []
    for name in _shared_benchmarks(benchmark, run):
        if what in LENGTHS:
            means = _by_problem(run, step, name, what)
            parts.append(mean(means[~np.isnan(means)]))
        else:
            parts.append(statistics.avg_at_k(_by_completion(run, step, name, what) == 1))
    return mean_of(parts)


def heldout_change(
    run: RunResults,
    before: int | str,
    after: int | str,
    what: Any = "correct",
    benchmark: str = AVERAGE,
    less: Any = None,
) -> Estimate:
    """Change between two checkpoints, paired by problem.

    Args:
        run: stored results.
        before: step of the first checkpoint.
        after: step of the second one.
        what: as in `heldout`.
        benchmark: one, or their unweighted average.
        less: another `what` whose change is taken off.
    """
    parts = []
    for name in _shared_benchmarks(benchmark, run):
        sides = [_by_problem(run, step, name, what) for step in (before, after)]
        if less:
            sides = [
                side - _by_problem(run, step, name, less) for side, step in zip(sides, (before, after), strict=True)
            ]
        parts.append(_paired_mean(*sides))
    return mean_of(parts)


def heldout_between(
    run: RunResults,
    against: RunResults,
    step: int | str,
    against_step: int | str,
    what: Any = "correct",
    benchmark: str = AVERAGE,
) -> Estimate:
    """A checkpoint of `run` less one of `against`, paired by problem, if both were measured in the same way.

    Args:
        run: stored results.
        against: those of the other run.
        step: of `run`'s checkpoint.
        against_step: of the other's.
        what: as in `heldout`.
        benchmark: one, or the average of those that both have.
    """
    parts = []
    for name in _shared_benchmarks(benchmark, run, against):
        sides = [_by_problem(against, against_step, name, what), _by_problem(run, step, name, what)]
        if reasons := comparability.differences(
            against.result(_step_number(against, against_step), name), run.result(_step_number(run, step), name)
        ):
            raise NotMeasured(f"not comparable on {name}: {'; '.join(reasons)}")
        parts.append(_paired_mean(*sides))
    return mean_of(parts)


def heldout_best_step(run: RunResults) -> Estimate:
    """The step of the checkpoint with the best average accuracy, between the first and last that may be the best."""
    turn = turning_points.find(Recipe([run]))
    if turn is None:
        raise NotMeasured(f"{run.name} has fewer than {turning_points.FEWEST} checkpoints")
    return Estimate(turn.best, turn.first, turn.end)
