"""Verdicts where they are hard: margins, skewed changes, published rows near 0 and 100 %, few seeds, choosing, looking.

    crosszero study gate_validation attacks --output FILE.md      about 3 minutes on one core

Each line has the test as it was ("before": permutation, Gaffke's bound for margins, Welch's test), the function of the
project, and a second implementation in this file: empirical likelihood by scipy's bounded search instead of Newton's
method, permutation by random signs, Fisher's exact test beside published rows. Without a true difference (beyond the
margin) at most 5 % may be called better or worse.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import optimize, stats

from analysis.compare_checkpoints import against_published, paired_answers, sequential
from analysis.compare_checkpoints.comparison import SAME
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from analysis.compare_checkpoints.published_baselines import PublishedScore
from analysis.pages.table_texts import markdown
from analysis.statistics import recipe_difference
from eval.statistics import mean_bounds, significance
from system import durable
from system.command_line import argument_parser
from system.errors import run_command

Floats = npt.NDArray[np.float64]
Case = tuple[bool, bool, bool | None]  # a verdict before, after, and by the second implementation
ALPHA = significance.ALPHA
EVEN = ((30, 4), (30, 16), (30, 64), (40, 64))  # problems, repeats
SKEWED = ((30, 64, 0.05, 0.5), (30, 64, 0.1, 0.5), (30, 64, 0.05, 0.9), (100, 64, 0.05, 0.9), (500, 4, 0.05, 0.9))
ROWS = ((30, 64, 10, 0.01), (30, 64, 10, 0.99), (500, 4, 3, 0.005), (30, 64, 10, 0.4))


def answers(before: Floats, after: Floats, k: int, random: np.random.Generator) -> PairedAnswers:
    """Answers of both sides by the true chances, each of shape (problems,)."""
    first, second = (random.random((len(p), k)) < p[:, None] for p in (before, after))
    return PairedAnswers(first, second, np.zeros_like(first), np.zeros_like(first))


def second_p_value(pair: PairedAnswers, null: float, random: np.random.Generator) -> float:
    """The gate's test of one benchmark, written again.

    Args:
        pair: the answers.
        null: a mean difference.
        random: of the signs.
    """
    gaps = pair.counts / pair.repeats
    values = (gaps - null) * np.sign(gaps.mean() - null)
    n, mean, level = len(values), float(values.mean()), float(pair.first.mean())
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


def even_loss(n: int, k: int, loss: float, margin: float, random: np.random.Generator) -> Case:
    """Item 1: each right answer turns wrong with the same probability."""
    chance = random.beta(0.5, 0.5, n)
    pair = answers(chance, chance * (1 - 2 * loss), k, random)
    gaps = pair.counts / k
    if gaps.mean() >= -margin:
        return False, False, False
    old = (
        min(1.0, 2 * mean_bounds.exceeds([-gaps], margin, draws=4000))
        if margin
        else significance.permutation(pair.counts)
    )
    return old <= ALPHA, paired_answers.p_value([pair], margin) <= ALPHA, second_p_value(pair, -margin, random) <= ALPHA


def skewed(n: int, k: int, rare: float, loss: float, random: np.random.Generator) -> Case:
    """Item 9: a share of the problems loses much, the others gain a little, the mean is zero."""
    chance = np.full(n, max(loss, 1 - loss))
    after = np.where(random.random(n) < rare, chance - loss, chance + rare * loss / (1 - rare)).clip(0, 1)
    pair = answers(chance, after, k, random)
    second = second_p_value(pair, 0.0, random)
    return significance.permutation(pair.counts) <= ALPHA, paired_answers.p_value([pair], 0.0) <= ALPHA, second <= ALPHA


def published(n: int, k: int, seeds: int, mean: float, random: np.random.Generator) -> Case:
    """Item 5: a published row and our samples are of one model, on these same problems."""
    chance = random.beta(mean, 1 - mean, n)
    theirs = (random.random((seeds, n)) < chance).mean(axis=1)
    row = PublishedScore(round(float(theirs.mean()), 3), round(float(theirs.std(ddof=1)), 3), n, seeds)
    ours = random.random((n, k)) < chance[:, None]
    gap, error, df = against_published._difference(ours, row, SAME)
    line = against_published._benchmark_result("", ours, row, ALPHA, 0.0, SAME)
    counts = [[int(ours.sum()), n * k - int(ours.sum())]]
    counts.append([round(row.accuracy * n * seeds), round((1 - row.accuracy) * n * seeds)])
    exact = stats.fisher_exact(counts).pvalue  # as if problems were equally hard: cautious
    return 2 * stats.t.sf(abs(gap) / error, df) <= ALPHA, (line.p_value or 0.0) <= ALPHA, bool(exact <= ALPHA)


def few_seeds(sides: tuple[int, int], benchmarks: int, random: np.random.Generator) -> Case:
    """Item 12: one recipe on both sides, seeds with a deviation of 2 points, problems that differ by 10 points."""
    a: dict[str, list[Floats]] = {}
    b: dict[str, list[Floats]] = {}
    shifts = [random.normal(0, 0.02, count) for count in sides]
    for number in range(benchmarks):
        chance = random.uniform(0.2, 0.8, 60 + 40 * number)
        for recipe, shift in zip((a, b), shifts, strict=True):
            own = chance + random.normal(0, 0.1, len(chance))
            recipe[str(number)] = [(random.random((len(own), 4)) < (own + one)[:, None]) * 1.0 for one in shift]
    lines = recipe_difference.compare(a, b)
    old = significance.holm([max(line.welch.p_value, line.crossed.p_value) for line in lines])
    return min(old) <= ALPHA, any(line.verdict != "cannot tell" for line in lines), None


def even_gain(n: int, k: int, gain: float, level: float, random: np.random.Generator) -> Case:
    """Each wrong answer turns right with the same probability: the power that the bounds for skewed changes cost."""
    chance = random.beta(0.5, 0.5, n)
    pair = answers(chance, chance + 2 * gain * (1 - chance), k, random)
    second = second_p_value(pair, 0.0, random)
    p_values = significance.permutation(pair.counts), paired_answers.p_value([pair], 0.0), second
    before, now, again = (p <= level for p in p_values)
    return before, now, again


def same_problems(gain: float, random: np.random.Generator) -> Case:
    """Item 18: 30 × 64; by the gate's test, on these same problems, and by dealing the answers at random."""
    chance = random.beta(0.5, 0.5, 30)
    shift = 0.3 * np.where(np.arange(30) % 2, 1, -1) * np.minimum(chance, 1 - chance)
    after = chance + 2 * gain * (1 - chance) if gain else chance + shift - shift.mean()
    pair = answers(chance, after, 64, random)
    both = pair.first.sum(axis=1) + pair.second.sum(axis=1)
    dealt = both - 2 * random.hypergeometric(both, 128 - both, 64, (2000, 30))
    p = (1 + np.count_nonzero(np.abs(dealt.sum(axis=1)) >= abs(pair.counts.sum()))) / 2001
    now = paired_answers.test([pair], 0.0, SAME).p_value
    return paired_answers.p_value([pair], 0.0) <= ALPHA, now <= ALPHA, bool(p <= ALPHA)


