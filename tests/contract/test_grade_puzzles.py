"""Grading stored samples of Countdown and of Knights and Knaves, by the command of the line."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from contracts import tables
from contracts.run_file import ROOT
from envs.build import python
from tasks.countdown import problems as countdown_problems
from tasks.knights_knaves import problems as knights_knaves_problems
from tasks.problems import Problem, to_table
from tests import needs
from tests.warm_python import warm_python

PYTHON = python("eval")
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    needs.environments("eval"),
]
# A completion goes on after the prompt's <think>, so that it has no opening tag of its own.
CASES = [
    ("I try.</think> <answer>{right}</answer>", "stop", "correct"),
    ("I try.</think>\n<answer>\n{right}\n</answer>\n", "stop", "correct"),
    ("I try.</think> <answer>{right}</answer> and so on and", "length", "correct"),
    ("<answer>{right}</answer> or not?</think> <answer>{wrong}</answer>", "stop", "wrong"),
    ("I try.</think> <answer>{wrong}</answer>", "stop", "wrong"),
    ("I try.</think> <answer>{wrong}</answer> no, <answer>{right}</answer>", "stop", "correct"),
    ("I try.</think> \\boxed{{right}}", "stop", "correct"),
    ("I try.</think> {right}", "stop", "format_error"),
    ("I try.</think> <answer>{right}", "stop", "format_error"),
    ("I try.</think> <answer>__import__('os').system('true')</answer>", "stop", "format_error"),
    ("I try.</think> <answer>9**9**9**9</answer>", "stop", "format_error"),
    ("I try.</think> <answer>\u202e\0\ufffd</answer>", "stop", "format_error"),
    ("I try and I try and I", "length", "truncated"),
    ("I try.</think> <answer>" + "(" * 300_000 + "</answer>", "stop", "format_error"),
]


def countdown_answers(problem: Problem) -> tuple[str, str]:
    nums = problem.meta["nums"]
    return str(countdown_problems.solve(nums, int(problem.answer or 0))), f"{nums[0]} + {nums[0]}"


def people_answers(problem: Problem) -> tuple[str, str]:
    names, knights = problem.meta["names"], problem.meta["knights"]
    turned = [not knights[0], *knights[1:]]
    return knights_knaves_problems.answer_list(names, knights), knights_knaves_problems.answer_list(names, turned)


def test_stored_samples_are_graded(tmp_path: Path) -> None:
    sets = {
        "countdown_demo": (countdown_problems.generate(2, "test", 0), countdown_answers),
        "knights_knaves_3": (knights_knaves_problems.generate(2, "test", 0, people=[3]), people_answers),
    }
    for benchmark, (problems, answers) in sets.items():
        tables.write(to_table(problems), tables.PROBLEM, tmp_path / "data" / f"{benchmark}.parquet")
        rows = []
        for problem in problems:
            right, wrong = answers(problem)
            for repeat, (text, reason, _) in enumerate(CASES):
                completion = text.replace("{right}", right).replace("{wrong}", wrong)
                row = {"run": "r", "step": 7, "benchmark": benchmark, "problem_id": problem.problem_id}
                row |= {"repeat": repeat, "completion": completion, "finish_reason": reason, "protocol": "demo"}
                rows.append(row)
        path = tmp_path / "samples" / "step-7" / f"{benchmark}.parquet"
        tables.write(pa.Table.from_pylist(rows, tables.SAMPLE), tables.SAMPLE, path)
    options = ["--samples", tmp_path / "samples", "--data", tmp_path / "data", "--output", tmp_path / "graded"]
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [warm_python("eval"), "-m", "eval.grade", *options], cwd=ROOT, env=settings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for benchmark in sets:
        graded = tables.read(tmp_path / "graded" / "step-7" / f"{benchmark}.parquet", tables.GRADED).to_pylist()
        verdicts = {(row["problem_id"], row["repeat"]): row["verdict"] for row in graded}
        assert len(verdicts) == 2 * len(CASES)
        for (_, repeat), verdict in verdicts.items():
            assert verdict == CASES[repeat][2], (benchmark, CASES[repeat][0][:80])
