"""The study of a random ε in the group advantage, against draws of the GSM8K notes' own formula."""

from __future__ import annotations

import numpy as np
import pytest

from studies.group_advantage.study import EPSILON, effect, groups, table


def drawn(rewards: list[float], draws: int = 40_000) -> np.ndarray:
    """The factor of the advantages for each drawn ε: the document's advantage over that without ε."""
    group, rng = np.asarray(rewards), np.random.default_rng(0)
    centred = group - group.mean()
    with_noise = centred[:, None] / (group.std(ddof=1) + EPSILON * rng.standard_normal(draws))
    largest = np.argmax(np.abs(centred))
    return np.asarray(with_noise[largest] / (centred[largest] / group.std(ddof=1)))


@pytest.mark.parametrize("name", groups())
def test_the_closed_form_is_that_of_the_draws(name: str) -> None:
    rewards = groups()[name]
    closed_form, factors = effect(rewards), drawn(rewards)
    assert np.mean(factors < 0) == pytest.approx(closed_form.turned, abs=0.01)
    assert effect([5 * reward for reward in rewards], 5 * EPSILON) == pytest.approx(
        (5 * closed_form.std, *closed_form[1:])
    )  # no unit
    if np.isfinite(closed_form.high) and closed_form.std > 5 * EPSILON:
        low, high = np.quantile(factors, [0.025, 0.975])
        assert (low, high) == pytest.approx((closed_form.low, closed_form.high), rel=0.02)


def test_small_differences_turn_around_and_large_ones_do_not() -> None:
    wrong_signs = table().display.set_index("group")["wrong sign"]
    assert wrong_signs["4 of 8 right, rewards ±1"] == "never"
    assert wrong_signs["8 alike, one with 1 more character after the last tag"] == "36 %"


def test_a_group_of_equal_rewards_is_refused() -> None:
    with pytest.raises(ValueError):
        effect([1.0, 1.0])
