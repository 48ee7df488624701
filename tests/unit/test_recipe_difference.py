"""Recipe against recipe: error rates over seeds and problems, components, independent implementations."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from analysis import hash_order
from analysis.compare_recipes import cheapest_design
from analysis.statistics import recipe_difference, recipe_power
from tests.unit.graded_samples import sample
from tests.user_errors import refused


def recipe(random, chance, seeds, k, spread, gain=0.0):
    """Runs of one recipe: every problem's chance moves by the run's own shift, of this standard deviation."""
    shifts = random.normal(gain, spread, seeds)
    return [random.random((len(chance), k)) < np.clip(chance + shift, 0, 1)[:, None] for shift in shifts]


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 0.015, 0.03])
@pytest.mark.parametrize("seeds", [2, 6])
def test_the_same_recipe_is_better_than_itself_in_five_percent_at_most(spread, seeds):
    random, hits, agree = np.random.default_rng(int(1000 * spread) + seeds), [], []
    for _ in range(150):
        chance = random.uniform(0.2, 0.8, 100)
        a, b = (recipe(random, chance, seeds, 4, spread) for _ in "ab")
        (line,) = recipe_difference.compare({"x": a}, {"x": b})
        hits.append(line.verdict != "cannot tell")
        agree.append((line.welch.p_value <= 0.05) == (line.crossed.p_value <= 0.05))
    assert np.mean(hits) <= 0.05 + 2 * (0.05 * 0.95 / 150) ** 0.5
    assert np.mean(agree) >= 0.9


@pytest.mark.slow
def test_the_detectable_difference_is_found_in_80_percent():
    random, found_better = np.random.default_rng(3), []
    parts = recipe_difference.Components(0.0, 0.0, 0.02**2, 0.0, 0.2)
    stated = recipe_power.detectable(cheapest_design.expected_noise(parts, 5, 200, 4), 0.05)
    for _ in range(300):
        chance = random.uniform(0.3, 0.7, 200)  # p(1-p) is about 0.24 on average
        a, b = recipe(random, chance, 5, 4, 0.02), recipe(random, chance, 5, 4, 0.02, stated)
        found_better.append(recipe_difference.compare({"x": a}, {"x": b})[0].verdict == "B is better")
    assert np.mean(found_better) == pytest.approx(0.8, abs=0.08)


@pytest.mark.parametrize("seeds", [(2, 2), (2, 3), (2, 10), (3, 3), (5, 5)])
def test_what_is_printed_as_detectable_is_found_in_80_percent(seeds):
    """The printed number follows from the spread of these seeds; the true one is another."""
    random, alpha = np.random.default_rng(5), 0.05 / recipe_power.penalty(min(seeds))
    of_spread = recipe_power.detectable(recipe_power.Noise(seeds, 1.0, 0.0, 100.0, estimated=True), 0.05)
    first, again = ([random.standard_normal((4000, count)) for count in seeds] for _ in range(2))
    df = [count - 1 for count in seeds]
    spread = sum(side.var(axis=1, ddof=1) * own for side, own in zip(first, df, strict=True)) / sum(df)
    again[1] += of_spread * np.sqrt(spread)[:, None]
    tests = [stats.ttest_ind(again[1], again[0], axis=1, equal_var=equal) for equal in (True, False)]
    significant = np.all([(test.pvalue <= alpha) & (test.statistic > 0) for test in tests], axis=0)
    assert significant.mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("is_paired", [False, True])
def test_equal_recipes_have_a_detectable_difference_of_the_size_of_their_intervals(is_paired):
    """Half of them have no spread over problems beside that of the seeds, by its estimate."""
    random = np.random.default_rng(7)
    for _ in range(20):
        chance = random.uniform(0.2, 0.8, 100)
        a, b = (recipe(random, chance, 6, 4, 0.02) for _ in "ab")
        for line in recipe_difference.compare({"x": a, "y": b}, {"x": b, "y": a}, paired=is_paired):
            tests = (line.welch, line.crossed, line.these_seeds)
            half = max(test.difference.high - test.difference.value for test in tests)
            assert half < line.detectable < 4 * half


def test_seeds_that_are_alike_by_luck_decide_nothing():
    """All seeds of a side solve as many problems, so that the tests over seeds see no spread at all."""
    problems = np.arange(100)[:, None]
    a = [problems < 50, problems >= 50]
    b = [problems < 51, problems >= 49]
    (line,) = recipe_difference.compare({"x": a}, {"x": b})
    assert line.welch.p_value == line.crossed.p_value == 0.0
    assert line.verdict == "cannot tell" and line.p_value == pytest.approx(stats.ttest_rel(
        np.mean(b, axis=0).ravel(), np.mean(a, axis=0).ravel()).pvalue)  # fmt: skip


@pytest.mark.parametrize("seeds", [(2, 2), (2, 4), (3, 3)])
def test_the_interval_has_zero_just_where_nothing_is_found(seeds):
    random = np.random.default_rng(sum(seeds))
    for spread, gap in itertools.product((0.0, 0.01, 0.03), np.linspace(0, 0.15, 16)):
        chance = random.uniform(0.2, 0.8, 60)
        a, b = recipe(random, chance, seeds[0], 4, spread), recipe(random, chance, seeds[1], 4, spread, gap)
        (line,) = recipe_difference.compare({"x": a}, {"x": b})
        low, high = line.interval()[1:]
        assert (line.p_value <= 0.05) == (not low <= 0 <= high)


def test_half_of_a_cluster_is_in_no_half_alone():
    rows = pd.DataFrame(
        {"problem_id": [f"p{i}" for i in range(40)], "cluster": [f"c{i // 4}" for i in range(20)] + [None] * 20}
    )
    halves = hash_order.halves(rows)
    assert all(len(set(halves[start : start + 4])) == 1 for start in range(0, 20, 4)) and set(halves) == {0, 1}
    assert list(halves[20:]) == list(hash_order.halves(rows[["problem_id"]])[20:])


def test_without_problem_effects_welchs_test_is_scipys():
    random = np.random.default_rng(4)
    one, two = random.normal(0.4, 0.02, (4, 1)), random.normal(0.45, 0.05, (6, 1))
    test = recipe_difference._satterthwaite_test(
        float(two.mean() - one.mean()), recipe_difference._seeds_alone([one, two], False)
    )
    expected = stats.ttest_ind(two.ravel(), one.ravel(), equal_var=False)
    assert (test.p_value, test.df) == pytest.approx((expected.pvalue, expected.df))
    pooled = recipe_difference._satterthwaite_test(
        float(two.mean() - one.mean()), recipe_difference._seeds_alone([one, two], True)
    )
    assert pooled.p_value == pytest.approx(stats.ttest_ind(two.ravel(), one.ravel()).pvalue)


@pytest.mark.slow
def test_crossed_effects_are_those_of_reml():
    """The restricted likelihood of all observations, maximised by scipy over the four variances."""
    random = np.random.default_rng(5)
    n, sizes = 15, (3, 4)
    problem, own = random.normal(0.5, 0.2, n), random.normal(0, 0.1, (2, n))
    sides = [
        problem + own[r] + random.normal(0, 0.08, (size, 1)) + random.normal(0, 0.1, (size, n))
        for r, size in enumerate(sizes)
    ]
    seeds = np.repeat(np.arange(sum(sizes)), n)
    which, problems = (seeds >= sizes[0]).astype(int), np.tile(np.arange(n), sum(sizes))
    y, x = np.concatenate([side.ravel() for side in sides]), np.column_stack([np.ones(len(seeds)), which])
    groups = [problems, problems + n * which, seeds, np.arange(len(seeds))]
    blocks = [(group[:, None] == group).astype(float) for group in groups]

    def fit(logs):
        inverse = np.linalg.inv(sum(np.exp(log) * block for log, block in zip(logs, blocks, strict=True)))
        return inverse, np.linalg.inv(x.T @ inverse @ x)

    def loss(logs):
        inverse, covariance = fit(logs)
        residual = y - x @ (covariance @ x.T @ inverse @ y)
        return (residual @ inverse @ residual - np.linalg.slogdet(inverse)[1] - np.linalg.slogdet(covariance)[1]) / 2

    best = optimize.minimize(loss, np.log([0.04, 0.01, 0.006, 0.01]), method="Nelder-Mead", options={"xatol": 1e-3})
    test = recipe_difference._satterthwaite_test(
        float(sides[1].mean() - sides[0].mean()), recipe_difference._crossed_variances(sides)
    )
    assert test.error == pytest.approx(fit(best.x)[1][1, 1] ** 0.5, rel=0.01)


def test_components_are_recovered():
    random = np.random.default_rng(6)
    n, k, seeds = 3000, 8, 30
    problem, own = random.uniform(0.35, 0.65, n), random.normal(0, 0.04, (2, n))
    sides = [
        [
            random.random((n, k)) < (problem + own[r] + shift + random.normal(0, 0.05, n))[:, None]
            for shift in random.normal(0, 0.03, seeds)
        ]
        for r in range(2)
    ]
    parts = recipe_difference.components(*sides)
    assert parts.problem == pytest.approx(0.3**2 / 12, rel=0.1)
    assert parts.recipe_problem == pytest.approx(0.04**2, rel=0.25)
    assert parts.seed == pytest.approx(0.03**2, rel=0.5)
    assert parts.seed_problem == pytest.approx(0.05**2, rel=0.2)
    assert parts.sampling == pytest.approx(0.24, rel=0.03)
    assert recipe_difference.components(*[[run[:, :1] for run in side] for side in sides]) is None


@pytest.mark.slow
def test_the_cheapest_plan_follows_the_costs():
    parts = recipe_difference.Components(0.1, 0.001, 0.0004, 0.001, 0.2)
    dear_training = cheapest_design.cheapest(parts, 500, 0.02, (1000.0, 1e-5), 0.05)
    dear_samples = cheapest_design.cheapest(parts, 500, 0.02, (1.0, 1.0), 0.05)
    assert max(dear_training.detectable, dear_samples.detectable) <= 0.02
    assert dear_training.seeds < dear_samples.seeds
    assert dear_samples.problems * dear_samples.repeats < dear_training.problems * dear_training.repeats
    assert cheapest_design.cheapest(parts._replace(seed=1.0), 500, 0.02, (1.0, 1.0), 0.05) is None


def test_copied_answers_are_refused_by_the_test_itself():
    run = sample(60, 4, 0.5, 0)
    with refused("repeated-training"):
        recipe_difference.compare({"x": [run, run, sample(60, 4, 0.5, 1)]}, {"x": recipe_of_sevens()})
    solved = np.ones((60, 4), bool)  # nothing says that these are copies
    recipe_difference.compare({"x": [solved, solved]}, {"x": recipe_of_sevens()})


def recipe_of_sevens():
    return [sample(60, 4, 0.7, seed) for seed in (7, 77)]


@pytest.mark.slow
def test_paired_seeds_see_more_where_seeds_are_alike(tmp_path):
    random, better = np.random.default_rng(8), {True: 0, False: 0}
    for _ in range(40):
        chance, shifts = random.uniform(0.3, 0.7, 300), random.normal(0, 0.03, 4)
        a, b = ([random.random((300, 4)) < (chance + s + gain)[:, None] for s in shifts] for gain in (0.0, 0.05))
        for paired in better:
            better[paired] += recipe_difference.compare({"x": a}, {"x": b}, paired=paired)[0].verdict == "B is better"
    assert better[True] >= better[False] + 10
    assert recipe_difference.seed_correlation({"x": a}, {"x": b}) > 0.5
    (line,) = recipe_difference.compare({"x": a}, {"x": b}, paired=True)
    gaps = np.array([two.mean() - one.mean() for one, two in zip(a, b, strict=True)])
    assert line.welch.p_value == pytest.approx(line.crossed.p_value)
    assert line.welch.difference.value == pytest.approx(gaps.mean())
    assert line.welch.error >= gaps.std(ddof=1) / 2 - 1e-12  # and what the choice of problems adds
