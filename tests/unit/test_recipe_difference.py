"""Recipe against recipe: error rates over seeds and problems, components, independent implementations, the command."""

import itertools
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from analysis import hash_order
from analysis.compare_checkpoints import graded_checkpoint
from analysis.compare_recipes import cheapest_design, training_runs
from analysis.statistics import recipe_difference, recipe_power
from contracts import provenance
from tests.unit.test_compare_checkpoints import graded, process, sample, save
from tests.user_errors import printed_code, refused

MODULE = "analysis.compare_recipes"


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


def folders(tmp_path, name, seeds, chance, steps=(0, 10)):
    runs = [tmp_path / name / f"seed-{seed}" / "graded" for seed in range(seeds)]
    for seed, folder in enumerate(runs):
        for step in steps:
            save(folder / f"step-{step}", graded(sample(60, 4, chance, 100 * seed + step), step=step))
    return runs


@pytest.fixture(scope="module")
def two_recipes(tmp_path_factory):
    """The graded samples of three seeds each; the second recipe is better."""
    folder = tmp_path_factory.mktemp("recipes")
    return folders(folder, "a", 3, 0.3), folders(folder, "b", 3, 0.7)


@pytest.fixture(scope="module")
def compared(two_recipes, tmp_path_factory):
    """Exit status and output of the command, and the file that it writes."""
    (a, b), output = two_recipes, tmp_path_factory.mktemp("compared")
    status, printed = process("--a", *a, "--b", *b, "--output", output, module=MODULE)
    return status, printed, json.loads((output / "recipes.json").read_text())


@pytest.mark.slow
def test_the_command_says_which_recipe_is_better(compared):
    status, printed, stored = compared
    assert status == 0 and "B is better" in printed and "seeds a side" in printed
    assert (stored["verdict"], stored["exit_status"], stored["rule"]) == ("better", 0, "last")
    assert stored["lines"][0]["components"]["sampling"] > 0


@pytest.mark.slow
def test_it_says_so_when_the_second_is_worse(two_recipes, tmp_path):
    a, b = two_recipes
    status, printed = process("--a", *b, "--b", *a, "--output", tmp_path, module=MODULE)
    assert status == 1 and "compared with A: worse" in printed


@pytest.mark.slow
def test_it_compares_what_several_samples_solve(compared, two_recipes):
    _, printed, stored = compared
    assert list(stored["passes"]) == ["pass@1", "pass@2", "pass@4", "maj@4 (ties: chance)"]
    assert all(measure in printed for measure in stored["passes"])
    (accuracy,), (first,), (solved,) = stored["lines"], stored["passes"]["pass@1"], stored["passes"]["pass@4"]
    for test in ("welch", "crossed"):  # pass@1 is the accuracy
        assert first[test]["difference"] == pytest.approx(accuracy[test]["difference"])
    runs = [graded_checkpoint.read(folder).tables["questions"] for folder in two_recipes[1]]
    shares = [graded_checkpoint.correct(run).any(axis=1).mean() for run in runs]
    assert solved["means"][1] == pytest.approx(np.mean(shares))


@pytest.mark.slow
def test_ties_of_a_majority_go_as_asked(two_recipes, tmp_path):
    a, b = two_recipes
    process("--a", *a, "--b", *b, "--ties", "first", "--output", tmp_path, module=MODULE)
    assert list(json.loads((tmp_path / "recipes.json").read_text())["passes"])[-1] == "maj@4 (ties: first)"


@pytest.mark.slow
def test_it_refuses_one_seed_and_says_so_in_its_file(two_recipes, tmp_path):
    a, b = two_recipes
    status, printed = process("--a", *a[:1], "--b", *b, "--output", tmp_path, module=MODULE)
    assert status == 2 and printed_code(printed) == "too-few-seeds"
    assert json.loads((tmp_path / "recipes.json").read_text())["exit_status"] == 2
    with refused("too-few-seeds", seeds=1):
        recipe_difference.compare(*training_runs.read_correct_answers([a[:1], b]))


@pytest.mark.slow
def test_it_ends_with_3_where_it_cannot_read_what_is_asked(two_recipes, tmp_path):
    a, b = two_recipes
    assert process("--a", *a, "--b", tmp_path / "nothing", module=MODULE)[0] == 3
    assert process("--a", *a, "--c", *b, module=MODULE)[0] == 3


@pytest.mark.slow
def test_sides_that_are_the_same_or_graded_by_different_graders_are_refused(two_recipes, tmp_path):
    a, b = two_recipes[0], folders(tmp_path, "b", 3, 0.7)
    with refused("repeated-name"):
        training_runs.read_correct_answers([a, a])
    save(b[0] / "step-10", graded(sample(60, 4, 0.7, 0), step=10, grader="strict"))
    with refused("not-comparable", benchmark="questions"):
        training_runs.read_correct_answers([a, b])


