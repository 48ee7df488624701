"""Rows of Skywork-OR1-RL-Data: the first answer counts, and only problems that the model solves sometimes are kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tasks.math import skywork


def row(difficulty: int | None, truths: str) -> dict[str, Any]:
    return {
        "prompt": [{"role": "user", "content": " How many?\n"}],
        "reward_model": {"ground_truth": truths, "style": "rule"},
        "extra_info": {"index": 0, "model_difficulty": {skywork.MODEL: difficulty}},
    }


@pytest.mark.parametrize(("difficulty", "kept"), [(0, False), (1, True), (15, True), (16, False), (None, False)])
def test_problems_of_a_difficulty_in_between_have_an_answer(difficulty: int | None, kept: bool) -> None:
    problem = skywork.convert(row(difficulty, json.dumps([" 7 ", "7.0"])), 0, "math", {})
    assert (problem.question, problem.answer) == ("How many?", "7" if kept else None)


def test_answers_that_are_no_list_are_an_error() -> None:
    with pytest.raises(ValueError, match="list in JSON"):
        skywork.convert(row(3, '"7"'), 0, "math", {})
