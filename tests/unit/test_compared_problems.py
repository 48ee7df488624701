"""Sides with other problems: what an accepted subset compares, and what is said where nothing is shared."""

import numpy as np
import pytest

from analysis.compare_checkpoints import comparison_output, graded_checkpoint, paired_comparison
from analysis.compare_recipes import training_runs
from tests.unit.graded_samples import folders, graded, read, sample, save
from tests.user_errors import refused


@pytest.mark.slow
def test_an_accepted_subset_is_compared_on_the_problems_of_both_sides(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(6):
        every = [f"p{i:04d}" for i in range(40)]
        whole = [graded(sample(40, 2, rate, seed)) for seed, rate in enumerate((0.4, 0.7))]
        chosen = [set(rng.permutation(every)[: rng.integers(15, 40)]) for _ in whole]
        shared = chosen[0] & chosen[1]
        old, new = (
            read(tmp_path, f"{number}-{side}", table[table["problem_id"].isin(ids)])
            for side, table, ids in zip("ab", whole, chosen, strict=True)
        )
        assert shared and chosen[0] != chosen[1]
        assert paired_comparison.compare(new, old).exit_status == 2
        accepted = paired_comparison.compare(new, old, accepted=["subset"])
        changed = comparison_output.all_changed_problems(accepted, new, old)["questions"]
        assert changed and {problem.problem_id for problem in changed} <= shared
        first, second = (
            read(tmp_path, f"{number}-{side}-shared", table[table["problem_id"].isin(shared)])
            for side, table in zip("ab", whole, strict=True)
        )
        assert accepted.lines == paired_comparison.compare(second, first).lines
        part = f"only the {len(shared)} of {len(chosen[0] | chosen[1])} problems"
        assert any(part in note for note in accepted.notes)
        assert not any("accepted" in note for note in accepted.notes)  # the same problems explain no difference


def test_sides_without_a_shared_problem_or_benchmark_say_so(tmp_path):
    whole = graded(sample(20, 2, 0.5, 0))
    early = whole["problem_id"] < "p0010"
    sides = [read(tmp_path, "early", whole[early]), read(tmp_path, "late", whole[~early])]
    for accepted in ([], ["subset"]):
        (line,) = paired_comparison.compare(*sides, accepted=accepted).lines
        assert line.reasons == ("the sides share no problem: the baseline has 10, the checkpoint 10",)
    other = read(tmp_path, "other", graded(sample(20, 2, 0.5, 0), "sums"))
    (note,) = paired_comparison.compare(other, sides[0]).notes
    assert "no benchmark in common" in note


def test_an_accepted_subset_leaves_the_problems_that_every_run_has(tmp_path):
    a, b = folders(tmp_path, "a", 2, 0.3), folders(tmp_path, "b", 2, 0.7)
    whole = training_runs.read_correct_answers([a, b])
    for folder, absent in ((a[1], 7), (b[0], 40)):
        step = folder / "step-10"
        table = graded_checkpoint.read(step).tables["questions"]
        save(step, table[table["problem_id"] != f"p{absent:04}"])
    with refused("not-comparable", benchmark="questions"):
        training_runs.read_correct_answers([a, b])
    for before, after in zip(whole, training_runs.read_correct_answers([a, b], accepted=["subset"]), strict=True):
        for one, other in zip(before["questions"], after["questions"], strict=True):
            assert np.array_equal(np.delete(one, [7, 40], axis=0), other)