def pooled(gain: float, random: np.random.Generator) -> Case:
    """Item 18: a gain on six benchmarks, by the mean of the benchmarks, pooled, and by a t test over all problems."""
    pairs = []
    for n in (30, 40, 272, 500, 675, 1319):
        chance = random.beta(0.5, 0.5, n)
        pairs.append(answers(chance, chance + 2 * gain * (1 - chance), 2, random))
    p = stats.ttest_1samp(np.concatenate([pair.counts for pair in pairs]), 0).pvalue
    by_mean, together = (paired_answers.test(pairs, 0.0, pooled=own).p_value <= ALPHA for own in (False, True))
    return by_mean, together, bool(p <= ALPHA)


def chosen(count: int, random: np.random.Generator) -> Case:
    """Item 8: the best of equal checkpoints on 200 × 4: as if it were the only one, and chosen on the other half."""
    chance = random.beta(0.5, 0.5, 200)
    base, *all_others = ((random.random((200, 4)) < chance[:, None]) for _ in range(count + 1))
    best = max(all_others, key=np.mean)
    on_half = max(all_others, key=lambda one: one[:100].mean())
    nothing = np.zeros_like(base)
    old = PairedAnswers(base, best, nothing, nothing)
    new = PairedAnswers(base[100:], on_half[100:], nothing[100:], nothing[100:])
    second = stats.ttest_1samp(new.counts, 0).pvalue if new.counts.any() else 1.0
    better = old.counts.sum() > 0 and paired_answers.p_value([old], 0.0) <= ALPHA
    gap = new.counts.sum() > 0
    return better, bool(gap and paired_answers.p_value([new], 0.0) <= ALPHA), bool(gap and second <= ALPHA)


def looked_at(k: int, random: np.random.Generator) -> Case:
    """Item 8: equal checkpoints on 200 problems, looked at after 1, 2, 4, … k completions until one look decides."""
    chance = random.beta(0.5, 0.5, 200)
    pair = answers(chance, chance, k, random)
    rounds = [count for count in (1, 2, 4, 8, 16, 32, 64) if count <= k]
    looks = [pair.first_repeats(count) for count in rounds]
    rules = sequential.Rules(k, stored=True)
    now = [sequential.judge_benchmark("", look, rules).p_value for look in looks]
    return any(paired_answers.p_value([look], 0.0) <= ALPHA for look in looks), min(p or 1 for p in now) <= ALPHA, None


