"""The tasks and sweeps of the study of reward accuracy."""

from __future__ import annotations

from recipes import sweeps
from recipes.runs import load_run
from studies.reward_accuracy.runs import chosen, tasks
from tests.user_errors import refused


def test_the_study_has_the_settings_that_it_promises() -> None:
    sizes = {task.name: (len(sweeps.run_names(task.sweep, "demo")), task.most_seeds) for task in tasks()}
    assert sum(size >= 5 and seeds >= 8 for size, seeds in sizes.values()) == 2
    assert all(size >= 3 and seeds >= 5 for size, seeds in sizes.values())
    assert tasks()[0].seeds(range(20)) == list(range(8))
    frameworks = {load_run(f"{task.sweep}@1", "demo").framework for task in tasks()}
    assert len(frameworks) == 2


def test_tasks_are_chosen_by_name_in_the_order_of_the_study() -> None:
    assert chosen([]) == tasks()
    assert [task.name for task in chosen(["code", "arithmetic"])] == ["arithmetic", "code"]
    with refused("unknown-name"):
        chosen(["chess"])
