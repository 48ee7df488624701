"""Models that are warmed up: what an entry may say, and the traces that it trains on."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from analysis.report.sections import contamination
from cluster import gpu_memory
from recipes import models, warm_up
from system.yaml_files import read_yaml
from tasks import registry, task_yaml
from tests.unit.conftest import Declare
from tests.user_errors import refused

BASE = "smollm2-135m-instruct-q4"
PUZZLES: dict[str, Any] = {
    "model": BASE,
    "task": "knights_knaves",
    "prompt": "logicrl-instruct",
    "problems": {"people": [2], "forms": ["is", "not", "and", "or"], "names": 8, "wording": "short"},
    "habits": {"thorough": 1.0, "two": 0.0, "unchecked": 0.0, "format_kept": 1.0, "slip": 0.0},
    "rows": 20,
    "epochs": 1,
    "batch": 4,
    "learning_rate": 2.0e-4,
    "lora": {"rank": 32, "alpha": 64},
}
DEMO = read_yaml(task_yaml.FOLDER / "countdown" / "task.yaml")["demo"]
COUNTDOWN = PUZZLES | {"task": "countdown", "problems": DEMO["problems"], "habits": DEMO["habits"]}


@pytest.mark.slow
def test_an_entry_decides_the_weights_with_its_prompt_and_what_all_share(declare: Declare) -> None:
    declare(mine={"warm_up": PUZZLES})
    settings = models.settings("mine")
    assert settings["warm_up"] == PUZZLES and settings["training"]["schedule"] == "linear"
    assert "<think>" in settings["prompt"]["system"] and "environment" not in settings
    assert models.find("mine")["environment"] == warm_up.ENVIRONMENT
    assert (models.pretrained("mine"), models.pretrained(BASE), models.pretrained("a/b")) == (BASE, BASE, "a/b")


@pytest.mark.slow
def test_shape_and_release_date_are_those_of_the_pretrained_model(declare: Declare) -> None:
    declare(mine={"warm_up": PUZZLES | {"model": "qwen2.5-3b"}})
    assert gpu_memory.model_shape("mine") == gpu_memory.model_shape("qwen2.5-3b") is not None
    assert contamination._of_model("mine") == contamination._of_model("qwen2.5-3b") != contamination.UNKNOWN


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "code", "facts"),
    [
        ({"rows": None}, "warm-up-value", {"key": "rows"}),
        ({"rows": True}, "warm-up-value", {"key": "rows"}),
        ({"epochs": 0}, "warm-up-value", {"key": "epochs"}),
        ({"learning_rate": float("inf")}, "warm-up-value", {"key": "learning_rate"}),
        ({"learning_rate": "2e-4"}, "warm-up-value", {"key": "learning_rate"}),
        ({"problems": []}, "warm-up-value", {"key": "problems"}),
        ({"seed": 1}, "warm-up-keys", {"others": ["seed"]}),
        ({"lora": {"rank": 32}}, "warm-up-keys", {"missing": ["alpha"]}),
        ({"lora": {"rank": 32, "alpha": 0}}, "warm-up-value", {"key": "alpha"}),
        ({"task": "knight_knaves"}, "unknown-name", {"name": "knight_knaves"}),
        ({"task": "math"}, "unknown-name", {"kind": "task with demo traces"}),
        ({"prompt": "logicrl"}, "unknown-name", {"kind": "prompt"}),
        ({"model": "smollm2"}, "unknown-name", {"kind": "model"}),
        ({"model": "other"}, "base-trained-here", {"model": "other"}),
        ({"model": "demo"}, "base-trained-here", {"model": "demo"}),
    ],
)
def test_an_entry_that_cannot_be_trained_is_refused(
    change: dict[str, Any], code: str, facts: dict[str, Any], declare: Declare
) -> None:
    declare(mine={"warm_up": PUZZLES | change}, other={"warm_up": PUZZLES})
    with refused(code, **facts):
        models.library()


@pytest.mark.slow
@pytest.mark.parametrize("entry", [{"warm_up": "knights"}, {"warm_up": PUZZLES, "demo_task": "maze"}])
def test_a_warm_up_is_a_source_of_its_own(entry: Any, declare: Declare) -> None:
    declare(mine=entry)
    with refused("missing-source", model="mine"):
        models.library()


@pytest.mark.slow
def test_a_missing_key_is_named(declare: Declare) -> None:
    declare(mine={"warm_up": {key: value for key, value in PUZZLES.items() if key != "rows"}})
    with refused("warm-up-keys", missing=["rows"]):
        models.library()


@pytest.mark.slow
def test_habits_that_the_task_does_not_have_are_refused_before_anything_starts(declare: Declare) -> None:
    declare(mine={"warm_up": PUZZLES | {"habits": {"careful": 1.0}}})
    with refused("warm-up-traces", key="habits"):
        models.settings("mine")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "code"),
    [({"problems": {"persons": [2]}}, "warm-up-traces"), ({"problems": {"people": [2], "rows": 3}}, "warm-up-traces")],
)
def test_problems_that_the_task_cannot_make_are_refused(change: dict[str, Any], code: str) -> None:
    with refused(code, key="problems"):
        warm_up.rows(PUZZLES | change, 0)


@pytest.mark.slow
def test_each_row_is_the_trace_of_another_problem_and_the_seed_decides_them() -> None:
    rows, traces = warm_up.rows(PUZZLES, 0), registry.get("knights_knaves").traces
    assert len({row.question for row in rows}) == len(rows) == PUZZLES["rows"]
    assert rows == warm_up.rows(PUZZLES, 0) != warm_up.rows(PUZZLES, 1)
    of_question = {one.question: one for one in traces.problems(seed=0, rows=20, **PUZZLES["problems"])}
    right = traces.Habits(**PUZZLES["habits"])
    for row in rows:  # with these habits nothing is left to chance
        assert row.completion == traces.completion(of_question[row.question], row.prompt, right, random.Random(9))


@pytest.mark.slow
def test_a_task_with_a_number_of_problems_of_its_own_is_drawn_from() -> None:
    assert len({json.dumps(row.question) for row in warm_up.rows(COUNTDOWN, 0)}) == 20
    with refused("too-few-problems"):
        warm_up.rows(COUNTDOWN | {"rows": 10_000_000}, 0)
