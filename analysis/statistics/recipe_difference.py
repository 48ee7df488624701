"""Is recipe B better than recipe A? Several training seeds a side, on the same problems.

The unit is the training run, the problems are crossed with the runs. Accuracy of run s of recipe r on problem i:

    mean of r + problem i + recipe r × problem i + seed s of r + seed s × problem i + sampling

The first effect of a problem is shared by both recipes and cancels in their difference.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from analysis.statistics import recipe_power
from eval.statistics import Estimate, significance
from system.errors import UserError

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.bool_] | Floats  # right or not, or a measure from 0 to 1, by problem and repeat
MEAN = "mean of all"
SAME = 40  # answers to problems that are solved sometimes: if so many are the same, the runs are copies


class Components(NamedTuple):
    """Variances of the accuracy on one problem, as squared fractions; sampling is that of one completion."""

    problem: float
    recipe_problem: float
    seed: float
    seed_problem: float
    sampling: float


class Test(NamedTuple):
    """A test of the difference: its standard error, degrees of freedom, p-value (two-sided) and 95 % interval."""

    error: float
    df: float
    p_value: float
    difference: Estimate


@dataclass(frozen=True)
class RecipeResult:
    """One benchmark, or the mean of several. Differences are those of B less A, as fractions."""

    benchmark: str
    means: tuple[float, float]
    seeds: tuple[int, int]
    welch: Test
    crossed: Test
    these_seeds: Test
    components: Components | None
    detectable: float
    p_adjusted: float = 1.0
    verdict: str = "cannot tell"

    @property
    def p_value(self) -> float:
        """Of this line alone: all tests have to find it, those over seeds at a third of the level if a side has two."""
        over_seeds = recipe_power.penalty(min(self.seeds)) * max(self.welch.p_value, self.crossed.p_value)
        return min(1.0, max(over_seeds, self.these_seeds.p_value))

    def interval(self, confidence: float = 0.95) -> Estimate:
        """The difference with an interval that covers those of all tests: it has 0 just where they find nothing."""
        value, low, high = _covering(self, confidence)
        return Estimate(value, max(-1.0, low), min(1.0, high))

    @property
    def detectable_text(self) -> str:
        """The detectable difference in points; none if it is more than B can differ from A."""
        room = max(self.means[0], 1 - self.means[0])
        return f"±{100 * self.detectable:.1f}" if self.detectable <= room else "none"


def _run_means(correct: Sequence[Values]) -> Floats:
    """Mean accuracies of shape (runs, problems)."""
    return np.stack([np.asarray(run, dtype=float).mean(axis=1) for run in correct])


def _sums_of_squares(runs: Floats) -> tuple[float, float, float]:
    """Sums of squares of the seeds' means and of seed × problem, and the degrees of freedom of the first."""
    seeds, n = runs.shape
    seed_means, problem_means = runs.mean(axis=1, keepdims=True), runs.mean(axis=0, keepdims=True)
    rest = runs - seed_means - problem_means + runs.mean()
    return float(n * ((seed_means - runs.mean()) ** 2).sum()), float((rest**2).sum()), seeds - 1


def _satterthwaite_test(gap: float, pieces: Sequence[tuple[float, float]]) -> Test:
    """A t test with Satterthwaite's degrees of freedom. `pieces` are variances and their own degrees of freedom."""
    variance = sum(variance for variance, _ in pieces)
    below = sum(piece**2 / df for piece, df in pieces if df > 0)
    df = variance**2 / below if below else 1.0
    error = math.sqrt(variance)
    p = float(2 * stats.t.sf(abs(gap) / error, df)) if error else float(gap == 0)
    half = float(stats.t.ppf(0.975, df)) * error
    return Test(error, df, p, Estimate(gap, max(-1.0, gap - half), min(1.0, gap + half)))


def _welch_variances(sides: Sequence[Floats]) -> list[tuple[float, float]]:
    """Variance of the difference: of the means of seeds on each side (Welch), and of recipe × problem.

    The spread over problems of the mean difference contains part of the seeds × problems, which is taken off.

    Args:
        sides: accuracies of the runs of both, or of one recipe less the other by pairs of runs.
    """
    n = sides[0].shape[1]
    pieces = [(float(runs.mean(axis=1).var(ddof=1)) / len(runs), len(runs) - 1.0) for runs in sides]
    gaps = _gaps(sides)
    rest = [_sums_of_squares(runs)[1] / ((len(runs) - 1) * (n - 1)) / (len(runs) * n) for runs in sides]
    pieces.append((max(0.0, float(gaps.var(ddof=1)) / n - sum(rest)), n - 1.0))
    return pieces


