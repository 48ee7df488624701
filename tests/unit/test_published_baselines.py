"""The registry of published figures."""

import numpy as np
import pytest

from analysis.compare_checkpoints import against_published, published_baselines
from system.errors import UserError
from tests.user_errors import refused


def test_every_row_is_there_and_in_range():
    known = published_baselines.load()
    assert sum(name.startswith("sober/") for name in known) == 66
    assert sum(name.startswith("report/") for name in known) == 21
    for row in known.values():
        assert row.source.startswith("https://") and row.scores
        assert all(0 <= f.accuracy <= 1 and 0 <= f.error < 0.1 for f in row.scores.values())


def test_a_row_as_printed():
    figure = published_baselines.find("sober/DeepSeek-R1-Distill-Qwen-1.5B").scores["aime24"]
    assert (figure.accuracy, figure.deviation, figure.problems) == pytest.approx((0.287, 0.048, 30))


def test_repeats_take_off_only_the_variance_within_problems():
    def error(repeats):
        return published_baselines.PublishedScore(0.5, 0.05, 30, repeats).error

    assert error(None) == error(1) == pytest.approx((0.25 / 30) ** 0.5)
    assert error(10) ** 2 == pytest.approx(0.25 / 30 - 0.05**2 * 0.9)
    assert published_baselines.PublishedScore(1.0, 0.01, 30, 4).error == pytest.approx(0.005)


@pytest.mark.parametrize("typed", ["sober/DeepSeek-R1-Distil-Qwen-1.5B", "deepseek-r1-distill-qwen1.5b"])
def test_a_typo_gets_the_nearest_names(typed):
    with pytest.raises(UserError) as error:
        published_baselines.find(typed)
    assert error.value.code == "unknown-name"
    assert "sober/DeepSeek-R1-Distill-Qwen-1.5B" in error.value.facts["nearest"]


def test_an_ambiguous_name_is_refused_with_both():
    with refused("ambiguous-name", matches=["report/openr1/GRPO-step100", "report/openr1-distill/GRPO-step100"]):
        published_baselines.find("GRPO-step100")


def test_search_by_words():
    assert published_baselines.search("report 7b-base simplerl", published_baselines.load()) == [
        "report/simplerl/Qwen2.5-Math-7B-Base"
    ]


def test_near_zero_few_right_answers_are_not_better_than_a_row_without_any():
    right = np.zeros((30, 64), bool)
    right[:9, 0] = True  # 9 of 1,920 beside 0 of 300: Fisher's exact test has p = 0.6
    row = published_baselines.PublishedScore(0.0, 0.0, 30, 10)
    full = published_baselines.PublishedScore(1.0, 0.0, 30, 10)
    for answers, score in ((right, row), (~right, full)):
        line = against_published._benchmark_result("x", answers, score, 0.05, 0.0, against_published.SAME)
        assert line.p_value > 0.2 and line.difference.low < 0 < line.difference.high
    right[:, :6] = True  # 10 % of all is more
    assert against_published._benchmark_result("x", right, row, 0.05, 0.0, against_published.SAME).p_value < 0.001
