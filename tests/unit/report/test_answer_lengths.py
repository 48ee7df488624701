"""Lengths of right and wrong answers over training steps."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from report_runs import graded_row, make_run

from analysis.report.sections import training as training_section
from analysis.results import RunResults
from analysis.statistics.training_seeds import Recipe


def run_with(rollouts: list[tuple[int, str, int | None]]) -> RunResults:
    run = make_run([graded_row(step, "p", 0, "correct") for step in (0, 10)])
    frame = pd.DataFrame(rollouts, columns=["step", "verdict", "completion_tokens"])
    return replace(run, rollouts=frame.assign(stage=1, completion="", reward=0.0))


@pytest.mark.slow
def test_right_and_wrong_answers_apart() -> None:
    run = run_with([(1, "correct", 10), (1, "wrong", 20), (1, "wrong", 40), (2, "wrong", 50), (2, "no_answer", 99)])
    assert training_section.has_answer_lengths(run)
    right, wrong = training_section.plot_answer_lengths([Recipe([run])]).axes[:2]
    assert right.lines[0].get_xydata().tolist() == [[1, 10]]  # type: ignore[union-attr]
    assert wrong.lines[0].get_xydata().tolist() == [[1, 30], [2, 50]]  # type: ignore[union-attr]


@pytest.mark.parametrize("rollouts", [[], [(1, "wrong", None)], [(1, "correct", 10)]])
def test_without_wrong_answers_of_known_length_there_is_no_figure(rollouts: list[tuple[int, str, int | None]]) -> None:
    assert not training_section.has_answer_lengths(run_with(rollouts))