def _gaps(sides: Sequence[Floats]) -> Floats:
    """The mean difference on each problem."""
    means = [runs.mean(axis=0) for runs in sides]
    return np.asarray(means[-1] - means[0] if len(sides) > 1 else means[0], dtype=np.float64)


def mean_over_seeds(parts: Sequence[Floats], confidence: float = 0.95, limit: float = 1.0) -> Estimate:
    """The mean of a recipe over training seeds, with an interval for new seeds and new problems.

    The half-widths for seeds and for problems, each with its own degrees of freedom, are added in quadrature: with few
    seeds this covers better than one t quantile at Satterthwaite's degrees of freedom. The spread over problems of the
    mean over seeds contains part of the seeds × problems, which is taken off.

    Args:
        parts: per benchmark, values of shape (seeds, problems), such as accuracies or their gains over the base model;
            the seeds are the same trainings in each, two or more, and each benchmark has two problems or more.
        confidence: of the interval.
        limit: the interval ends at ± this, which no mean can exceed; infinity where there is no such limit.
    """
    seeds, edge = len(parts[0]), (1 + confidence) / 2
    by_seed = np.mean([part.mean(axis=1) for part in parts], axis=0)
    pieces = [(float(by_seed.var(ddof=1)) / seeds, seeds - 1)]
    for part in parts:
        n = part.shape[1]
        rest = _sums_of_squares(part)[1] / ((seeds - 1) * (n - 1))
        problem_variance = max(0.0, float(part.mean(axis=0).var(ddof=1)) - rest / seeds) / n
        pieces.append((problem_variance / len(parts) ** 2, n - 1))
    value = float(by_seed.mean())
    half = math.sqrt(sum(variance * float(stats.t.ppf(edge, df)) ** 2 for variance, df in pieces))
    these_seeds = _satterthwaite_test(value, _problems_alone([part.mean(axis=0) for part in parts]))
    half = max(half, float(stats.t.ppf(edge, these_seeds.df)) * these_seeds.error)  # seeds may be alike by luck
    return Estimate(value, max(-limit, value - half), min(limit, value + half))


def _problems_alone(parts: Sequence[Floats]) -> list[tuple[float, float]]:
    """Variance of the mean over benchmarks of values by problem, for these seeds, whose noise is in the values."""
    return [(float(part.var(ddof=1)) / len(part) / len(parts) ** 2, len(part) - 1.0) for part in parts]


def difference_over_seeds(parts: Sequence[tuple[Floats, Floats]], confidence: float = 0.95) -> Estimate:
    """The second recipe less the first, with an interval that covers those of all tests of `compare`.

    Args:
        parts: per benchmark, values of both recipes, each of shape (seeds, problems), two seeds and problems or more.
        confidence: of the interval.
    """
    return _covering(_compared_line("", parts, None, significance.ALPHA), confidence)


def _covering(line: RecipeResult, confidence: float) -> Estimate:
    tests = (line.welch, line.crossed)
    half = max(_half_over_seeds(tests, confidence, min(line.seeds)), _half(line.these_seeds, confidence))
    gap = line.means[1] - line.means[0]
    return Estimate(gap, gap - half, gap + half)


def difference_of_seeds(first: Floats, second: Floats, confidence: float = 0.95) -> Estimate:
    """The same for one number per seed, such as a mean over training steps, each of shape (seeds,)."""
    gap = float(second.mean() - first.mean())
    tests = [
        _satterthwaite_test(gap, _seeds_alone([first[:, None], second[:, None]], pooled)) for pooled in (False, True)
    ]
    half = _half_over_seeds(tests, confidence, min(len(first), len(second)))
    return Estimate(gap, gap - half, gap + half)


def _half(test: Test, confidence: float) -> float:
    return float(stats.t.ppf((1 + confidence) / 2, test.df)) * test.error


