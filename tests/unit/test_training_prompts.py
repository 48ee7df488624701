"""Prompts of a training: those that are too long are left out and counted, and too few for a step is an error."""

from pathlib import Path

import pytest

from contracts import tables
from contracts.errors import UserError
from frameworks import training_prompts
from frameworks.adapter import Paths
from recipes.runs import load_run
from tasks.problems import Problem, to_table

RUN = load_run("tinyzero/grpo-3b", "full")  # 8 prompts a step, a prompt without chat template, 256 tokens at most


def in_words(text: str) -> dict[str, list[str]]:
    return {"input_ids": text.split()}


def given(folder: Path, questions: list[str]) -> Paths:
    problems = [Problem(f"p-{index}", "countdown", question, "1", {}) for index, question in enumerate(questions)]
    tables.write(to_table(problems), tables.PROBLEM, folder / "problems.parquet")
    return Paths(problems=folder / "problems.parquet", model=folder, work=folder)


def test_the_long_are_left_out_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = given(tmp_path, [f"Make {number}." for number in range(8)] + ["word " * 300])
    found = training_prompts.rendered(RUN, RUN.stages[0], paths, in_words)
    assert [question["problem_id"] for question in found] == [f"p-{index}" for index in range(8)]
    assert all(f"Make {index}." in question["prompt"] for index, question in enumerate(found))
    assert set(found[0]) == {*training_prompts.QUESTION, "prompt"}
    assert "1 of 9 prompts are longer than max_prompt_tokens (256): left out" in capsys.readouterr().out


def test_fewer_than_a_step_needs_is_an_error(tmp_path: Path) -> None:
    paths = given(tmp_path, ["Make 1."] * 7)
    with pytest.raises(UserError, match="has 7 prompts of at most 256 tokens, a step needs 8"):
        training_prompts.rendered(RUN, RUN.stages[0], paths, in_words)
