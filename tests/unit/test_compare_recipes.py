"""Recipes in folders: the command, which checkpoints and seeds it takes, what it refuses."""

import json
import shutil

import numpy as np
import pytest

from analysis import hash_order
from analysis.compare_checkpoints import graded_checkpoint
from analysis.compare_recipes import training_runs
from analysis.statistics import recipe_difference
from contracts import provenance
from tests.unit.graded_samples import folders, graded, process, sample, save
from tests.user_errors import printed_code, refused

MODULE = "analysis.compare_recipes"


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
