"""A default that another release flips is reported with the runs that it would change."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.run_file import Run, framework_names, read_yaml
from frameworks import release_defaults
from recipes.runs import load_run, run_names


def stated(framework: str) -> dict[str, Any]:
    entries = read_yaml(release_defaults.FOLDER / framework / "defaults.yaml")["defaults"]
    return {name: entry["value"] for name, entry in entries.items()}


def states_loss(run: Run) -> bool:
    return any("policy_loss" in stage.objective for stage in run.stages)


@pytest.fixture(scope="module")
def loaded() -> list[Run]:
    return [load_run(name, "full") for name in run_names()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "setting", "value", "algorithm"),
    [
        ("trl", "mask_truncated_completions", True, None),
        ("verl", "actor_rollout_ref.actor.policy_loss.loss_mode", "gspo", None),
        ("verl", "critic.optim.betas", [0.9, 0.95], "ppo"),
        ("openrlhf", "actor.dual_clip", 3.0, None),
        ("openrlhf", "critic.adam.eps", 1e-5, "ppo"),
    ],
)
def test_a_flipped_default_names_the_runs_that_it_changes(
    loaded: list[Run], framework: str, setting: str, value: Any, algorithm: str | None
) -> None:
    assert release_defaults.drifts(framework, stated(framework)) == []
    (drift,) = release_defaults.drifts(framework, stated(framework) | {setting: value})
    trained = [run for run in loaded if run.framework == framework and algorithm in (None, run.algorithm)]
    expected = {run.name for run in trained if not (setting.endswith("loss_mode") and states_loss(run))}
    assert {run.partition(" (")[0] for run in drift.runs if run.endswith("(full)")} == expected
    assert all(run in str(drift) for run in expected) and repr(value) in str(drift)


@pytest.mark.slow
def test_a_default_that_is_gone_is_reported() -> None:
    released = stated("trl")
    del released["top_k"]
    assert [drift.setting for drift in release_defaults.drifts("trl", released)] == ["top_k"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "new"),
    [("trl", "clip_everything"), ("verl", "algorithm.clip_everything"), ("openrlhf", "algo.clip_everything")],
)
def test_a_new_setting_is_reported(framework: str, new: str) -> None:
    assert release_defaults.unknown_settings(framework, stated(framework)) == []
    assert release_defaults.unknown_settings(framework, stated(framework) | {new: True}) == [new]


@pytest.mark.slow
@pytest.mark.parametrize("framework", framework_names())
def test_every_listed_default_has_a_reason_and_a_run_that_relies_on_it(framework: str) -> None:
    content = read_yaml(release_defaults.FOLDER / framework / "defaults.yaml")
    assert set(content) == {"watched", "defaults", "no_effect"}
    for name, entry in content["defaults"].items():
        assert set(entry) <= {"value", "why", "when"} and {"value", "why"} <= set(entry), name
        assert release_defaults.runs_that_rely_on(framework, name, entry.get("when", {})), name
