"""The statistics of the comparisons, written again from their description, with numpy and scipy alone.

docs/explanation/comparisons.md and recipes.md describe them. Where the product has Newton's method, an exact
permutation or a quadratic solved in closed form, this has a bounded search, random signs or a plain sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values."""
    order = np.argsort(p_values)
    steps = np.maximum.accumulate(np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1))
    adjusted = np.empty(len(p_values))
    adjusted[order] = steps.clip(max=1)
    return [float(p) for p in adjusted]


def gate(first: Floats, second: Floats, null: float, random: np.random.Generator) -> float:
    """The gate's p-value on one benchmark.

    Args:
        first: accuracies of the baseline by problem.
        second: of the checkpoint.
        null: a mean difference.
        random: of the signs.
    """
    gaps, level = second - first, float(first.mean())
    values = (gaps - null) * np.sign(gaps.mean() - null)
    n, mean = len(values), float(values.mean())
    likelihood = 0.0
    if values.min() < 0:
        top = (1 - 1e-9) / -values.min()
        best = optimize.minimize_scalar(lambda bet: -np.log1p(bet * values).sum(), bounds=(0, top), method="bounded")
        likelihood = float(2 * stats.t.sf(np.sqrt(max(0.0, -2 * best.fun)), n - 1))
    signs = random.choice((-1.0, 1.0), (2000, n))
    flipped = (1 + np.count_nonzero(np.abs(signs @ values) >= abs(values.sum()) - 1e-9)) / 2001
    hidden = min(0.65, max(1 / n, level if gaps.mean() > null else 1 - level)) + abs(null)
    shares = np.linspace(0, 0.5, 2001)  # of problems that change the other way
    others = stats.norm.cdf((hidden * shares / (1 - shares) - mean) / max(1e-9, values.std(ddof=1) / np.sqrt(n)))
    return float(max(likelihood, flipped, ((1 - shares) ** n * others).max() / 0.8))


def looks(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_], rounds: Sequence[int], planned: int) -> float:
    """The p-value after looks at answers of shape (problems, repeats): bets on signs, 1 / planned on each look."""
    gained, won = second.mean() > first.mean(), 0.0
    for count in rounds:
        gaps = (second[:, :count].mean(axis=1) - first[:, :count].mean(axis=1)) * (1 if gained else -1)
        size = np.sqrt((gaps**2).sum()) or 1.0
        won += np.mean([np.prod(2 / (1 + np.exp(-2 * c / size * gaps))) for c in (1, 2, 3, 4, 5, 6, 8)])
    return min(1.0, 2 * planned / won) if won else 1.0


def recipes(a: Sequence[Floats], b: Sequence[Floats], paired: bool = False) -> list[float]:
    """Adjusted p-values that two recipes differ on each benchmark and, of several, on their mean.

    Args:
        a: per benchmark, accuracies of shape (seeds, problems).
        b: likewise.
        paired: seeds are shared.
    """
    lines = [[one] for one in zip(a, b, strict=True)] + ([list(zip(a, b, strict=True))] if len(a) > 1 else [])
    times = 3 if min(len(a[0]), len(b[0])) == 2 else 1
    return holm([min(1.0, max(times * _recipes_on(line, paired), _these_seeds(line))) for line in lines])


def _these_seeds(benchmarks: Sequence[tuple[Floats, Floats]]) -> float:
    gaps = [two.mean(axis=0) - one.mean(axis=0) for one, two in benchmarks]
    errors = [stats.sem(gap) / len(gaps) for gap in gaps]
    variance = sum(error**2 for error in errors)
    below = sum(error**4 / (len(gap) - 1) for error, gap in zip(errors, gaps, strict=True))
    mean = float(np.mean([gap.mean() for gap in gaps]))
    return float(2 * stats.t.sf(abs(mean) / np.sqrt(variance), variance**2 / below)) if variance else float(mean == 0)


