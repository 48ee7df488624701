"""Always valid evidence: error rates under any number of looks, what is found, and sums computed by hand."""

import functools
import math

import numpy as np
import pytest

from analysis.compare_checkpoints import sequential
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from analysis.compare_checkpoints.sequential import Rules
from eval.statistics import e_process
from studies.sequential_sampling import study


def test_the_bets_by_hand() -> None:
    # Two problems, one gained, against a mean of 0: the bet l gives (1 + l)(1 + 0).
    gained = np.array([1.0, 0.0])
    assert math.exp(e_process.bounded(gained, 0.0, above=True)) == pytest.approx(np.mean(1 + e_process.BETS))
    # Against a mean of 1/2: the relative gains are 2 / 1.5 - 1 = 1/3 and 1 / 1.5 - 1 = -1/3.
    wanted = np.mean((1 + e_process.BETS / 3) * (1 - e_process.BETS / 3))
    assert math.exp(e_process.bounded(gained, 0.5, above=True)) == pytest.approx(wanted)
    # One problem differs by 1, so the root of the sum of squares is 1, and l is c.
    wanted = np.mean(2 / (1 + np.exp(-2 * e_process.SCALES)))
    assert math.exp(e_process.symmetric(gained, above=True)) == pytest.approx(wanted)
    assert math.exp(e_process.over_rounds([math.log(3), math.log(5)], 4)) == pytest.approx(2)


@pytest.mark.parametrize("above", [True, False])
def test_the_expectation_of_a_bet_is_one_where_there_is_nothing_to_find(above: bool) -> None:
    # All outcomes of four problems: the expectation is a finite sum.
    values, chances = np.array([-1.0, 0.0, 1.0]), np.array([0.3, 0.4, 0.3])
    outcomes = np.array(np.meshgrid(*[range(3)] * 4)).reshape(4, -1).T
    for bet in (e_process.symmetric, functools.partial(e_process.bounded, mean=0.0)):
        total = sum(np.prod(chances[outcome]) * math.exp(bet(values[outcome], above=above)) for outcome in outcomes)
        assert total == pytest.approx(1)


def test_the_bounded_bet_needs_no_symmetry() -> None:
    # Many small gains and few large losses, with a mean of 0, on four problems.
    values, chances = np.array([-0.75, 0.25]), np.array([0.25, 0.75])
    outcomes = np.array(np.meshgrid(*[range(2)] * 4)).reshape(4, -1).T
    for above in (True, False):
        total = sum(
            np.prod(chances[outcome]) * math.exp(e_process.bounded(values[outcome], 0.0, above=above))
            for outcome in outcomes
        )
        assert total == pytest.approx(1)


def false_verdicts(most: int, mixed: bool, times: int = 200) -> float:
    """Share of comparisons of equal models on 40 problems where any look up to `most` repeats finds a difference."""
    random, hits = np.random.default_rng(5), 0
    for _ in range(times):
        first = random.beta(0.5, 0.5, 40)
        second = 0.5 * first + 0.5 * random.beta(0.5, 0.5, 40) if mixed else first
        gaps = (random.random((40, most)) < second[:, None]) * 1.0 - (random.random((40, most)) < first[:, None])
        counts = e_process.rounds_up_to(most)
        looks = [gaps[:, :k].mean(axis=1) for k in counts]
        hits += any(e_process.p_value(looks[:i], looks[:i], len(counts)) <= 0.05 for i in range(1, len(looks) + 1))
    return hits / times


@pytest.mark.slow
@pytest.mark.parametrize("mixed", [False, True])
def test_looking_after_every_round_keeps_the_error_rate(mixed: bool) -> None:
    assert false_verdicts(32, mixed) <= 0.05


def test_the_interval_shrinks_with_rounds_and_ends_where_the_evidence_does() -> None:
    random = np.random.default_rng(0)
    gaps = (random.random((500, 16)) < 0.7) * 1.0 - (random.random((500, 16)) < 0.4)
    looks = [gaps[:, :k].mean(axis=1) for k in (1, 2, 4, 8, 16)]
    first, last = e_process.interval(looks[:1], 5), e_process.interval(looks, 5)
    assert first.low < last.low < last.value < last.high < first.high
    for mean, above in ((last.low, True), (last.high, False)):
        won = e_process.over_rounds([e_process.bounded(look, mean, above=above) for look in looks], 5)
        assert won == pytest.approx(math.log(2 / 0.05), abs=0.01)
    assert e_process.interval([np.array([-1.0])], 5).low == -1  # no mean below is excluded


@pytest.mark.parametrize(("most", "rounds"), [(2, [1, 2]), (5, [1, 2, 4, 5]), (16, [1, 2, 4, 8, 16])])
def test_rounds_double_up_to_the_most(most: int, rounds: list[int]) -> None:
    assert e_process.rounds_up_to(most) == rounds


def answers(gain: float, repeats: int, ungradable: float = 0.0) -> PairedAnswers:
    random = np.random.default_rng(3)
    sides = [random.random((200, repeats)) < 0.4 + more for more in (0.0, gain)]
    lost = random.random((200, repeats)) < ungradable
    return PairedAnswers(sides[0] & ~lost, sides[1], lost, np.zeros_like(lost))


def test_a_large_gain_is_found_in_the_first_round_and_none_is_not_found() -> None:
    rules = Rules(16)
    assert sequential.judge_benchmark("sums", answers(0.4, 1), rules).p_value < 0.001
    assert sequential.judge_benchmark("sums", answers(0.0, 16), rules).p_value > 0.05
    # As many ungradable answers of the baseline as there are gains could be right: no verdict then.
    assert sequential.judge_benchmark("sums", answers(0.1, 16), rules).p_value < 0.05
    assert sequential.judge_benchmark("sums", answers(0.1, 16, ungradable=0.2), rules).p_value > 0.05


def test_a_loss_within_the_margin_is_not_worse() -> None:
    losing = answers(-0.1, 16)
    assert sequential.judge_benchmark("sums", losing, Rules(16)).p_value < 0.05
    within = sequential.judge_benchmark("sums", losing, Rules(16, margin=0.2))
    assert within.p_value > 0.05 and within.margin_excluded


@pytest.mark.slow
def test_the_simulation_saves_most_where_the_difference_is_large() -> None:
    table = study.table(times=5, most=8, seed=0).set_index("true difference")
    drawn = table["completions drawn in rounds (% of fixed)"].astype(float)
    assert drawn["none"] > 90 and drawn["+20 points"] <= 40
    assert float(table.loc["+20 points", "benchmarks called better, rounds (%)"]) > 80
