"""Prompts of a training: those that are too long are left out and counted, and too few for a step is an error."""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as given_by_hypothesis
from hypothesis import strategies

from contracts import tables
from contracts.run_file import Stage
from frameworks import training_prompts
from frameworks.adapter import Paths
from recipes.runs import load_run
from tasks import registry
from tasks.problems import Problem, to_table
from tests.user_errors import refused

RUN = load_run("tinyzero/grpo-3b", "full")  # 8 prompts a step, a prompt without chat template, 256 tokens at most


def in_words(text: str) -> dict[str, list[str]]:
    return {"input_ids": text.split()}


def write_problems(folder: Path, questions: list[str]) -> Paths:
    problems = [Problem(f"p-{index}", "countdown", question, "1", {}) for index, question in enumerate(questions)]
    tables.write(to_table(problems), tables.PROBLEM, folder / "problems.parquet")
    return Paths(problems=folder / "problems.parquet", model=folder, work=folder)


def test_the_long_are_left_out_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_problems(tmp_path, [f"Make {number}." for number in range(8)] + ["word " * 300])
    prompts = training_prompts.render_prompts(RUN, RUN.stages[0], paths, in_words)
    assert [question["problem_id"] for question in prompts] == [f"p-{index}" for index in range(8)]
    assert all(f"Make {index}." in question["prompt"] for index, question in enumerate(prompts))
    assert set(prompts[0]) == {*training_prompts.QUESTION, "prompt"}
    assert "1 of 9 prompts are longer than max_prompt_tokens (256): left out" in capsys.readouterr().out


def test_fewer_than_a_step_needs_is_an_error(tmp_path: Path) -> None:
    paths = write_problems(tmp_path, ["Make 1."] * 7)
    with refused("too-few-prompts", prompts=7, needed=8):
        training_prompts.render_prompts(RUN, RUN.stages[0], paths, in_words)


def levels(**weights: float) -> Stage:
    chosen = tuple({"level": level.removeprefix("l"), "weight": weight} for level, weight in weights.items())
    return replace(RUN.stages[0], levels=chosen)


def rows(*counts: int) -> list[dict[str, Any]]:
    """Rows of Countdown with 3, 4, … numbers, so many of each, mixed."""
    own = [3 + kind for kind, count in enumerate(counts) for _ in range(count)]
    random.Random(1).shuffle(own)
    return [
        {"id": number, "task": "countdown", "meta": json.dumps({"nums": [1] * size})} for number, size in enumerate(own)
    ]


def shares(problems: list[dict[str, Any]]) -> Counter[int]:
    return Counter(len(json.loads(row["meta"])["nums"]) for row in problems)


@given_by_hypothesis(
    counts=strategies.lists(strategies.integers(1, 60), min_size=2, max_size=4),
    weights=strategies.lists(strategies.floats(0.1, 10), min_size=2, max_size=4),
)
def test_levels_have_their_weights_and_as_many_problems_as_they_allow(counts: list[int], weights: list[float]) -> None:
    weights = weights[: len(counts)]
    weights_by_level = {f"l{3 + kind}": weight for kind, weight in enumerate(weights)}
    table = rows(*counts)
    selected = training_prompts.select_levels(RUN, levels(**weights_by_level), table)
    own = shares(selected)
    assert [row["id"] for row in selected] == sorted({row["id"] for row in selected})
    assert set(own) == {3 + kind for kind in range(len(weights))}
    exact = min(count / weight for count, weight in zip(counts, weights, strict=False))
    for kind, weight in enumerate(weights):
        assert max(1, exact * weight - 1) <= own[3 + kind] + 1e-6 and own[3 + kind] <= max(1, exact * weight + 1e-6)
    assert any(own[3 + kind] == counts[kind] for kind in range(len(weights)))  # one level is used up
    assert selected == training_prompts.select_levels(RUN, levels(**weights_by_level), table)


def test_levels_of_a_run_file(tmp_path: Path) -> None:
    """Through the whole of `rendered`, and an unknown level is a sentence that lists those that there are."""
    meta = [{"nums": [1] * (3 + number % 2)} for number in range(40)]
    problems = [Problem(f"p-{n}", "countdown", f"Make {n}.", "1", held) for n, held in enumerate(meta)]
    tables.write(to_table(problems), tables.PROBLEM, tmp_path / "problems.parquet")
    paths = Paths(problems=tmp_path / "problems.parquet", model=tmp_path, work=tmp_path)
    prompts = training_prompts.render_prompts(RUN, levels(l4=1), paths, in_words)
    assert [row["problem_id"] for row in prompts] == [f"p-{number}" for number in range(1, 40, 2)]
    assert training_prompts.select_levels(RUN, RUN.stages[0], rows(2, 3)) == rows(2, 3)
    with refused("unknown-level", key="levels"):
        training_prompts.render_prompts(RUN, levels(l9=1, l3=1), paths, in_words)


@pytest.mark.parametrize(
    ("task", "meta", "level"),
    [
        ("arithmetic", {"level": 2}, "2"),
        ("math", {"level": "Level 5"}, "5"),
        ("countdown", {"nums": [1, 2, 3]}, "3"),
        ("knights_knaves", {"names": ["Ann", "Bob"]}, "2"),
        ("countdown", {}, None),
    ],
)
def test_level_of_a_problem(task: str, meta: dict[str, Any], level: str | None) -> None:
    assert registry.get(task).level(meta) == level