def _recipes_on(benchmarks: Sequence[tuple[Floats, Floats]], paired: bool) -> float:
    sides = [[two - one] if paired else [one, two] for one, two in benchmarks]
    count, gap = len(benchmarks), float(np.mean([two.mean() - one.mean() for one, two in benchmarks]))
    by_seed = [np.mean([own[side].mean(axis=1) for own in sides], axis=0) for side in range(len(sides[0]))]
    df = [len(own) - 1 for own in by_seed]
    variances = [float(own.var(ddof=1)) for own in by_seed]
    pooled = sum(one * own for one, own in zip(variances, df, strict=True)) / sum(df)
    p_values = []
    for together in (False, True):
        if together:
            pieces = [(pooled * sum(1 / len(own) for own in by_seed), sum(df))]
        else:
            pieces = [(one / len(own), len(own) - 1) for one, own in zip(variances, by_seed, strict=True)]
        for own in sides:
            n = own[0].shape[1]
            rest = [
                (runs - runs.mean(axis=1, keepdims=True) - runs.mean(axis=0) + runs.mean()) / np.sqrt(n - 1)
                for runs in own
            ]
            squares = [float((part**2).sum()) for part in rest]
            spread = (own[-1].mean(axis=0) - (own[0].mean(axis=0) if len(own) > 1 else 0)).var(ddof=1)
            noise = (
                sum(squares) / sum(df) * sum(1 / len(runs) for runs in own) if together
                else sum(square / (len(runs) - 1) / len(runs) for square, runs in zip(squares, own, strict=True))
            )  # fmt: skip
            pieces.append((max(0.0, float(spread - noise)) / n / count**2, n - 1))
        total = sum(piece for piece, _ in pieces)
        freedom = total**2 / sum(piece**2 / own for piece, own in pieces) if total else 1.0
        p_values.append(float(2 * stats.t.sf(abs(gap) / np.sqrt(total), freedom)) if total else float(gap == 0))
    return max(p_values)


def jackknife(values: Floats, codes: Codes) -> tuple[float, float]:
    """95 % interval of a mean, leaving out one cluster at a time."""
    groups = [values[codes == code] for code in np.unique(codes)]
    total, count, g = values.sum(), len(values), len(groups)
    left_out = np.array([(total - group.sum()) / (count - len(group)) for group in groups])
    half = stats.t.ppf(0.975, g - 1) * np.sqrt((g - 1) / g * ((left_out - left_out.mean()) ** 2).sum())
    return float(values.mean() - half), float(values.mean() + half)


def gain_of_best(right: Floats, half: Codes) -> float:
    """What the best setting gains over the first, chosen by the other seeds on the other half of the problems.

    Args:
        right: accuracies of shape (settings, seeds, problems).
        half: of each problem.
    """
    seeds, total = right.shape[1], np.zeros(right.shape[1])
    for seed in range(seeds):
        for side in (0, 1):
            others = np.delete(right, seed, axis=1)[:, :, half != side].mean(axis=(1, 2))
            gaps = right[int(others.argmax()), seed] - right[0, seed]
            total[seed] += gaps[half == side].sum()
    return float(total.mean() / len(half))


def logs_differ(before: Floats, after: Floats) -> bool:
    """Whether two windows of a log have other levels, as straight lines with autocorrelated noise."""
    halves = []
    for values in (before, after):
        n, steps = len(values), np.arange(len(values))
        noise = values - np.polyval(np.polyfit(steps, values, 1), steps)
        lag = (noise[1:] * noise[:-1]).sum() / (noise**2).sum()
        lag = np.clip((n * lag + 2) / (n - 6), 0, 0.95)
        times = min((1 + lag) / (1 - lag), 0.95 * n / 2)
        variance = (noise**2).sum() / (n - 2 * times) * times / n
        halves.append(stats.t.ppf(0.975, max(n / times - 2, 1)) * np.sqrt(variance))
    return bool(abs(after.mean() - before.mean()) > np.hypot(*halves))
