"""The registry of published figures."""

import pytest

from analysis.compare_checkpoints import published_baselines
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