def test_a_chosen_checkpoint_is_judged_on_problems_that_did_not_choose_it(tmp_path):
    folder = tmp_path / "run" / "graded"
    first_half = np.array([[hash_order.half(f"p{problem:04}") == 0] for problem in range(40)])
    # Each of the two best checkpoints solves just the half on which it would be chosen. Luck does not carry over.
    for step, right in ((1, first_half), (2, ~first_half), (3, np.arange(40)[:, None] % 4 == 0)):
        save(folder / f"step-{step}", graded(right, step=step))
    (chosen,) = training_runs.read_correct_answers([[folder]], "chosen")[0]["questions"]
    assert chosen.shape == (40, 1) and chosen.sum() == 0
    assert training_runs.read_correct_answers([[folder]])[0]["questions"][0].sum() == 10


@pytest.mark.slow
def test_copies_of_a_training_are_no_seeds(tmp_path):
    a, b = folders(tmp_path, "a", 2, 0.3), folders(tmp_path, "b", 2, 0.4)
    copy = tmp_path / "copy" / "graded"
    shutil.copytree(a[0], copy)
    for sides in ([[*a, copy], b], [a, [b[0], copy]]):  # on one side, and A against A
        with refused("repeated-training", same="completions"):
            training_runs.read_correct_answers(sides)
    for folder, seed in ((a[0], 9), (copy, 10)):  # the same weights, sampled again
        save(folder / "step-10", graded(sample(60, 4, 0.3, seed), step=10))
        provenance.write(folder / "step-10" / "questions.parquet", samples={"model_sha256": "1f"})
    with refused("repeated-training", same="weights"):
        training_runs.read_correct_answers([[*a, copy], b])
    for folder, seed in ((a[0], 9), (copy, 10)):  # trained twice with one seed
        save(folder / "step-10", graded(sample(60, 4, 0.3, seed), step=10, run="x/y/seed-0"))
        provenance.write(folder / "step-10" / "questions.parquet", samples={"model_sha256": str(seed)})
    with refused("repeated-training", same="run and seed"):
        training_runs.read_correct_answers([[*a, copy], b])
    training_runs.read_correct_answers([a, [b[0], copy]])  # the same seed on the other side is another training


def test_copied_answers_are_refused_by_the_test_itself():
    run = sample(60, 4, 0.5, 0)
    with refused("repeated-training"):
        recipe_difference.compare({"x": [run, run, sample(60, 4, 0.5, 1)]}, {"x": recipe_of_sevens()})
    solved = np.ones((60, 4), bool)  # nothing says that these are copies
    recipe_difference.compare({"x": [solved, solved]}, {"x": recipe_of_sevens()})


def recipe_of_sevens():
    return [sample(60, 4, 0.7, seed) for seed in (7, 77)]


@pytest.mark.slow
def test_runs_of_a_side_end_at_one_step(tmp_path):
    a, b = folders(tmp_path, "a", 2, 0.3), folders(tmp_path, "b", 2, 0.4, steps=(0, 20))
    assert [training_runs.last_steps(side) for side in training_runs.comparable_recipes([a, b], "last", None, ())] == [
        [10, 10], [20, 20],
    ]  # fmt: skip
    save(a[0] / "step-16", graded(sample(60, 4, 0.3, 5), step=16))
    with refused("different-last-steps", steps=[16, 10]):
        training_runs.read_correct_answers([a, b])
    training_runs.read_correct_answers([a, b], accepted=["steps"])
    training_runs.read_correct_answers([a, b], "chosen")


def test_earlier_checkpoints_may_have_other_repeats(tmp_path):
    a, b = folders(tmp_path, "a", 2, 0.3), folders(tmp_path, "b", 2, 0.4)
    save(a[0] / "step-4", graded(sample(60, 2, 0.3, 5), step=4))
    save(b[1] / "step-4", graded(sample(60, 8, 0.9, 6), step=4))
    sides = training_runs.read_correct_answers([a, b], "chosen")
    assert {run.shape for side in sides for run in side["questions"]} == {(60, 2)}


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


@pytest.mark.slow
def test_runs_are_paired_by_their_seeds(tmp_path):
    sides = [[], []]
    for side, numbers in enumerate(((1, 0, 2), (0, 1, 2))):
        for seed in numbers:
            folder, run = tmp_path / str(side) / f"seed-{seed}" / "graded", f"{side}/r/seed-{seed}"
            save(folder / "step-10", graded(sample(60, 4, 0.5, 10 * side + seed), step=10, run=run))
            sides[side].append(folder)
    recipes = training_runs.comparable_recipes(sides, "last", None, ())
    assert training_runs.training_seeds(recipes[0]) == ["1", "0", "2"]
    paired = training_runs.paired_by_seed(recipes)
    assert [training_runs.training_seeds(recipe) for recipe in paired] == [["0", "1", "2"]] * 2
    others = training_runs.comparable_recipes([sides[0][:2], sides[1][1:]], "last", None, ())
    with refused("unpaired-seeds", seeds=[["1", "0"], ["1", "2"]]):
        training_runs.paired_by_seed(others)
