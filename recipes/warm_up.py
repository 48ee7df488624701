"""What a base model is warmed up on: traces of a task, each of another problem, as recipes/models.yaml says.

A pretrained model that never gives an answer in the form that is asked for has nothing to be rewarded for. Some traces
in that form come first. Which part they show is up to `habits`, as for demo models (recipes/demo_model/mixture.py).
"""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from system.errors import UserError
from system.unknown_names import unknown
from system.yaml_files import read_yaml
from tasks import prompts, registry, task_yaml

if TYPE_CHECKING:
    from recipes.demo_model.mixture import Row
    from tasks.problems import Problem

SETTINGS = Path(__file__).resolve().parent / "warm_up.yaml"
ENVIRONMENT = read_yaml(SETTINGS)["environment"]
TEXT, MAPPING, COUNT, NUMBER = "a text", "keys and values", "a whole number above 0", "a number above 0"
KEYS = {
    "model": TEXT, "task": TEXT, "prompt": TEXT, "problems": MAPPING, "habits": MAPPING, "rows": COUNT, "epochs": COUNT,
    "batch": COUNT, "learning_rate": NUMBER, "lora": MAPPING,
}  # fmt: skip
LORA_KEYS = {"rank": COUNT, "alpha": COUNT}


def check(name: str, entry: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse an entry that cannot be trained.

    Args:
        name: of the model.
        entry: what its `warm_up` says.
        known: all models by name.

    Raises:
        UserError: a key is missing, unknown or of another type, or names what does not exist or is itself trained here.
    """
    where = f"recipes/models.yaml: {name}.warm_up"
    _check_values(where, entry, KEYS)
    _check_values(f"{where}.lora", entry["lora"], LORA_KEYS)
    tasks = [task for task in task_yaml.task_names() if "demo" in task_yaml.settings(task)]
    for key, kind, names in (
        ("model", "model", known), ("task", "task with demo traces", tasks), ("prompt", "prompt", prompts.library()),
    ):  # fmt: skip
        if entry[key] not in names:
            raise unknown(kind, entry[key], names).within(f"{where}.{key}")
    if {"warm_up", "demo_task"} & known[entry["model"]].keys():
        raise UserError(
            f"{where}.model should be a model that is not trained here, but is {entry['model']}: name a pretrained one",
            code="base-trained-here", model=entry["model"],
        )  # fmt: skip


def _check_values(where: str, values: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
    """Refuse missing and unknown keys, and values of another kind."""
    if values.keys() != kinds.keys():
        lacking, others = sorted(kinds.keys() - values.keys()), sorted(map(str, values.keys() - kinds.keys()))
        faults = [f"{verb} {', '.join(keys)}" for verb, keys in (("lacks", lacking), ("has", others)) if keys]
        raise UserError(
            f"{where} should have the keys {', '.join(kinds)}, and no others, but {' and '.join(faults)}",
            code="warm-up-keys", missing=lacking, others=others,
        )  # fmt: skip
    for key, kind in kinds.items():
        if not _is_of(kind, values[key]):
            raise UserError(f"{where}.{key} should be {kind}, but is {values[key]!r}", code="warm-up-value", key=key)


def _is_of(kind: str, value: Any) -> bool:
    if kind in (TEXT, MAPPING):
        return isinstance(value, str if kind == TEXT else dict)
    is_number = isinstance(value, int if kind == COUNT else int | float) and not isinstance(value, bool)
    return is_number and 0 < value < math.inf


def settings(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the warmed-up weights, besides those of the base model: the entry, its prompt and what is shared.

    Raises:
        UserError: the task's traces do not take the entry's habits.
    """
    _habits(entry)
    shared = {key: value for key, value in read_yaml(SETTINGS).items() if key != "environment"}
    return {"training": shared, "prompt": prompts.load(entry["prompt"]).text_fields()}


def rows(entry: Mapping[str, Any], seed: int) -> list[Row]:
    """The examples.

    Args:
        entry: `warm_up` of a model.
        seed: of the problems and of every choice.

    Raises:
        UserError: the task does not take the entry's problems or habits, or has fewer problems.
    """
    from recipes.demo_model.mixture import Row  # not in every environment that makes models

    rng, prompt = random.Random(seed), prompts.load(entry["prompt"])
    habits, completion = _habits(entry), registry.get(entry["task"]).traces.completion
    problems = rng.sample(_problems(entry, seed), entry["rows"])
    return [Row(prompt, problem.question, completion(problem, prompt, habits, rng)) for problem in problems]


def _habits(entry: Mapping[str, Any]) -> Any:
    try:
        return registry.get(entry["task"]).traces.Habits(**entry["habits"])
    except TypeError as error:
        raise _not_taken(entry, "habits", error) from None


def _problems(entry: Mapping[str, Any], seed: int) -> list[Problem]:
    """At least as many as there are rows; some tasks' traces have a number of problems of their own."""
    draw = registry.get(entry["task"]).traces.problems
    count = {"rows": entry["rows"]} if "rows" in inspect.signature(draw).parameters else {}
    try:
        problems = draw(seed=seed, **entry["problems"], **count)
    except TypeError as error:
        raise _not_taken(entry, "problems", error) from None
    if len(problems) < entry["rows"]:
        raise UserError(
            f"recipes/models.yaml: warm_up.rows is {entry['rows']}, but {entry['task']} has {len(problems)} such "
            "problems: lower rows, or allow other problems",
            code="too-few-problems", problems=len(problems),
        )  # fmt: skip
    return problems


def _not_taken(entry: Mapping[str, Any], key: str, error: TypeError) -> UserError:
    return UserError(
        f"recipes/models.yaml: the task {entry['task']} does not take warm_up.{key} {entry[key]} ({error}): take the "
        f"keys of demo.{key} in tasks/{entry['task']}/task.yaml",
        code="warm-up-traces", key=key,
    )  # fmt: skip
