"""Comparisons on these same problems, pooled answers, posteriors: beside enumeration and integration."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from analysis.compare_checkpoints import paired_answers
from analysis.compare_checkpoints.comparison import LIKE, SAME
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from eval.statistics import posterior, same_problems, significance


def pair(first, second):
    nothing = np.zeros_like(first)
    return PairedAnswers(first, second, nothing, nothing)


def drawn(chances, k, random):
    return random.random((len(chances), k)) < np.asarray(chances)[:, None]


def test_the_exact_test_deals_all_answers_of_each_problem():
    first, second = np.array([[1, 0], [0, 0], [1, 1]], bool), np.array([[1, 1], [1, 0], [1, 1]], bool)
    gap, hits, count = int(second.sum() - first.sum()), 0, 0
    deals = [list(itertools.combinations([*one, *two], 2)) for one, two in zip(first, second, strict=True)]
    for deal in itertools.product(*deals):
        count += 1
        hits += int(first.sum() + second.sum()) - 2 * sum(map(sum, deal)) >= gap
    assert same_problems.p_value([(first, second)], True) == pytest.approx(min(1, 2 * hits / count))
    assert same_problems.p_value([(first, second)], False) == 1.0
    one, two = (drawn(np.full(60, p), 1, np.random.default_rng(seed)) for seed, p in enumerate((0.3, 0.5)))
    counts = two[:, 0].astype(int) - one[:, 0].astype(int)
    assert same_problems.p_value([(one, two)], counts.sum() > 0) == pytest.approx(significance.permutation(counts))


def test_an_even_gain_that_few_problems_hide_is_seen_on_these_same_problems():
    random, rejected = np.random.default_rng(1), {SAME: 0, LIKE: 0}
    for _ in range(40):
        chance = random.beta(0.5, 0.5, 30)
        answers = pair(drawn(chance, 64, random), drawn(chance + 0.06 * (1 - chance), 64, random))  # 3 points
        for problems in rejected:
            rejected[problems] += paired_answers.test([answers], 0.0, problems).p_value <= 0.05
    assert rejected[SAME] >= 24 and rejected[LIKE] <= 16


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_cancelling_changes_are_no_difference_on_these_same_problems(shift):
    random, false, inside = np.random.default_rng(2), 0, 0
    before = np.full(40, 0.5)
    after = before + shift * np.where(np.arange(40) % 2, 1, -1)
    for _ in range(300):
        sides = drawn(before, 8, random), drawn(after, 8, random)
        false += paired_answers.test([pair(*sides)], 0.0, SAME).p_value <= 0.05
        gap = same_problems.difference(sides)
        inside += gap.low <= 0 <= gap.high
    assert false <= 26 and inside >= 274  # 15 and 285 expected at most and at least


def test_the_mean_and_a_loss_beyond_the_margin():
    random = np.random.default_rng(3)
    pairs = [
        pair(drawn(np.full(n, 0.6), k, random), drawn(np.full(n, 0.5), k, random)) for n, k in ((100, 8), (300, 4))
    ]
    assert paired_answers.test(pairs, 0.0, SAME).p_value < 0.001
    assert paired_answers.test(pairs, 0.02, SAME).p_value < paired_answers.test(pairs, 0.09, SAME).p_value
    assert paired_answers.test(pairs, 0.3, SAME).p_value == 1.0
    assert paired_answers.margin_excluded(pairs, 0.3, 0.05, SAME)
    assert not paired_answers.margin_excluded(pairs, 0.05, 0.05, SAME)


@pytest.mark.slow
@pytest.mark.parametrize("problems", [SAME, LIKE])
def test_the_pooled_answer_weighs_problems_and_sees_more_than_the_mean(problems):
    random, rejected = np.random.default_rng(4), np.zeros(2)
    for _ in range(30):
        pairs = [
            pair(drawn(c, 2, random), drawn(c + 0.04, 2, random))
            for n in (30, 800)
            for c in [random.uniform(0.2, 0.8, n)]
        ]
        rejected += [paired_answers.test(pairs, 0.0, problems, pooled=own).p_value <= 0.05 for own in (True, False)]
    assert rejected[0] >= rejected[1] + 5
    gap = paired_answers.pooled_difference(pairs, problems)
    both = np.concatenate([one.counts for one in pairs])
    assert gap.value == pytest.approx(both.mean() / 2) and gap.low < gap.value < gap.high


def test_the_posterior_is_that_of_a_uniform_prior():
    first, second = np.array([[1, 0, 0]], bool), np.array([[1, 1, 0]], bool)
    said = posterior.posterior("x", first, second)
    exact = integrate.quad(lambda p: p * stats.beta.pdf(p, 2, 3), 0, 1)[0]
    assert said.first.value == pytest.approx(exact) and said.difference.value == pytest.approx(0.2)
    deviation = (stats.beta.var(2, 3) + stats.beta.var(3, 2)) ** 0.5
    assert said.better == pytest.approx(stats.norm.cdf(0.2 / deviation))
