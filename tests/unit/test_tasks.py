"""Tasks as objects: the registry, and a task that is added with two files of its own and a benchmark."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import tasks
from grading import Item, grade
from recipes import models, rewards
from recipes.demo_model import mixture
from tasks import dataset_specs, load_problems, prompts, registry, task_yaml
from tests.user_errors import refused

PARITY = '''
"""Parity: is a number even or odd? A task in one module."""
import hashlib, random
from dataclasses import dataclass
from tasks.problems import Problem, split_of
from tasks.task import Task

@dataclass(frozen=True)
class Habits:
    right: float

class Parity(Task):
    answer_format = "tagged"

    def verify(self, answer, gold, meta, *, grader=""):
        return "format_error" if answer not in ("even", "odd") else "correct" if answer == gold else "wrong"

    def generate(self, *, rows, split, seed):
        numbers = [n for n in range(10 * rows) if split_of(str(n)) == split]
        chosen = random.Random(seed).sample(numbers, rows)
        return [Problem(f"{split}-{n}", "parity", f"Is {n} even?", ("even", "odd")[n % 2], {}) for n in chosen]

TASK = Parity("parity")

def problems(*, seed, rows):
    return TASK.generate(rows=rows, split="train", seed=seed)

def strata(problem):
    return problem.answer

def phrases(problems):
    return ["even", "odd"]

def completion(problem, prompt, habits, rng):
    answer = problem.answer if rng.random() < habits.right else rng.choice(["even", "odd"])
    return f"</think><answer>{answer}</answer>"
'''
SETTINGS = {
    "datasets": {"parity_train": {"rows": 20, "generate": {"split": "train", "seed": 0}}},
    "prompts": {"parity-think": {"source": "ours", "user": "{question}", "assistant": "<think>"}},
    "demo": {"steps": 1, "prompts": ["parity-think"], "problems": {"rows": 50}, "habits": {"right": 0.5},
             "skill": {"right": 1.0}},
}  # fmt: skip
BENCHMARK = {"metadata": {"source": {"task": "parity", "rows": 5, "generate": {"split": "test", "seed": 0}}}}
CACHED = (task_yaml.task_names, registry.get, task_yaml.settings, prompts.entries, prompts.library)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of tasks: this project's, and an empty one named parity."""
    for name in task_yaml.task_names():
        (tmp_path / name).symlink_to(task_yaml.FOLDER / name)
    (tmp_path / "parity").mkdir()
    monkeypatch.setattr(task_yaml, "FOLDER", tmp_path)
    monkeypatch.setattr(tasks, "__path__", [*tasks.__path__, str(tmp_path)])
    _forget()
    yield tmp_path
    _forget()


def _forget() -> None:
    importlib.invalidate_caches()
    for function in CACHED:
        function.cache_clear()


@pytest.fixture
def parity(folder: Path) -> Path:
    """The folder of tasks with parity in it."""
    (folder / "parity" / "__init__.py").write_text(PARITY)
    (folder / "parity" / "task.yaml").write_text(yaml.safe_dump(SETTINGS))
    return folder


def test_every_task_is_named_as_its_folder_and_has_what_its_files_promise() -> None:
    for name in task_yaml.task_names():
        task = registry.get(name)
        assert task.name == name and task.answer_format in ("boxed", "tagged")
        demo = task_yaml.settings(name).get("demo")
        if demo:
            assert task.traces.problems(
                seed=0, **demo["problems"] | ({"rows": 5} if "rows" in demo["problems"] else {})
            )
            assert task.traces.Habits(**demo["habits"] | demo["skill"])


@pytest.mark.usefixtures("parity")
def test_a_task_in_one_folder_is_loaded_graded_rewarded_and_learned(tmp_path: Path) -> None:
    train, facts = load_problems.load(dataset_specs.find("parity_train"), None)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "parity.yaml").write_text(yaml.safe_dump(BENCHMARK))
    test, _ = load_problems.load(dataset_specs.find("parity", benchmarks=tmp_path / "benchmarks"), None)
    assert "parity_train" in dataset_specs.training_sets() and facts["source"]["task"] == "parity"
    assert len(train) == 20 and not {p.question for p in train} & {p.question for p in test}

    completions = ["so </think> <answer>even</answer>", "so </think> <answer>maybe</answer>", "even"]
    items = [Item("parity", "even", completion) for completion in completions]
    assert [judged.verdict for judged in grade(items)] == ["correct", "format_error", "format_error"]
    problems_judged = [rewards.problem_from_columns("parity", "even", "{}")] * 3
    assert [judged.value for judged in rewards.correct(completions, problems_judged)] == [1.0, 0.0, 0.0]

    assert models.find("demo-parity")["demo_task"] == "parity"
    rows = mixture.rows("parity", task_yaml.settings("parity")["demo"], 40, 0.5, 0)
    assert {row.prompt.name for row in rows} == {"parity-think"}
    assert all(row.completion.endswith("</answer>") for row in rows)


def test_a_prompt_in_two_files_and_an_unknown_key_are_errors(folder: Path) -> None:
    file = folder / "parity" / "task.yaml"
    file.write_text(yaml.safe_dump({"prompts": {"boxed": {"source": "ours", "user": "{question}"}}}))
    with refused("repeated-name"):
        prompts.load("boxed")
    file.write_text("dataset: {}")
    _forget()
    with refused("invalid-task-file"):
        prompts.load("boxed")


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"task": "math", "rows": 1, "generate": {"split": "train", "seed": 0}}, "task-without-generator"),
        ({"task": "countdown", "rows": 1, "generate": {"split": "train"}}, "unknown-generator-argument"),
        ({"task": "countdown", "rows": 1, "generate": {"split": "dev", "seed": 0}}, "unknown-name"),
    ],
)
def test_what_cannot_be_generated_is_refused(spec: dict, code: str) -> None:
    with refused(code):
        load_problems.load(dataset_specs.Entry("mine", spec, "here"), None)
