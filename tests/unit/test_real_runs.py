"""The gate on real trainings: what is counted, on trainings made up here."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.compare_recipes.training_runs import CorrectAnswers
from studies.gate_validation import real_runs
from tests.user_errors import refused


def runs(accuracies: list[float], seed: int) -> CorrectAnswers:
    random = np.random.default_rng(seed)
    return {"arithmetic": [random.random((60, 4)) < accuracy for accuracy in accuracies]}


def test_all_splits_are_tried_once() -> None:
    halves = list(real_runs._halves(6))
    assert len(halves) == 10 == len({frozenset(map(frozenset, pair)) for pair in halves})
    assert all(sorted([*one, *two]) == list(range(6)) for one, two in halves)
    assert real_runs.splits(runs([0.5] * 6, 0)).tried == 10


def test_a_false_verdict_is_counted() -> None:
    """Three good and three bad seeds: the one split that parts them is the one with a verdict."""
    assert real_runs.splits(runs([0.2, 0.2, 0.2, 0.8, 0.8, 0.8], 1)) == (10, 1)


def test_an_odd_number_of_seeds_is_refused() -> None:
    with refused("odd-seeds"):
        real_runs.splits(runs([0.5] * 5, 0))


@pytest.mark.slow
def test_power_grows_with_the_gain_and_comes_near_what_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_runs, "MOST", 40)
    monkeypatch.setattr(real_runs, "GAINS", (0.02, 0.12))
    spread = [0.03 * step for step in (-1.5, -1, -0.5, -0.2, 0, 0, 0.2, 0.5, 1, 1.5)]
    table = real_runs.power(runs([0.5 + s for s in spread], 2), 0)
    predicted, counted = (table[f"{name} (%)"].astype(float) for name in ("predicted power", "verdicts"))
    assert predicted[0] < 20 and predicted[1] > 80
    assert (predicted - counted).abs().max() < 20


def test_a_planted_gain_is_that_of_the_accuracy() -> None:
    (before,) = runs([0.4], 0).values()
    (after,) = real_runs.with_gain(before, 0.3, np.random.default_rng(5))
    assert (after | before[0] == after).all() and abs(after.mean() - before[0].mean() - 0.3) < 0.08


def test_another_recipe_is_found_where_the_power_is_high() -> None:
    a, b = runs([0.4] * 4, 0), runs([0.8] * 4, 1)
    (row,) = real_runs.against(a, b).to_dict("records")
    assert row["verdict"] == "B is better" and float(row["predicted power (%)"]) > 95
