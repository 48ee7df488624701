"""The gate on real trainings: what is counted, on trainings made up here."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from analysis.gate import real_runs
from analysis.gate.recipe_runs import Runs
from contracts.errors import UserError


def runs(accuracies: list[float], seed: int) -> Runs:
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
    with pytest.raises(UserError, match="even number of seeds"):
        real_runs.splits(runs([0.5] * 5, 0))


def test_power_grows_with_seeds_and_comes_near_what_is_counted() -> None:
    spread = [0.05 * step for step in (-1.5, -1, -0.5, 0, 0, 0.5, 1, 1.5)]
    table = real_runs.power(
        runs([0.5 + s for s in spread], 2), runs([0.62 + s for s in itertools.islice(spread, 1, 7)], 3), 0
    )
    predicted = table["predicted power (%)"].astype(float)
    assert list(table["seeds a side"]) == [2, 3, 4, 5, 6]
    assert predicted.is_monotonic_increasing and predicted.iloc[0] < 60 < predicted.iloc[-1]
    assert abs(predicted.iloc[2] - float(table["verdicts (%)"].iloc[2])) < 35
