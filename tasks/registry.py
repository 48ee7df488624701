"""Find a task by its name: `registry.get("countdown")` imports tasks/countdown and returns its `TASK`."""

from __future__ import annotations

import importlib
from functools import cache

from system.unknown_names import unknown
from tasks.task import Task
from tasks.task_yaml import task_names


@cache
def get(name: str) -> Task:
    """The task of this name; UserError with the nearest names if there is none."""
    if name not in task_names():
        raise unknown("task", name, task_names())
    task: Task = importlib.import_module(f"tasks.{name}").TASK
    return task
