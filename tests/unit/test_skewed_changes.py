"""Skewed changes and margins: error rates and power of the gate, and its parts against a second implementation."""

import numpy as np
import pytest
from scipy import optimize, stats

from analysis.compare_checkpoints import paired_answers
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from eval.statistics import e_process, significance, skewed_changes, smallest_difference


def pair(random, before, after, k):
    """Answers of both sides by the true chances, each of shape (problems,)."""
    first, second = (random.random((len(p), k)) < p[:, None] for p in (before, after))
    return PairedAnswers(first, second, np.zeros_like(first), np.zeros_like(first))


def even_loss(random, n, k, loss):
    before = random.beta(0.5, 0.5, n)
    return pair(random, before, before * (1 - 2 * loss), k)


@pytest.mark.parametrize("null", [0.0, -0.02])
def test_the_ratio_is_that_of_the_weights_that_make_the_mean_null(null):
    """The weights are searched directly."""
    values = np.random.default_rng(0).normal(0.1, 0.2, 12).clip(-1, 1)

    def weights(logits):
        return np.exp(logits - np.logaddexp.reduce(logits))

    constraint = {"type": "eq", "fun": lambda x: weights(x) @ values - null}
    best = optimize.minimize(lambda x: -np.log(12 * weights(x)).sum(), np.zeros(12), constraints=constraint, tol=1e-12)
    expected = 2 * stats.t.sf(np.sqrt(2 * best.fun), 11)
    assert skewed_changes.bounds([values[None]], 0.5, null).likelihood[0] == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("n", "hidden", "error"), [(30, 0.5, 0.01), (30, 0.2, 0.03), (500, 0.5, 0.01)])
def test_the_chance_that_none_is_here_and_the_others_gain_as_much(n, hidden, error):
    shares = np.linspace(0, 0.9, 200_001)
    gaps = hidden * shares / (1 - shares)
    expected = ((1 - shares) ** n * stats.norm.cdf((gaps - 0.04) / error)).max() / skewed_changes.OF_LEVEL
    said = skewed_changes.chance_of_none(np.array([0.04]), n, hidden, np.array([error]))
    assert said[0] == pytest.approx(min(1, expected), rel=0.01)
    mean = skewed_changes.needed_mean(n, hidden, error, 0.05)
    assert skewed_changes.chance_of_none(np.array([mean]), n, hidden, np.array([error])) == pytest.approx(
        0.05, rel=0.01
    )


def test_what_the_baseline_leaves_room_for():
    low = np.arange(30)[:, None] < [6]
    assert skewed_changes.headroom([low], True) == pytest.approx(0.2)  # it cannot lose more
    assert skewed_changes.headroom([low], False) == skewed_changes.MOST
    assert skewed_changes.headroom([np.zeros((30, 1)), np.ones((500, 1))], True) == pytest.approx(1 / 30)
    assert significance.needed(30, 0.02, significance.Spread(0.0, 0.2)).repeats is None
    assert significance.needed(30, 0.02, significance.Spread(0.0, 0.2), hidden=0.05).repeats


@pytest.mark.slow
@pytest.mark.parametrize(("n", "k", "rare", "loss"), [(30, 64, 0.05, 0.5), (30, 64, 0.1, 0.5), (100, 64, 0.05, 0.9)])
def test_skewed_changes_without_a_mean_give_few_verdicts(n, k, rare, loss):
    random, hits, old = np.random.default_rng(n), [], []
    for _ in range(400):
        before = np.full(n, max(loss, 1 - loss))
        after = np.where(random.random(n) < rare, before - loss, before + rare * loss / (1 - rare))
        answers = pair(random, before, after.clip(0, 1), k)
        hits.append(paired_answers.p_value([answers], 0.0) <= 0.05)
        old.append(significance.permutation(answers.counts) <= 0.05)
    assert np.mean(hits) <= 0.07 < np.mean(old) + 0.02  # 5 % and the noise of 400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "k", "least"), [(30, 16, 0.75), (30, 64, 0.9), pytest.param(40, 64, 0.95, marks=pytest.mark.long)]
)
def test_an_even_loss_of_ten_points_is_worse_with_a_margin_of_one_too(n, k, least):
    random = np.random.default_rng(n + k)
    pairs = [even_loss(random, n, k, 0.1) for _ in range(40)]
    assert np.mean([paired_answers.p_value([one], 0.01) <= 0.05 for one in pairs]) >= least
    counts = [k // 4, k // 2, k]
    looks = [[one.first_repeats(count).counts / count for count in counts] for one in pairs]
    assert np.mean([e_process.p_value(look, look, len(look), 0.01) <= 0.05 for look in looks]) >= least - 0.4


@pytest.mark.slow
@pytest.mark.parametrize(("n", "k", "margin"), [(30, 16, 0.05), pytest.param(100, 4, 0.02, marks=pytest.mark.long)])
def test_a_loss_of_the_margin_is_not_worse(n, k, margin):
    random = np.random.default_rng(n)
    p = [paired_answers.test([even_loss(random, n, k, margin)], margin) for _ in range(100)]
    assert np.mean([one.p_value <= 0.05 for one in p]) <= 0.08
    assert any(one.name.startswith("permutation, empirical likelihood") for one in p)


@pytest.mark.slow
def test_the_detectable_loss_is_that_of_the_test_with_the_margin():
    random = np.random.default_rng(3)
    one = even_loss(random, 40, 16, 0.0)
    stated = smallest_difference.smallest_detectable([(one.first, one.second)], margin=0.03)
    assert stated > smallest_difference.smallest_detectable([(one.first, one.second)]) + 0.01
    hits = [paired_answers.p_value([even_loss(random, 40, 16, stated)], 0.03) <= 0.05 for _ in range(80)]
    assert 0.65 <= np.mean(hits) <= 0.95


def test_copies_of_a_repeat_count_as_one():
    random = np.random.default_rng(1)
    first, second = (random.random((60, 1)) < 0.5 for _ in "ab")
    copied = [np.repeat(side, 16, axis=1) for side in (first, second)]
    one, many = (smallest_difference.smallest_detectable([tuple(pair)]) for pair in ((first, second), copied))
    assert many == pytest.approx(one, abs=0.03)
    none = np.zeros_like(copied[0])
    assert PairedAnswers(*copied, none, none).has_copies


def test_a_large_loss_among_many_gains_is_searched_to_the_end():
    values = np.full(100, 0.09)
    values[:2] = -0.9  # near the pole of the logarithm
    best = optimize.minimize_scalar(lambda bet: -np.log1p(bet * values).sum(), bounds=(0, 1 / 0.9), method="bounded")
    said = skewed_changes.bounds([values[None]], 0.5).likelihood[0]
    assert said == pytest.approx(2 * stats.t.sf((-2 * best.fun) ** 0.5, 99))
