"""Statistics against values by hand, independent formulas, and simulated coverage."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval import statistics
from eval.statistics import avg_at_k, maj_by_problem, paired_difference, pass_by_problem


def test_avg_at_k_by_hand():
    # Problem means 1, 0.5, 0, 0.5: mean 0.5, variance 1/6, over 4 problems 1/24; effective size 6; t(3) = 3.18245.
    estimate = avg_at_k(np.array([[1, 1], [1, 0], [0, 0], [0, 1]], dtype=bool))
    assert estimate.value == 0.5
    half = 3.18245 / (1 + 3.18245**2 / 6) * np.sqrt(0.25 / 6 + 3.18245**2 / (4 * 36))
    assert estimate.low == pytest.approx(0.5 - half, abs=1e-5)
    assert estimate.high == pytest.approx(0.5 + half, abs=1e-5)


def test_repeating_the_same_completions_adds_no_information():
    once = np.random.default_rng(0).random((30, 1)) < 0.3
    assert avg_at_k(once) == pytest.approx(avg_at_k(np.repeat(once, 16, axis=1)))


@pytest.mark.parametrize("right", [0, 1])
def test_interval_is_not_empty_when_all_or_none_is_right(right):
    estimate = avg_at_k(np.full((30, 4), bool(right)))
    assert 0.85 < 1 - (estimate.high - estimate.low) < 0.95
    assert avg_at_k(np.full((1, 4), bool(right)))[1:] == (0.0, 1.0)


@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=6), st.integers(1, 5))
def test_pass_at_k_is_the_mean_over_all_subsets(rows, k):
    subsets = [[any(row[i] for i in chosen) for chosen in combinations(range(5), k)] for row in rows]
    assert pass_by_problem(np.array(rows), k).mean() == pytest.approx(np.mean(subsets))


def test_pass_at_k_does_not_overflow_and_refuses_too_large_k():
    correct = np.zeros((1, 4096), dtype=bool)
    correct[0, 0] = True
    assert pass_by_problem(correct, 2048).mean() == pytest.approx(0.5)
    with pytest.raises(ValueError, match="pass@3 needs"):
        pass_by_problem(np.ones((2, 2), dtype=bool), 3)


def test_maj_at_k_by_hand():
    answers = [
        ["1", "2", "2"],
        ["1", "1", "2"],
        [None, None, "3"],
        ["1/2", "0.5", "2"],
        [None, None, None],
        ["1", "2", "2"],
    ]
    right = [[1, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 0], [0, 0, 0], [0, 1, 1]]
    assert maj_by_problem(answers, np.array(right, dtype=bool)).mean() == pytest.approx(4 / 6)
    assert maj_by_problem([["1", "2", "2", "3", "1"]], np.array([[1, 0, 0, 0, 1]], dtype=bool)).mean() == 0.5


def test_paired_difference_by_hand():
    first = np.array([[0, 0], [1, 0], [1, 1], [1, 1]], dtype=bool)
    second = np.array([[1, 0], [1, 1], [1, 1], [1, 1]], dtype=bool)
    # Differences 0.5, 0.5, 0, 0: mean 1/4, sd 0.288675, t(3) = 3.182446
    estimate = paired_difference(first, second)
    assert estimate.value == 0.25
    assert estimate.value - estimate.low == pytest.approx(3.182446 * 0.288675 / 2, abs=1e-4)
    assert estimate.high == pytest.approx(0.25 + 3.182446 * 0.288675 / 2, abs=1e-4)
    with pytest.raises(ValueError, match="same problems"):
        paired_difference(first, second[:2])


def test_equal_verdicts_do_not_prove_that_nothing_changed():
    same = np.zeros((30, 1), dtype=bool)
    estimate = paired_difference(same, same)
    assert estimate.low < -0.05 and estimate.value == 0 and estimate.high > 0.05


POPULATIONS = [(0.3, 2.7), (0.2, 0.8), (1, 1), (0.5, 0.5), (3, 1)]  # Beta distributions of the problems' difficulty


@pytest.mark.slow
@pytest.mark.parametrize(("problems", "repeats"), [(30, 1), (30, 4), (30, 32), (40, 8), (500, 1), (500, 4)])
def test_interval_covers_the_true_accuracy(problems, repeats):
    random = np.random.default_rng(problems * 100 + repeats)
    covered = []
    for a, b in POPULATIONS:
        hits = []
        for _ in range(600):
            chance = random.beta(a, b, (problems, 1))
            estimate = avg_at_k(random.random((problems, repeats)) < chance)
            hits.append(estimate.low <= a / (a + b) <= estimate.high)
        covered.append(np.mean(hits))
    assert 0.93 <= np.mean(covered) <= 0.97
    assert min(covered) > 0.915 and max(covered) < 0.985  # one population: also the noise of 600 draws


@pytest.mark.slow
@pytest.mark.parametrize(("problems", "repeats"), [(30, 1), (30, 16), (200, 4), (500, 1)])
def test_paired_interval_covers_the_true_difference(problems, repeats):
    random = np.random.default_rng(problems * 100 + repeats)
    hits = []
    for _ in range(2500):
        before = random.beta(0.5, 0.8, (problems, 1))
        after = before + (1 - before) * 0.2  # every problem becomes easier by a fifth of what is missing
        estimate = paired_difference(
            random.random((problems, repeats)) < before, random.random((problems, repeats)) < after
        )
        hits.append(estimate.low <= 0.2 * (1 - 0.5 / 1.3) <= estimate.high)
    assert 0.93 <= np.mean(hits) <= 0.97


def test_independent_difference_is_newcombes():
    """Newcombe 1998, table II, row (a), method 10: 56/70 less 48/80 is 0.2000 [0.0524, 0.3339]."""

    def wilson(right, n):
        z, p = 1.959964, right / n
        middle, half = (
            (p + z * z / 2 / n) / (1 + z * z / n),
            z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / 4 / n**2),
        )
        return statistics.Estimate(p, middle - half, middle + half)

    difference = statistics.independent_difference(wilson(48, 80), wilson(56, 70))
    assert difference == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)
    assert statistics.independent_difference(wilson(56, 70), wilson(48, 80)) == pytest.approx(
        (-0.2, -0.3339, -0.0524), abs=1e-4
    )


def test_ties_are_broken_by_chance_or_by_the_first_answer():
    answers = [["5", "7", "7", "5"], ["7", "5", "5", "7"], [None, "5", "7", None]]
    right = np.array([[answer == "7" for answer in row] for row in answers])
    assert maj_by_problem(answers, right).tolist() == [0.5, 0.5, 0.5]
    assert maj_by_problem(answers, right, "first").tolist() == [0.0, 1.0, 0.0]
    for row, expected in zip(answers[:2], ("5", "7"), strict=True):  # as the harnesses that take the first one
        assert Counter(row).most_common(1)[0][0] == expected
    with pytest.raises(ValueError, match="chance, first"):
        maj_by_problem(answers, right, "last")
