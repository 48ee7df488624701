"""Read tasks/<task>/task.yaml: a task's training sets, prompts and demo settings. A folder with this file is a task."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from system.errors import UserError
from system.yaml_files import read_yaml

FOLDER = Path(__file__).resolve().parent
SETTINGS = ("datasets", "prompts", "evaluation", "demo")  # keys of a task.yaml; all of them may be missing


@cache
def task_names() -> tuple[str, ...]:
    """All tasks, in alphabetical order."""
    return tuple(sorted(file.parent.name for file in FOLDER.glob("*/task.yaml")))


@cache
def settings(name: str) -> dict[str, Any]:
    """The content of a task's task.yaml, each key a mapping.

    datasets  the training sets; the keys of an entry are explained in tasks/dataset_specs.py
    prompts   prompts that only this task uses, as in tasks/prompts.yaml
    evaluation  `protocol` and `prompt` by which its benchmarks are asked where neither the user nor the model's own
              record says more; a benchmark's `metadata.evaluation` replaces them
    demo      how its demo base model is trained: steps; prompts; problems, habits and skill (what the habits are at
              first), as its traces take them
    """
    file = FOLDER / name / "task.yaml"
    content = read_yaml(file)
    if bad := [key for key, value in content.items() if key not in SETTINGS or not isinstance(value, dict)]:
        raise UserError(
            f"{file}: `{bad[0]}` should be one of {', '.join(SETTINGS)}, and hold keys and values",
            code="invalid-task-file",
            key=bad[0],
        )
    return content
