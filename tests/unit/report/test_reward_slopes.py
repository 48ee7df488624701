"""What an error in a reward costs: slopes and points come back from gains of the shape that trainings have."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.statistics.mean_intervals import linear_ratio
from studies.reward_accuracy.gain_fit import Knee, fit, knee

X = {"bias_squared": np.array([0, 0.1, 0.3, 0.25, 0, 0]), "variance": np.array([0, 0, 0, 0.25, 0.25, 1.0])}
SLOPES = {"bias_squared": -0.8, "variance": -0.15}


def trainings(
    rng: np.random.Generator, levels: np.ndarray, seeds: int = 8, problems: int = 60
) -> list[list[np.ndarray]]:
    """Gains of settings with these means: a spread over seeds, over problems, and what a setting does to a problem."""
    of_problem = rng.normal(0, 0.2, problems)
    return [
        [
            level + of_problem + rng.normal(0, 0.05, problems) + rng.normal(0, 0.03, (seeds, 1))
            + rng.normal(0, 0.3, (seeds, problems))
        ]
        for level in levels
    ]  # fmt: skip


def planted() -> np.ndarray:
    return np.asarray(0.5 + sum(SLOPES[name] * X[name] for name in SLOPES))


def test_planted_slopes_are_found_exactly_without_noise() -> None:
    gains = [[np.full((3, 4), level)] for level in planted()]
    fitted = fit(gains, X)
    assert (
        fitted
        and fitted.settings == 6
        and fitted.explained == pytest.approx(1)
        and fitted.intercept == pytest.approx(0.5)
    )
    assert {name: slope.value for name, slope in fitted.slopes.items()} == pytest.approx(SLOPES)


@pytest.mark.long
@pytest.mark.slow
def test_the_intervals_of_slopes_cover_about_as_often_as_they_say() -> None:
    rng, times = np.random.default_rng(5), 400
    covered = dict.fromkeys(SLOPES, 0)
    for _ in range(times):
        fitted = fit(trainings(rng, planted()), X)
        assert fitted
        for name, slope in fitted.slopes.items():
            covered[name] += slope.low <= SLOPES[name] <= slope.high
    # 0.95 less four standard errors; above, half-widths in quadrature cover a little more than they say
    for name, hits in covered.items():
        assert 0.95 - 4 * math.sqrt(0.95 * 0.05 / times) <= hits / times <= 0.995, name


@pytest.mark.slow
def test_no_slope_is_seen_where_there_is_none() -> None:
    rng = np.random.default_rng(6)
    false = 0
    for _ in range(200):
        fitted = fit(trainings(rng, np.full(6, 0.5)), X)
        assert fitted
        false += not fitted.slopes["bias_squared"].low <= 0 <= fitted.slopes["bias_squared"].high
    assert false / 200 <= 0.05 + 4 * math.sqrt(0.95 * 0.05 / 200)


def test_what_cannot_be_fitted_is_none() -> None:
    gains = [[np.full((3, 4), level)] for level in (0.5, 0.4, 0.3)]
    zero, steps = np.zeros(3), np.array([0, 0.1, 0.2])
    assert fit(gains, {"bias_squared": zero}) is None
    assert fit(gains, {"bias_squared": steps, "variance": 2 * steps}) is None  # they cannot be told apart
    assert fit(gains, {"bias_squared": steps, "variance": steps**2}) is None  # as many numbers as settings
    alone = fit(gains, {"bias_squared": steps, "variance": zero})
    assert alone and set(alone.slopes) == {"bias_squared"} and alone.slopes["bias_squared"].value == pytest.approx(-1)


def test_a_line_says_which_setting_it_hangs_on_and_how_its_slopes_compare() -> None:
    rng, bias, variance = np.random.default_rng(0), np.array([0, 0.1, 0, 0.1, 0.05]), np.array([0, 0, 0.1, 0.1, 0.02])
    gains = [trainings(rng, np.array([0.5 - 4 * b - 1 * v]))[0] for b, v in zip(bias, variance, strict=True)]
    fitted = fit(gains, {"bias": bias, "variance": variance})
    assert fitted and fitted.ratio and fitted.ratio.low < 4 < fitted.ratio.high < math.inf and fitted.leverage < 0.8
    far = fit(gains, {"bias": np.array([0, 0, 0.01, 0.01, 1.0])})
    assert far and (far.hangs_on, round(far.leverage, 2), far.ratio) == (4, 1.0, None)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([0.5, 0.5, 0.2, 0.1], Knee(1, False)),
        ([0.5, 0.2, 0.5, 0.1], Knee(0, False)),  # a later one that keeps the gain does not count
        ([0.2, 0.2, 0.1, 0.0], Knee(None, False)),
        ([0.5, 0.5, 0.5, 0.5], Knee(3, True)),
    ],
)
def test_the_point_is_found_where_it_was_planted(levels: list[float], expected: Knee) -> None:
    rng, errors = np.random.default_rng(1), [0.4, 0.1, 0.3, 0.2]
    exact = trainings(rng, np.array([0.5]))[0]
    ordered = [levels[index] for index in np.argsort(np.argsort(errors))]  # levels are by rising error
    gains = [[part + level - 0.5 for part in exact] for level in ordered]
    point = knee(exact, gains, errors)
    by_error = np.argsort(errors)
    index = None if expected.enough is None else int(by_error[expected.enough])
    assert point == Knee(index, expected.all_kept)


def test_without_a_gain_there_is_nothing_to_keep() -> None:
    flat = trainings(np.random.default_rng(2), np.array([0.0]))[0]
    assert knee(flat, [flat], [0.1]) is None and knee(flat, [], []) is None


def test_a_share_of_what_varies_by_problem() -> None:
    shares = linear_ratio(np.array([2.0, 1.0, 0.0]), np.array([2.0, 2.0, 0.0]))
    assert shares.mean() == pytest.approx(3 / 4) and shares[2] == pytest.approx(3 / 4)
    assert np.isnan(linear_ratio(np.zeros(2), np.zeros(2))).all()