def _half_over_seeds(tests: Sequence[Test], confidence: float, seeds: int) -> float:
    """Half of an interval that covers both tests' own, at the level for sides with so few seeds."""
    level = 1 - (1 - confidence) / recipe_power.penalty(seeds)
    return max(_half(test, level) for test in tests)


def _mean_squares(sides: Sequence[Floats]) -> tuple[float, float, float]:
    """Pooled mean squares of seeds, of seed × problem, and of recipe × problem (for one problem's difference)."""
    squares = [_sums_of_squares(runs) for runs in sides]
    seed, rest, df = (sum(part) for part in zip(*squares, strict=True))
    return seed / df, rest / (df * (sides[0].shape[1] - 1)), float(_gaps(sides).var(ddof=1))


def _crossed_variances(sides: Sequence[Floats]) -> list[tuple[float, float]]:
    """Variance of the difference in the model of crossed random effects, with one variance of seeds for both recipes.

    The mean squares of this balanced design give the REML estimates where none is negative (Searle, Casella and
    McCulloch 1992, "Variance Components"): seed, recipe × problem and their residual add up to the variance.
    """
    n, share = sides[0].shape[1], sum(1 / len(runs) for runs in sides)
    seeds, rest, gaps = _mean_squares(sides)
    df = float(sum(len(runs) - 1 for runs in sides))
    return [(share * seeds / n, df), (max(0.0, gaps - share * rest) / n, n - 1.0)]


def components(a: Sequence[Values], b: Sequence[Values]) -> Components | None:
    """Components of variance on one benchmark, not below 0. None with one completion per problem.

    Args:
        a: per run of recipe A, correct answers of shape (problems, repeats), the same number for all.
        b: likewise of recipe B.
    """
    k = a[0].shape[1]
    if k < 2:
        return None
    one, two = _run_means(a), _run_means(b)
    n, share = one.shape[1], 1 / len(one) + 1 / len(two)
    within = float(np.mean([np.asarray(run, dtype=float).var(axis=1, ddof=1).mean() for run in (*a, *b)]))
    seeds, rest, gaps = _mean_squares([one, two])
    both = (one.mean(axis=0) + two.mean(axis=0)) / 2
    interaction = max(0.0, gaps - share * rest) / 2  # the difference has that of both recipes
    problem = float(both.var(ddof=1)) - interaction / 2 - share * rest / 4
    return Components(max(0.0, problem), interaction, max(0.0, (seeds - rest) / n), max(0.0, rest - within / k), within)


def _check_runs(benchmark: str, sides: Sequence[Sequence[Values]]) -> None:
    for side in sides:
        if len(side) < 2:
            raise UserError(
                f"a comparison of recipes needs two training seeds a side or more, but one has {len(side)} on "
                f"{benchmark}; train more seeds, or compare two checkpoints with `snakemake compare_checkpoints`",
                code="too-few-seeds", seeds=len(side),
            )  # fmt: skip
        for first, second in itertools.combinations(side, 2):
            # Answers of problems that are neither always nor never solved do not agree by chance.
            mixed = np.ptp(np.asarray(first, dtype=float), axis=1) > 0
            if first.shape == second.shape and first[mixed].size >= SAME and np.array_equal(first, second):
                raise UserError(
                    f"each training seed should have answers of its own, but two runs of a side have the same on "
                    f"{benchmark}: name each training once",
                    code="repeated-training", same="answers",
                )  # fmt: skip
    shapes = sorted({run.shape for side in sides for run in side})
    if len(shapes) > 1:
        raise UserError(
            f"all runs need the same problems and repeats on {benchmark}, but they have "
            + ", ".join(f"{n} × {k}" for n, k in shapes),
            code="different-problems", benchmark=benchmark,
        )  # fmt: skip


