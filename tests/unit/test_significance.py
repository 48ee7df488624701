"""Tests and powers against scipy, enumeration, and simulation."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from eval.statistics import significance


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_permutation_is_the_enumeration_of_all_signs(counts):
    observed = abs(sum(counts))
    sums = [
        abs(sum(sign * c for sign, c in zip(signs, counts, strict=True)))
        for signs in product((-1, 1), repeat=len(counts))
    ]
    assert significance.permutation(np.array(counts)) == pytest.approx(np.mean([s >= observed for s in sums]))


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (5, 0), (6, 0), (12, 3), (40, 38), (200, 150)])
def test_with_one_sample_it_is_the_exact_mcnemar_test(gained, lost):
    counts = np.array([1] * gained + [-1] * lost + [0] * 50)
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert significance.permutation(counts) == pytest.approx(expected)


@pytest.mark.slow
def test_permutation_agrees_with_scipy_on_repeats():
    random = np.random.default_rng(1)
    counts = random.integers(-4, 6, 60)
    expected = stats.permutation_test(
        (counts, np.zeros(60)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=200_000,
        vectorized=True,
        rng=random,
    )
    assert significance.permutation(counts) == pytest.approx(expected.pvalue, abs=0.003)
    assert significance.permutation_of_mean([counts / 4]) == pytest.approx(expected.pvalue, abs=0.005)


def test_student_agrees_with_scipy():
    differences = np.random.default_rng(2).normal(0.1, 1, 30)
    for null in (0.0, -0.2):
        assert significance.student(differences, null) == pytest.approx(stats.ttest_1samp(differences, null).pvalue)
    assert significance.student(np.zeros(30)) == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values):
    rejected, order = set(), sorted(range(len(p_values)), key=lambda i: p_values[i])
    for rank, position in enumerate(order):
        if p_values[position] * (len(p_values) - rank) > 0.05:
            break
        rejected.add(position)
    assert {i for i, p in enumerate(significance.holm(p_values)) if p <= 0.05} == rejected


@pytest.mark.slow
@pytest.mark.parametrize(("n", "discordant", "difference"), [(40, 0.3, 0.2), (272, 0.2, 0.08), (500, 0.1, 0.0)])
def test_mcnemar_power_is_how_often_the_test_rejects(n, discordant, difference):
    random, up = np.random.default_rng(3), (discordant + difference) / 2
    draws = random.multinomial(n, [up, discordant - up, 1 - discordant], size=2000)
    rejects = np.mean([significance.permutation(np.repeat([1, -1, 0], row)) <= 0.05 for row in draws])
    assert significance.mcnemar_power(n, discordant, difference, 0.05) == pytest.approx(rejects, abs=0.035)


def test_student_power_is_how_often_the_t_test_rejects():
    random = np.random.default_rng(4)
    rejects = np.mean(stats.ttest_1samp(random.normal(0.5, 1, (4000, 30)), 0, axis=1).pvalue <= 0.01)
    assert significance.student_power(30, 1.0, 0.5, 0.01) == pytest.approx(rejects, abs=0.03)


def test_needed_repeats_reach_the_power_and_problems_set_a_limit():
    parts = significance.assumed_spread(0.5, 0.5, 0.1)
    assert parts == pytest.approx((0.01, 0.25))
    need = significance.needed(300, 0.03, parts)
    for repeats, enough in ((need.repeats, True), (need.repeats - 1, False)):
        reached = significance.student_power(300, np.sqrt(parts.between + parts.within / repeats), 0.03, 0.05)
        assert (reached >= 0.797) == enough
    beyond = significance.needed(30, 0.03, parts)
    assert beyond.repeats is None and beyond.limit > 0.03
    assert {significance.needed(30, points / 100, parts).limit for points in range(1, 100, 7)} == {beyond.limit}


def test_spread_is_recovered_from_samples():
    random = np.random.default_rng(5)
    base = random.beta(2, 2, 20_000)
    last = np.clip(base + random.normal(0, 0.05, 20_000), 0, 1)
    first, second = (random.random((20_000, 8)) < p[:, None] for p in (base, last))
    parts = significance.spread(first, second)
    assert parts.within == pytest.approx(np.mean(base * (1 - base) + last * (1 - last)), abs=0.01)
    assert parts.between == pytest.approx(np.var(last - base), abs=0.001)
    assert significance.spread(first[:, :1], second) is None
