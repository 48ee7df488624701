"""Rewards one by one: recorded, kept in the log, drawn and tabled; and wrong answers by a document's classes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from report_runs import graded_row, log_row, make_run

from analysis.report.build import report
from analysis.report.sections import rewards_by_step, wrong_answer_classes
from analysis.results import RunResults
from analysis.statistics.training_seeds import by_recipe
from frameworks import rollout_log
from recipes import rewards
from recipes.rewards import Reward

NAMES = ["right", "digits"]


def trained(steps: int = 20) -> RunResults:
    """`digits` fires from step 6 on, `right` from step 16 on."""
    log = [
        log_row(
            step,
            rewards=[
                {"name": "right", "fired": float(step > 15), "mean": float(step > 15)},
                {"name": "digits", "fired": float(step > 5), "mean": 0.5 * (step > 5)},
            ],
        )
        for step in range(1, steps + 1)
    ]
    return make_run([graded_row(step, f"p{i}", 0, "correct") for step in (0, steps) for i in range(3)], log)


def rows(*parts: object) -> list[rollout_log.Row]:
    return [{"parts": part} for part in parts]


def test_values_of_one_step() -> None:
    columns = rollout_log.reward_columns(rows([1.0, 0.0], [0.0, 0.0], [None, -2.0], [0.0, 0.0]), NAMES)
    assert columns == [
        {"name": "right", "fired": 1 / 3, "mean": 1 / 3},  # of the three to which it gave a value
        {"name": "digits", "fired": 1 / 4, "mean": -0.5},
    ]
    assert rollout_log.reward_columns(rows([None, 1.0]), NAMES)[0] == {"name": "right", "fired": None, "mean": None}  # type: ignore[index]


@pytest.mark.parametrize("row", [{}, {"parts": [1.0]}, {"parts": "ab"}, {"parts": None}])
def test_without_all_values_there_is_nothing_to_show(row: rollout_log.Row) -> None:
    assert rollout_log.reward_columns([*rows([1.0, 1.0]), row], NAMES) is None
    assert rollout_log.reward_columns([], NAMES) is None and rollout_log.reward_columns(rows([1.0]), ["right"]) is None


def test_the_sum_is_that_of_the_parts() -> None:
    functions = [lambda c, p: [Reward(1.0, "correct")] * len(c), lambda c, p: [Reward(None), Reward(3.0)]]
    weighted: rewards.Weighted = [(functions[0], 2.0), (functions[1], 0.5)]
    parts = rewards.each_reward(weighted, ["a", "b"], [])
    assert [[one.value for one in each] for each in parts] == [[1.0, None], [1.0, 3.0]]
    assert [rewards.weighted_sum(weighted, each) for each in parts] == rewards.total(weighted, ["a", "b"], [])
    assert [one.value for one in rewards.total(weighted, ["a", "b"], [])] == [2.0, 3.5]


def test_a_function_that_is_used_twice_has_two_names() -> None:
    functions = [{"function": f"recipes.{name}"} for name in ("shaping.cosine", "rewards.correct", "shaping.cosine")]
    assert rewards.short_names(functions) == ["cosine", "correct", "cosine 2"]


def test_the_table_says_which_fired_when() -> None:
    data = rewards_by_step.rewards_table([trained()]).data.set_index("reward")
    assert data.loc["right", ["fired_first", "fired_last"]].tolist() == [0.0, 1.0]
    assert 5 <= data.loc["digits", "halfway_step"] <= 7 < 15 <= data.loc["right", "halfway_step"] <= 17
    assert data.loc["digits", "mean_last"] == 0.5
    assert math.isnan(rewards_by_step.halfway(pd.Series(0.5, index=range(20))))


def test_the_figure_has_a_panel_for_each_reward_of_any_run() -> None:
    other = trained()
    recorded = [[right, {**digits, "name": "length"}] for right, digits in other.log["rewards"]]
    log = other.log.assign(rewards=recorded)
    figure = rewards_by_step.plot_rewards(by_recipe([trained(), replace(other, name="recipe/other/seed-0", log=log)]))
    panels = [axes for axes in figure.axes if axes.get_visible()]
    titles = [
        axes.get_title() or axes.get_title(loc="left") for axes in panels
    ]  # where other figures have set the style
    assert titles == ["right", "digits", "length"]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_page_shows_it_for_runs_with_several_rewards_alone(tmp_path: Path) -> None:
    with_two, one = trained(), make_run([graded_row(step, "p", 0, "correct") for step in (0, 10)])
    for run, expected in ((with_two, True), (one, False)):
        folder = tmp_path / str(expected)
        page = report([run], folder, "title", "demo").read_text()
        assert ('id="figure-rewards_by_step"' in page) == expected
        assert (folder / "tables" / "rewards_by_step.csv").is_file() == expected


@pytest.mark.parametrize(
    ("verdict", "answer", "completion", "expected"),
    [
        ("no_answer", None, "2 + 2 = 5", "format"),
        ("format_error", "4", "", "format"),
        ("wrong", "twelve", "2 + 2 = 5", "format"),
        ("wrong", "5", "so 2 + 2 = 5", "false_step"),
        ("wrong", "5", "so 2 + 3 = 5", None),
        ("truncated", None, "2 + 2 = 5", None),
    ],
)
def test_classes_by_rule(verdict: str, answer: str | None, completion: str, expected: str | None) -> None:
    assert wrong_answer_classes.class_of(verdict, answer, completion) == expected


def test_the_classes_of_a_run_beside_the_published_shares() -> None:
    bad = [
        ("a", "wrong", "5", "2 + 2 = 5"),
        ("b", "wrong", "5", "five"),
        ("c", "no_answer", None, ""),
        ("d", "ungradable", None, ""),
    ]
    graded = [graded_row(10, name, 0, verdict, answer=answer, completion=text) for name, verdict, answer, text in bad]
    run = make_run([*graded, graded_row(10, "e", 0, "correct"), graded_row(0, "e", 0, "correct")])
    assert wrong_answer_classes.classes_table([run]) is None
    table = wrong_answer_classes.classes_table([replace(run, name="gsm8k/some/seed-0")])
    assert table is not None
    assert table.data[["bad", "format", "false_step", "not_classified"]].iloc[0].tolist() == [3, 1, 1, 1]
    assert "15 %" in str(list(table.display.columns)) and table.display.iloc[0, 3] == "1 (33.3 %)"
