"""Draws of verdicts that are hard: margins, skewed changes, published rows near 0 and 100 %, few seeds, choice, looks.

Each is decided by the test as it was ("before": permutation, Gaffke's bound for margins, Welch's test), by the function
of the project, and by the second implementation. Without a true difference (beyond the margin) at most 5 % may be
called better or worse.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from unittest import mock

import numpy as np
import numpy.typing as npt
from scipy import stats

from analysis.compare_checkpoints import against_published, paired_answers, sequential
from analysis.compare_checkpoints.comparison import SAME
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from analysis.compare_checkpoints.published_baselines import PublishedScore
from analysis.statistics import recipe_difference, recipe_power
from eval.statistics import mean_bounds, significance, smallest_difference
from studies.gate_validation import second_implementation
from system.errors import UserError

Floats = npt.NDArray[np.float64]
Case = tuple[bool, bool, bool]  # a verdict before, after, and by the second implementation
ALPHA = significance.ALPHA
EVEN = ((30, 4), (30, 16), (30, 64), (40, 64))  # problems, repeats
SKEWED = ((30, 64, 0.05, 0.5), (30, 64, 0.1, 0.5), (30, 64, 0.05, 0.9), (100, 64, 0.05, 0.9), (500, 4, 0.05, 0.9))
ROWS = ((30, 64, 10, 0.01), (30, 64, 10, 0.99), (500, 4, 3, 0.005), (30, 64, 10, 0.4))


def answers(before: Floats, after: Floats, k: int, random: np.random.Generator) -> PairedAnswers:
    """Answers of both sides by the true chances, each of shape (problems,)."""
    first, second = (random.random((len(p), k)) < p[:, None] for p in (before, after))
    return PairedAnswers(first, second, np.zeros_like(first), np.zeros_like(first))


def again(pair: PairedAnswers, null: float, random: np.random.Generator) -> float:
    """The gate's p-value by the second implementation."""
    return second_implementation.gate(pair.first.mean(axis=1), pair.second.mean(axis=1), null, random)


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
    return old <= ALPHA, paired_answers.p_value([pair], margin) <= ALPHA, again(pair, -margin, random) <= ALPHA


def skewed(n: int, k: int, rare: float, loss: float, random: np.random.Generator) -> Case:
    """Item 9: a share of the problems loses much, the others gain a little, the mean is zero."""
    chance = np.full(n, max(loss, 1 - loss))
    after = np.where(random.random(n) < rare, chance - loss, chance + rare * loss / (1 - rare)).clip(0, 1)
    pair = answers(chance, after, k, random)
    second = again(pair, 0.0, random)
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
    return min(old) <= ALPHA, any(line.verdict != "cannot tell" for line in lines), recipes_again(a, b)


def recipes_again(a: Mapping[str, Sequence[Floats]], b: Mapping[str, Sequence[Floats]], paired: bool = False) -> bool:
    """Whether the second implementation tells two recipes apart."""
    first, second = ([np.stack([run.mean(axis=1) for run in runs]) for runs in side.values()] for side in (a, b))
    return min(second_implementation.recipes(first, second, paired)) <= ALPHA


def detectable(sides: tuple[int, int], random: np.random.Generator) -> Case:
    """Item 12: a difference as large as printed, in new trainings. Before: as if spreads were known."""

    def drawn(gap: float) -> list[list[Floats]]:
        chance = random.uniform(0.2, 0.8, 150)
        own = [chance + random.normal(0, 0.1, 150) + side * gap for side in (0, 1)]
        return [
            [level[:, None] + random.normal(0, 0.02) + random.normal(0, 0.45, (150, 4)) for _ in range(count)]
            for level, count in zip(own, sides, strict=True)
        ]

    with mock.patch.object(recipe_power, "detectable", wraps=recipe_power.detectable) as stated:
        a, b = drawn(0.0)
        now = recipe_difference.compare({"x": a}, {"x": b})[0].detectable
    noise, level = stated.call_args.args
    before = recipe_power.detectable(noise._replace(estimated=False), level)
    is_better = []
    for gap in (before, now):
        a, b = drawn(gap)
        is_better.append(recipe_difference.compare({"x": a}, {"x": b})[0].verdict == "B is better")
    return is_better[0], is_better[1], recipes_again({"x": a}, {"x": b})


def copied(random: np.random.Generator) -> Case:
    """Item 3: three copies of one training a side: the test alone, and whether they are compared at all."""
    chance = random.uniform(0.2, 0.8, 200)
    shifts = random.normal(0, 0.02, 2)
    one, two = (np.asarray(random.random((200, 2)) < (chance + shift)[:, None], dtype=np.float64) for shift in shifts)
    a, b = (run.mean(axis=1)[None].repeat(3, axis=0) for run in (one, two))
    line = recipe_difference._compared_line("", [(a, b)], None, ALPHA)
    old = max(line.welch.p_value, line.crossed.p_value) <= ALPHA
    try:
        now = recipe_difference.compare({"x": [one] * 3}, {"x": [two] * 3})[0].verdict != "cannot tell"
    except UserError:
        now = False
    distinct = len(np.unique(a, axis=0)) > 1 and len(np.unique(b, axis=0)) > 1
    return old, now, distinct and second_implementation.recipes([a], [b])[0] <= ALPHA