def compare(
    a: Mapping[str, Sequence[Values]],
    b: Mapping[str, Sequence[Values]],
    alpha: float = significance.ALPHA,
    paired: bool = False,
) -> list[RecipeResult]:
    """Compare two recipes on each benchmark and their mean, with Holm's correction over these lines.

    A verdict needs Welch's test on the means of seeds and that of crossed random effects, with p-values tripled where a
    side has two seeds (`recipe_power.penalty`), and a paired t test over problems for these very seeds: few seeds may
    be alike by luck, and the tests over seeds then have too small an error.

    Args:
        a: per benchmark and training run of recipe A, correct answers of shape (problems, repeats).
        b: likewise of recipe B, with the same benchmarks, problems and repeats.
        alpha: chance of any false verdict over all lines.
        paired: run s of both recipes has the same training seed, so that the differences of these pairs are compared
            with each other. Both tests over seeds are then the same.

    Raises:
        UserError: a side has fewer than two runs, or problems or repeats differ.
    """
    family, lines = len(a) + (len(a) > 1), []
    line_alpha = alpha / family
    parts = []
    for name in a:
        _check_runs(name, (a[name], b[name]))
        parts.append([_run_means(side[name]) for side in (a, b)])
        lines.append(_compared_line(name, parts[-1:], components(a[name], b[name]), line_alpha, paired))
    if len(a) > 1:
        lines.append(_compared_line(MEAN, parts, None, line_alpha, paired))
    adjusted = significance.holm([line.p_value for line in lines])
    return [_with_verdict(line, p, alpha) for line, p in zip(lines, adjusted, strict=True)]


def seed_correlation(a: Mapping[str, Sequence[Values]], b: Mapping[str, Sequence[Values]]) -> float:
    """Of the mean accuracies of runs with one seed, over the benchmarks; NaN where the runs of a side are all equal."""
    means = [np.mean([_run_means(side[name]).mean(axis=1) for name in side], axis=0) for side in (a, b)]
    return float(np.corrcoef(*means)[0, 1]) if all(np.ptp(side) > 0 for side in means) else math.nan


def _compared_line(
    name: str, parts: Sequence[Sequence[Floats]], spreads: Components | None, alpha: float, paired: bool = False
) -> RecipeResult:
    """One line: one benchmark, or the mean of several, whose seeds are those of the same runs."""
    count = len(parts)
    means = [float(np.mean([part[side].mean() for part in parts])) for side in (0, 1)]
    sides = [[two - one] if paired else [one, two] for one, two in parts]
    tests, pieces, problems = [], [], []
    for variances in (_welch_variances, _crossed_variances):
        by_part = [variances(part) for part in sides]
        pieces = by_part[0][:-1]
        if count > 1:  # the mean over benchmarks of each run has the spread over seeds of all of them
            runs = [np.mean([own.mean(axis=1) for own in side], axis=0)[:, None] for side in zip(*sides, strict=True)]
            pieces = _seeds_alone(runs, variances is _crossed_variances)
        problems = [(variance / count**2, df) for *_, (variance, df) in by_part]
        tests.append(_satterthwaite_test(means[1] - means[0], [*pieces, *problems]))
    these_seeds = _satterthwaite_test(means[1] - means[0], _problems_alone([_gaps(part) for part in parts]))
    numbers = tuple(map(len, sides[0]))
    by_problems, seed = _satterthwaite_test(0.0, problems), pieces[0][0] / sum(1 / number for number in numbers)
    # The spread over problems alone may be estimated as none, which has no degrees of freedom.
    noise = recipe_power.Noise(
        numbers, seed, by_problems.error**2, these_seeds.df, these_seeds.error**2, estimated=True
    )
    return RecipeResult(
        name, (means[0], means[1]), (len(parts[0][0]), len(parts[0][1])), tests[0], tests[1], these_seeds, spreads,
        recipe_power.detectable(noise, alpha),
    )  # fmt: skip


def _seeds_alone(runs: Sequence[Floats], pooled: bool) -> list[tuple[float, float]]:
    """Variance of the difference of two means over seeds, by side or pooled."""
    spreads = [(float(side.var(ddof=1)), len(side) - 1.0) for side in runs]
    if not pooled:
        return [(spread / len(side), df) for (spread, df), side in zip(spreads, runs, strict=True)]
    df = sum(df for _, df in spreads)
    spread = sum(spread * own for spread, own in spreads) / df
    return [(spread * sum(1 / len(side) for side in runs), df)]


def _with_verdict(line: RecipeResult, p: float, alpha: float) -> RecipeResult:
    verdict = "cannot tell" if p > alpha else "B is better" if line.welch.difference.value > 0 else "A is better"
    return replace(line, p_adjusted=p, verdict=verdict)
