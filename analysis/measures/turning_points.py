"""Where a training turns: the checkpoint that is best held out, those that may be, and what happens after it.

A checkpoint may be the best unless another one is above it beyond noise. With m checkpoints each is compared with m - 1
others, one-sided at 0.05 / (m - 1), so that in 95 % of such evaluations the truly best one is among those that may be
(multiple comparisons with the best: Hsu 1981, Annals of Statistics 9:1026; here with Bonferroni's correction). The best
is chosen on the problems that it is measured on, so that the fall after it is biased upwards; a verdict that there is
one needs the corrected level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.measures import training_log
from analysis.results import RunResults
from analysis.statistics import mean_intervals, recipe_difference
from analysis.statistics.checkpoint_difference import mean_of
from analysis.statistics.mean_intervals import NotMeasured
from analysis.statistics.training_seeds import Recipe
from eval import statistics
from eval.statistics import Estimate, clusters, significance

NAME = "turning_points"
FEWEST = 3  # checkpoints, the base model included
RIGHT, UNFINISHED, WRONG = PARTS = ("right", "unfinished", "wrong")  # of all completions; they add up to one
OVER_OPTIMISED = "over-optimised: accuracy falls while the reward rises"
FALLS = "accuracy falls; the reward is not seen to rise"
AT_THE_END = "best at the end"
CANNOT_TELL = "cannot tell: the last checkpoint may be the best"
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TurningPoint:
    """The best checkpoint of a recipe, by its mean accuracy over seeds and benchmarks.

    Attributes:
        best: its step.
        first: the first step that may be the best.
        end: the last step that may be the best.
        changes: of each of PARTS that is known, from the best to the last checkpoint, with 95 % intervals.
        reward: change of the mean reward in training over the same steps; None where it is not known, or best is last.
        verdict: one of those above.
    """

    best: int
    first: int
    end: int
    changes: Mapping[str, Estimate]
    reward: Estimate | None
    verdict: str


def knows_unfinished(recipe: Recipe) -> bool:
    """Whether it is known of all completions how they ended."""
    return all(bool(run.scores["truncated_rate"].notna().all()) for run in recipe.runs)


def shares(recipe: Recipe, step: int, part: str) -> list[Floats]:
    """The share of one of PARTS on each problem, per benchmark, of shape (seeds, problems)."""

    def problem_shares(run: RunResults, benchmark: str) -> Floats:
        right, cut = run.correct(step, benchmark), run.truncated(step, benchmark)
        by_problem: Floats = {RIGHT: right, UNFINISHED: cut, WRONG: ~right & ~cut}[part].mean(axis=1)
        return clusters.linearised(by_problem, run.clusters(benchmark))

    return [
        np.stack([problem_shares(run, benchmark) for run in recipe.runs]) for benchmark in recipe.runs[0].benchmarks
    ]


def level(recipe: Recipe, step: int, part: str) -> Estimate:
    """The mean share at one checkpoint, with its 95 % interval."""
    by_benchmark = shares(recipe, step, part)
    if not recipe.has_several_seeds:
        return mean_of([statistics.mean_over_problems(one[0]) for one in by_benchmark])
    value, low, high = recipe_difference.mean_over_seeds(by_benchmark)
    return Estimate(value, max(0.0, low), min(1.0, high))


def _gap(before: Sequence[Floats], after: Sequence[Floats], confidence: float = 0.95) -> Estimate:
    """The mean change, paired by seed and problem."""
    gaps = [later - earlier for earlier, later in zip(before, after, strict=True)]
    if len(gaps[0]) > 1:
        return recipe_difference.mean_over_seeds(gaps, confidence)
    return mean_of([statistics.mean_difference(gap[0], confidence) for gap in gaps])


def _reward(recipe: Recipe, best: int) -> Estimate | None:
    """Change of the mean reward in training, from the steps up to the best checkpoint to as many last ones."""
    *_, before_last, last = recipe.steps
    width = min(last - before_last, before_last)
    windows = [[max(1, step - width + 1), max(step, width)] for step in (best, last)]
    try:
        changes = [training_log.training_change(run, "reward_mean", *windows) for run in recipe.runs]
    except NotMeasured:
        return None
    return mean_intervals.mean([one.value for one in changes]) if recipe.has_several_seeds else changes[0]


def find(recipe: Recipe) -> TurningPoint | None:
    """The turning point; None if there are too few checkpoints."""
    steps = recipe.steps
    if len(steps) < FEWEST:
        return None
    right = {step: shares(recipe, step, RIGHT) for step in steps}
    best = max(steps, key=lambda step: float(np.mean([part.mean() for part in right[step]])))
    confidence = 1 - 2 * significance.ALPHA / (len(steps) - 1)
    may_be = [
        step
        for step in steps
        if all(_gap(right[step], right[other], confidence).low <= 0 for other in steps if other != step)
    ]
    last, known = steps[-1], PARTS if knows_unfinished(recipe) else (RIGHT,)
    changes = {part: _gap(shares(recipe, best, part), shares(recipe, last, part)) for part in known}
    reward = _reward(recipe, best) if best != last else None
    if best == last:
        said = AT_THE_END
    elif last in may_be:
        said = CANNOT_TELL
    else:
        said = OVER_OPTIMISED if reward and reward.change == "rose" else FALLS
    return TurningPoint(best, may_be[0], may_be[-1], changes, reward, said)