def greedy(random: np.random.Generator) -> Case:
    """Item 11: a gain as large as printed for four greedy repeats. Before: as if these were drawn one by one."""
    chance = random.beta(0.5, 0.5, 200)

    def drawn(gap: float) -> PairedAnswers:
        return answers(chance, chance + gap * (1 - chance) / (1 - chance.mean()), 1, random)

    pair = drawn(0.0)
    one_differs = [side.repeat(4, axis=1) ^ (np.arange(800) == 0).reshape(200, 4) for side in (pair.first, pair.second)]
    stated = [
        smallest_difference.smallest_detectable([(first, second)]) or 1.0
        for first, second in (one_differs, (pair.first, pair.second))
    ]
    detected = []
    for gap in stated:
        pair = drawn(gap)
        detected.append(pair.counts.sum() > 0 and paired_answers.p_value([pair], 0.0) <= ALPHA)
    gained = int((pair.counts > 0).sum())
    exact = stats.binomtest(gained, max(1, int((pair.counts != 0).sum()))).pvalue
    return bool(detected[0]), bool(detected[1]), bool(pair.counts.sum() > 0 and exact <= ALPHA)


def even_gain(n: int, k: int, gain: float, level: float, random: np.random.Generator) -> Case:
    """Each wrong answer turns right with the same probability: the power that the bounds for skewed changes cost."""
    chance = random.beta(0.5, 0.5, n)
    pair = answers(chance, chance + 2 * gain * (1 - chance), k, random)
    before, now = significance.permutation(pair.counts), paired_answers.p_value([pair], 0.0)
    return before <= level, now <= level, again(pair, 0.0, random) <= level


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
    second = again(new, 0.0, random)
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
    second = [
        second_implementation.looks(pair.first, pair.second, rounds[: number + 1], len(rounds))
        for number in range(len(rounds))
    ]
    before = any(paired_answers.p_value([look], 0.0) <= ALPHA for look in looks)
    return before, min(p or 1 for p in now) <= ALPHA, min(second) <= ALPHA


def paired_seeds(seeds: int, correlation: float, gain: float, random: np.random.Generator) -> Case:
    """Item 13: seeds that both sides share, apart and in pairs."""
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
    return apart, in_pairs, recipes_again({"x": a}, {"x": b}, paired=True)


def cases() -> Iterator[tuple[int, str, str, Callable[[np.random.Generator], Case]]]:
    """The lines: the item of the list, what is measured (verdicts in percent), the setting, and one draw of it."""
    for n, k in EVEN:
        for margin in (0.0, 0.01):
            setting = f"{n} × {k}, margin {100 * margin:g}"
            yield 1, "loss of 10 points is worse", setting, partial(even_loss, n, k, 0.1, margin)
        yield 1, "loss of the margin is worse", f"{n} × {k}, margin 5", partial(even_loss, n, k, 0.05, 0.05)
    yield 3, "copies decide", "three of one training a side", copied
    for row in ROWS:
        setting = f"{row[0]} × {row[1]}, {row[2]} seeds, {100 * row[3]:g} %"
        yield 5, "same model as the published row", setting, partial(published, *row)
    for count in (5, 20):
        yield 8, "best of equal checkpoints is better", f"{count}, on the other half", partial(chosen, count)
    for k in (16, 64):
        yield 8, "equal, looked at until clear", f"200 × 1, 2, 4, … {k}", partial(looked_at, k)
    for n, k, rare, loss in SKEWED:
        setting = f"{n} × {k}, {100 * rare:g} % lose {100 * loss:g} points"
        yield 9, "skewed, mean zero", setting, partial(skewed, n, k, rare, loss)
    for n, k, gain, level in (
        (30, 16, 0.1, ALPHA / 7),
        (30, 64, 0.05, ALPHA),
        (40, 64, 0.05, ALPHA),
        (100, 16, 0.03, ALPHA),
    ):
        setting = f"{n} × {k}, level {level:.4f}"
        yield 9, f"gain of {100 * gain:g} points", setting, partial(even_gain, n, k, gain, level)
    yield 11, "what is detectable is found", "200 problems, 4 greedy repeats", greedy
    for sides in ((2, 2), (2, 5), (3, 3), (5, 5)):
        yield 12, "same recipe, three benchmarks", f"{sides[0]} and {sides[1]} seeds", partial(few_seeds, sides, 3)
    for sides in ((2, 2), (2, 5), (2, 10), (3, 3), (5, 5)):
        yield 12, "what is detectable is found", f"{sides[0]} and {sides[1]} seeds", partial(detectable, sides)
    for seeds, correlation, gain in itertools.product((3, 5), (0.0, 0.8), (0.0, 0.03)):
        setting = f"{seeds} shared seeds, correlation {correlation:g}, gain {100 * gain:g}"
        yield 13, "recipes, seeds apart and paired", setting, partial(paired_seeds, seeds, correlation, gain)
    for gain in (0.0, 0.03):
        name = f"gain of {100 * gain:g} points" if gain else "changes that cancel"
        yield 18, f"{name}, these same problems", "30 × 64", partial(same_problems, gain)
    for gain in (0.0, 0.015):
        yield 18, f"gain of {100 * gain:g} points, pooled", "six benchmarks × 2", partial(pooled, gain)
