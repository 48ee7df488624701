"""Compare samples with published percentages: unpaired, each side with the error that n and k allow.

On problems like these, both errors treat the problems as a random sample although both sides have the same ones:
without the samples of the baseline the common part is unknown. So small differences are missed, but chance is never
called a difference. On these same problems only the repeats are random; what the source says of its spread over seeds
is used, with its few degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from scipy import optimize, stats

from analysis.compare_checkpoints import graded_checkpoint
from analysis.compare_checkpoints.comparison import (
    LIKE,
    MARGIN_POINTS,
    SAME,
    BenchmarkResult,
    Comparison,
    benchmarks_to_compare,
    overall_verdict,
    with_verdicts,
)
from analysis.compare_checkpoints.graded_checkpoint import GradedCheckpoint
from analysis.compare_checkpoints.published_baselines import PublishedBaseline, PublishedScore
from eval import statistics
from eval import subset as subsets
from eval.statistics import Correct, Estimate, significance


def _own_error(correct: Correct, problems: str) -> tuple[float, float]:
    """Standard error of our accuracy, and its degrees of freedom."""
    n, k = correct.shape
    means = correct.mean(axis=1)
    if problems == LIKE:
        # At least one problem more or less: at 0 and 100 % the sample says nothing about its error.
        return max(float(means.std(ddof=1)) / math.sqrt(n), 1 / n), n - 1
    if k == 1:  # how often a problem would be solved again is unknown: at most this
        p = float(np.clip(means.mean(), 0.5 / n, 1 - 0.5 / n))
        return math.sqrt(p * (1 - p) / n), n - 1
    within = float((means * (1 - means)).mean()) * k / (k - 1)
    return math.sqrt(max(within, 1 / (n * k)) / (n * k)), n * (k - 1)


def _their_error(score: PublishedScore, problems: str) -> tuple[float, float]:
    """Standard error of the published accuracy, and its degrees of freedom."""
    if problems == LIKE or score.deviation is None or score.repeats is None:
        return score.error, math.inf
    return score.error_on_same_problems, score.repeats - 1


def _difference(correct: Correct, score: PublishedScore, problems: str) -> tuple[float, float, float]:
    """Our accuracy less the published one, its standard error, and degrees of freedom (Welch and Satterthwaite)."""
    (own, own_df), (theirs, their_df) = _own_error(correct, problems), _their_error(score, problems)
    error = math.hypot(own, theirs)
    df = error**4 / (own**4 / own_df + theirs**4 / their_df)
    return float(correct.mean()) - score.accuracy, error, df


def _design_effects(correct: Correct, score: PublishedScore, problems: str) -> tuple[float, float]:
    """Variance of each side's accuracy p, ours and the published one, divided by p(1-p).

    Where an accuracy is near 0 or 1, its observed variance says little and is mixed with its bound, as in
    statistics.mean_over_problems: p(1-p) over the problems, or on the same problems over all answers.
    """
    n, k = correct.shape
    repeats = (score.repeats or 1) if score.deviation is not None else 1
    bounds = (1 / n, 1 / n) if problems == LIKE else (1 / (n * k), 1 / (n * repeats))
    sides = ((float(correct.mean()), _own_error(correct, problems)), (score.accuracy, _their_error(score, problems)))
    effects = []
    for (p, (error, _)), bound in zip(sides, bounds, strict=True):
        rarer = min(p, 1 - p)
        weight = (1 - 2 * rarer) * statistics.accuracy.RARE / (statistics.accuracy.RARE + n * rarer)
        observed = min(bound, error**2 / (p * (1 - p))) if 0 < p < 1 else bound
        effects.append((1 - weight) * observed + weight * bound)
    return effects[0], (effects[1] if problems == LIKE else max(effects[1], effects[0] * bounds[1] / bounds[0]))


def _wilson_difference(correct: Correct, score: PublishedScore, problems: str, tail: float) -> Estimate:
    """The difference with Wilson's intervals of both sides (Newcombe 1998), which hold near 0 and 100 % too.

    Args:
        correct: our answers.
        score: the published one.
        problems: one of comparison.QUESTIONS.
        tail: chance on each side of the interval.
    """
    z = float(stats.norm.isf(tail))
    sides = []
    for p, effect in zip(
        (float(correct.mean()), score.accuracy), _design_effects(correct, score, problems), strict=True
    ):
        weight = z**2 * effect
        center, half = (
            (p + weight / 2) / (1 + weight),
            z * math.sqrt(effect * (p * (1 - p) + weight / 4)) / (1 + weight),
        )
        sides.append(Estimate(p, center - half, center + half))
    return statistics.independent_difference(sides[1], sides[0])


def _wilson_p_value(correct: Correct, score: PublishedScore, problems: str, null: float) -> float:
    """Two-sided p-value at which the interval of `_wilson_difference` ends at the null hypothesis."""
    above = float(correct.mean()) - score.accuracy > null

    def beyond(logarithm: float) -> float:
        limits = _wilson_difference(correct, score, problems, math.exp(logarithm) / 2)
        return (limits.low - null) if above else (null - limits.high)

    least = math.log(1e-9)
    if beyond(least) > 0:
        return math.exp(least)
    return math.exp(optimize.brentq(beyond, least, 0.0)) if beyond(0.0) > 0 else 1.0


def _difference_estimate(correct: Correct, score: PublishedScore, problems: str) -> Estimate:
    """The difference with the wider of both intervals, on either side."""
    gap, error, df = _difference(correct, score, problems)
    half, wilson = float(stats.t.ppf(0.975, df)) * error, _wilson_difference(correct, score, problems, 0.025)
    return Estimate(gap, max(-1.0, min(gap - half, wilson.low)), min(1.0, max(gap + half, wilson.high)))


def _benchmark_result(
    name: str, correct: Correct, score: PublishedScore, alpha: float, margin: float, problems: str
) -> BenchmarkResult:
    """The result on one benchmark, not yet decided. `alpha` is the level of Holm's first step.

    A verdict needs two tests: Welch's, and Wilson's intervals, as Welch's is wrong near 0 and 100 %.
    """
    gap, error, df = _difference(correct, score, problems)
    null, p = (-margin if gap < 0 else 0.0), 1.0
    if not (margin and -margin <= gap < 0):
        p = float(2 * stats.t.sf(abs(gap - null) / error, df))
        p = max(p, _wilson_p_value(correct, score, problems, null))
    theirs = stats.norm.ppf(0.975) * (score.error if problems == LIKE else score.error_on_same_problems)
    factor = stats.t.ppf(1 - alpha / 2, df) + stats.t.ppf(significance.POWER, df)
    estimate = _difference_estimate(correct, score, problems)
    wilson = _wilson_difference(correct, score, problems, 0.025)
    largest_error = max(error, (wilson.high - wilson.low) / 2 / float(stats.norm.ppf(0.975)))
    excluded = gap + margin > stats.t.ppf(1 - alpha, df) * error
    return BenchmarkResult(
        name, "cannot tell", len(correct), (score.repeats, correct.shape[1]),
        Estimate(score.accuracy, max(0.0, score.accuracy - theirs), min(1.0, score.accuracy + theirs)),
        statistics.avg_at_k(correct), estimate, p,
        detectable=float(factor * largest_error),
        margin_excluded=bool(excluded and _wilson_difference(correct, score, problems, alpha).low > -margin)
        if margin else None,
        test="unpaired, tolerance from n and k: Welch and Wilson",
    )  # fmt: skip


def _obstacles(checkpoint: GradedCheckpoint, row: PublishedBaseline, name: str, accepted: Collection[str]) -> list[str]:
    """Why a benchmark cannot be compared."""
    if obstacles := graded_checkpoint.obstacles_of_side(
        checkpoint, name, {*accepted, graded_checkpoint.SUBSET}, graded_checkpoint.UNGRADABLE
    ):
        return obstacles
    if part := subsets.label(checkpoint.settings[name]):
        return [f"the source has the whole benchmark, and these are the {part} problems"]
    here, there = checkpoint.tables[name]["problem_id"].nunique(), row.scores[name].problems
    if here != there:
        return [f"different problems: {here} here, {there} at the source"]
    return row.differences(checkpoint.result(name), accepted)


def compare(
    checkpoint: GradedCheckpoint,
    row: PublishedBaseline,
    benchmarks: Collection[str] | None = None,
    *,
    alpha: float = significance.ALPHA,
    margin: float = MARGIN_POINTS / 100,
    accepted: Collection[str] = (),
    problems: str = LIKE,
) -> Comparison:
    """Compare samples with a published row.

    Args:
        checkpoint: the new one.
        row: the published baseline.
        benchmarks: by default all that both sides have.
        alpha: chance of any false "better" or "worse" over all benchmarks.
        margin: a loss up to this fraction is not called worse.
        accepted: differences that do not prevent the comparison, of graded_checkpoint.ACCEPTABLE.
        problems: the question of the verdict: SAME problems or problems LIKE these. The other one is noted.

    Raises:
        UserError: the row has no score on one of the benchmarks.
    """
    shared = checkpoint.tables.keys() & row.scores.keys()
    names = benchmarks_to_compare(row.scores if benchmarks else shared or row.scores, benchmarks)
    obstacles = {name: _obstacles(checkpoint, row, name, accepted) for name in names}
    tested = [name for name in names if not obstacles[name]]
    lines = []
    for name in names:
        if obstacles[name]:
            lines.append(BenchmarkResult(name, "not comparable", reasons=tuple(obstacles[name])))
        else:
            correct = graded_checkpoint.correct(checkpoint.tables[name])
            lines.append(_benchmark_result(name, correct, row.scores[name], alpha / len(tested), margin, problems))
    lines = with_verdicts(lines, alpha)
    notes = [
        f"published figures, without samples: {row.title}, {row.source}; protocol there: {row.protocol}",
        "unpaired; prompts, grader and decoding may explain the difference of the scores",
        *checkpoint.note_of_quantisation(),
        *(_other_question(checkpoint, row, name, problems) for name in tested),
        *([] if benchmarks else _left_out(checkpoint, row)),
    ]
    if any(line.difference and line.repeats[0] is None for line in lines):
        notes.append("the source does not state its repeats: its error is taken as that of one sample per problem")
    return Comparison(
        checkpoint.name, row.name, False, alpha, margin, overall_verdict(lines), tuple(lines), (), tuple(notes)
    )


def _other_question(checkpoint: GradedCheckpoint, row: PublishedBaseline, name: str, problems: str) -> str:
    """The difference by the question that was not asked, as a note."""
    other, question = (LIKE, "on problems like these") if problems == SAME else (SAME, "on these same problems")
    gap = _difference_estimate(graded_checkpoint.correct(checkpoint.tables[name]), row.scores[name], other)
    return (
        f"{name}: {question} the difference is {100 * gap.value:+.1f} [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}] "
        f"points (--problems {other})"
    )


def _left_out(checkpoint: GradedCheckpoint, row: PublishedBaseline) -> list[str]:
    """The benchmarks that one side alone has, as notes."""
    sides = (
        (checkpoint.tables.keys() - row.scores.keys(), f"no score of {row.name}"),
        (row.scores.keys() - checkpoint.tables.keys(), f"no samples of {checkpoint.name}"),
    )
    return [f"left out: {', '.join(sorted(names))} ({reason})" for names, reason in sides if names]