def paired_seeds(seeds: int, correlation: float, gain: float, random: np.random.Generator) -> Case:
    """Item 13: seeds that both sides share, apart, in pairs, and by a t test on the differences of the pairs' means."""
    common, own = random.normal(0, 1, seeds), random.normal(0, 1, (2, seeds))
    shifts = 0.02 * (correlation**0.5 * common + (1 - correlation) ** 0.5 * own)
    chance = random.uniform(0.2, 0.8, 300)
    a, b = (
        [random.random((300, 4)) < (chance + shift + side * gain)[:, None] for shift in shifts[side]] for side in (0, 1)
    )
    apart, in_pairs = (
        recipe_difference.compare({"x": a}, {"x": b}, paired=paired)[0].verdict != "cannot tell"
        for paired in (False, True)
    )
    means = [[run.mean() for run in side] for side in (a, b)]
    return apart, in_pairs, bool(stats.ttest_rel(*means).pvalue <= ALPHA)


def cases() -> Iterator[tuple[str, str, Callable[[np.random.Generator], Case]]]:
    """The lines: what is measured, the setting, and one draw of it."""
    for n, k in EVEN:
        for margin in (0.0, 0.01):
            setting = f"{n} × {k}, margin {100 * margin:g}"
            yield "loss of 10 points is worse", setting, partial(even_loss, n, k, 0.1, margin)
        yield "loss of the margin is worse", f"{n} × {k}, margin 5", partial(even_loss, n, k, 0.05, 0.05)
    for n, k, gain, level in (
        (30, 16, 0.1, ALPHA / 7),
        (30, 64, 0.05, ALPHA),
        (40, 64, 0.05, ALPHA),
        (100, 16, 0.03, ALPHA),
    ):
        setting = f"{n} × {k}, level {level:.4f}"
        yield f"gain of {100 * gain:g} points", setting, partial(even_gain, n, k, gain, level)
    for gain in (0.0, 0.03):
        name = f"gain of {100 * gain:g} points" if gain else "changes that cancel"
        yield f"{name}, these same problems", "30 × 64", partial(same_problems, gain)
    for gain in (0.0, 0.015):
        yield f"gain of {100 * gain:g} points, pooled", "six benchmarks × 2", partial(pooled, gain)
    for count in (5, 20):
        yield "best of equal checkpoints is better", f"{count}, on the other half", partial(chosen, count)
    for k in (16, 64):
        yield "equal, looked at until clear", f"200 × 1, 2, 4, … {k}", partial(looked_at, k)
    for seeds, correlation, gain in itertools.product((3, 5), (0.0, 0.8), (0.0, 0.03)):
        setting = f"{seeds} shared seeds, correlation {correlation:g}, gain {100 * gain:g}"
        yield "recipes with paired seeds", setting, partial(paired_seeds, seeds, correlation, gain)
    for n, k, rare, loss in SKEWED:
        setting = f"{n} × {k}, {100 * rare:g} % lose {100 * loss:g} points"
        yield "skewed, mean zero", setting, partial(skewed, n, k, rare, loss)
    for row in ROWS:
        setting = f"{row[0]} × {row[1]}, {row[2]} seeds, {100 * row[3]:g} %"
        yield "same model as the row", setting, partial(published, *row)
    for sides in ((2, 2), (2, 5), (3, 3), (5, 5)):
        yield "same recipe", f"{sides[0]} and {sides[1]} seeds", partial(few_seeds, sides, 3)


def table(times: int, seed: int) -> str:
    """The table as Markdown, with 1.96 Monte Carlo errors."""
    rows = []
    for number, (name, setting, draw) in enumerate(cases()):
        random = np.random.default_rng([seed, number])
        verdicts = list(zip(*(draw(random) for _ in range(times)), strict=True))
        row = {"verdicts (%)": name, "setting": setting}
        for title, column in zip(("before", "now", "second implementation"), verdicts, strict=True):
            if None in column:
                row[title] = "–"
                continue
            share = float(np.mean(column))
            row[title] = f"{100 * share:.1f} ± {196 * np.sqrt(share * (1 - share) / times):.1f}"
        rows.append(row)
    return markdown(pd.DataFrame(rows))


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--times", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    durable.write_text(arguments.output, table(arguments.times, arguments.seed))


if __name__ == "__main__":
    run_command(main)
