"""Checking reasoning step by step: right traces are all right, and a planted fault is found where it was planted."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.step_trials import study
from tasks import prompts, reasoning_steps, registry, task_yaml
from tasks.problems import Problem
from tests.budgets import examples

TASKS = study.tasks_with_steps()
GAME24 = Problem("", "game24", "", "8 / (3 - 8 / 3)", {"cards": [8, 3, 8, 3]})
COUNTDOWN = Problem("", "countdown", "", "10", {"nums": [3, 4, 2]})
SUM = Problem("", "arithmetic", "", "15", {"expression": "5+3*4-2"})
PAIR = Problem("", "knights_knaves", "Emma: Liam is a knave. Liam: Emma is a knight and Liam is a knave.", "", {})
MAZE = Problem("", "maze", "", "RR", {"width": 4, "height": 4, "goal": [2, 0], "obstacles": [[1, 1], [3, 2]]})


def test_which_tasks_check_steps() -> None:
    assert {"arithmetic", "countdown", "game24", "knights_knaves", "maze"} <= set(TASKS)
    assert registry.get("math").check_steps("1+1=3", SUM) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_right_traces_are_right_and_planted_faults_are_found(name: str) -> None:
    trial = study.trial(name, 100, seed=1)
    assert trial.false_alarms == 0 and trial.missed == 0 and trial.checkable > trial.traces


@pytest.mark.parametrize(
    ("problem", "completion", "verdicts"),
    [
        (GAME24, "8/3=8/3 left 3 8 8/3\n3 - 8/3 = 1/3, left: 8 1/3\n8/1/3=24\n8 / 1/3 = 24 left 24", "++?+"),
        (GAME24, "8+3=12 left 3 8 12\n8*8=64\n8-8=0 left 3 3 0\n3*3=9 left 8 8 9\n9*3=27", "-+++-"),
        (GAME24, "3*8=24 left 3 24\nI think that 8 is large\n8/0=1", "-?-"),
        (COUNTDOWN, "4-3=1,2;10?+3-1*2\n3+4=7,2;10?+9-5*14\n3*4=12,2;10?+14-10 yes", "+++"),
        (COUNTDOWN, "4-3=1,2;11?+3\n3+4=8,2;10?+10\n3*4=12,4;10?+16\n3*4=12,2;10?+14 yes", "----"),
        (COUNTDOWN, "1. 3 * 4 = 12\n2. 12 - 2 = 10\nSo the answer is 3 * 4 - 2.\n- 5 + 5 = 10", "++?-"),
        (SUM, "First, 5+3*4-2\nNext, 5+12-2\nNext, 17-2\nFinally, 15\n\\boxed{15}", "++++?"),
        (SUM, "5+3*4-2\n8*4-2\n32-2\n30\nWait, check again: multiplication goes first.\n5+3*4-2\n5+11", "+-++?+-"),
        (SUM, "<think>5+3*4-2\n15</think><answer>\\boxed{15}</answer>", "++"),
        (
            PAIR,
            "1 Emma knight Liam knight\nEmma: Liam is a knave. Liam is a knave no Emma knight fails\n"
            "2 Emma knight Liam knave\nEmma: Liam is a knave. Liam is a knave no Emma knight fails\n"
            "4 Emma knave Liam knave\nThey could both lie.",
            "+++--?",
        ),
        (MAZE, "0 1,1v 3,2v 0,0\n1 1,2v 3,3^ R 1,0\n2 1,3^ 3,2^ R 2,0", "+++"),
        (MAZE, "0 1,1v 3,2v 0,0\n1 1,2v 3,3v R 1,0\n2 1,3^ 3,2^ R 3,0\n4 1,1^ 3,0v L 2,0", "+---"),
        (MAZE, "Step 1: R, agent at (1, 0), obstacles at (1, 2), (3, 3)\n2. R -> (2, 0)\nU is up, not (5, 5)", "++?"),
        (MAZE, "Move R to (0, 1). Obstacles: (1, 2), (3, 3)\nD (0, 2), obstacles (1, 3)\nThe goal is (2, 0): R", "-+?"),
    ],
)  # fmt: skip
def test_steps_by_hand(problem: Problem, completion: str, verdicts: str) -> None:
    checked = registry.get(problem.task).check_steps(completion, problem)
    assert checked is not None
    signs = {reasoning_steps.RIGHT: "+", reasoning_steps.WRONG: "-", reasoning_steps.NOT_CHECKABLE: "?"}
    assert "".join(signs[step.verdict] for step in checked) == verdicts, checked
    assert all(bool(step.why) == (step.verdict == reasoning_steps.WRONG) for step in checked)


@pytest.mark.slow
@examples("any text")
@given(
    st.sampled_from([GAME24, COUNTDOWN, SUM, PAIR, MAZE]),
    st.text(alphabet="0123456789+-*/=,;?() RDv^\nleft:", max_size=80),
)
def test_any_text_has_steps(problem: Problem, text: str) -> None:
    checked = registry.get(problem.task).check_steps(text, problem)
    assert checked is not None and len(checked) <= text.count("\n") + 1
    assert reasoning_steps.all_right(checked) in (None, reasoning_steps.first_wrong(checked) is None)


@pytest.mark.parametrize("name", TASKS)
def test_an_unusable_problem_has_no_steps(name: str) -> None:
    assert registry.get(name).check_steps("1+1=2", Problem("", name, "what?", None, {})) is None


@pytest.mark.slow
def test_slips_of_the_demo_traces_are_found() -> None:
    for name in TASKS:
        task, demo = registry.get(name), task_yaml.settings(name)["demo"]
        problem, _ = next(study.right_traces(task, 1, 0))
        habits = {**demo["habits"], **demo["skill"], **task.step_module().RIGHT_HABITS, "slip": 1.0}
        text = task.traces.completion(
            problem, prompts.load(demo["prompts"][0]), task.traces.Habits(**habits), random.Random(0)
        )
        assert reasoning_steps.first_wrong(task.check_steps(text, problem) or []) is not None, (name, text)
