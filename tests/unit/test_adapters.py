"""Every folder of frameworks/ with an adapter is a framework, and its adapter speaks in the training log's columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.run_file import SCALES, framework_names
from contracts.tables import TRAINING_LOG
from envs.build import lock_file
from frameworks import adapter, checkpoints, command_parser
from frameworks.run_settings import save_interval
from recipes.runs import load_run, run_names
from tests.user_errors import refused

OTHERS = {"seconds", "tokens", "loss", "critic_loss", "critic_grad_norm", "return"}
PINNED = {
    "openrlhf": "openrlhf transformers deepspeed ray math-verify",
    "trl": "trl transformers math-verify",
    "verl": "verl math-verify ray tensordict transferqueue",
}


@pytest.mark.parametrize("name", framework_names())
def test_metrics_have_the_names_of_our_columns(name: str) -> None:
    framework = adapter.load(name)
    assert {*framework.metrics.values()} <= {*TRAINING_LOG.names, *OTHERS}
    assert {"reward_mean", "response_length_mean", "seconds", "loss", "sampler_mismatch"} <= {
        *framework.metrics.values()
    }
    stage = load_run("tinyzero/grpo-3b", "demo").stages[0]
    assert framework.columns_in_line(stage, "loading\n") is None


@pytest.mark.parametrize(
    ("name", "package"), [(name, package) for name, packages in PINNED.items() for package in packages.split()]
)
def test_cpu_and_cuda_locks_pin_the_same_release(name: str, package: str) -> None:
    locks = [lock_file(name, device).read_text().split() for device in ("cpu", "cuda")]
    pins = [[word for word in lock if word.startswith(f"{package}==")] for lock in locks]
    assert pins[0] == pins[1] != []


@pytest.mark.parametrize("scale", SCALES)
def test_a_kill_costs_two_hours_or_half_a_stage_at_most(scale: str) -> None:
    for run in (load_run(name, scale) for name in run_names(scale)):
        hours = run.hardware.get("expected_hours", run.hardware["hours"] * len(run.stages))
        step_hours = hours / sum(stage.steps for stage in run.stages)
        for stage in run.stages:
            interval = save_interval(run, stage)
            assert all(step % interval == 0 for step in stage.checkpoints)
            if stage.steps * step_hours > 1 / 6:
                assert interval == 1 or (interval * step_hours <= 2 and 2 * interval <= stage.steps), run.name


def test_checkpoints_of_the_run_file_and_the_two_newest_are_kept(tmp_path: Path) -> None:
    folders = {step: [tmp_path / str(step)] for step in (4, 6, 8, 10, 14, 16, 18)}
    for (folder,) in folders.values():
        folder.mkdir()
    checkpoints.discard_extra(folders, 4)
    assert {int(folder.name) for folder in tmp_path.iterdir()} == {4, 8, 16, 18}


def test_an_unknown_framework_is_answered_with_the_nearest() -> None:
    with refused("unknown-name", kind="framework", name="vrel"):
        adapter.load("vrel")


def test_newer_remains_are_deleted(tmp_path: Path) -> None:
    folders = {step: [tmp_path / f"step-{step}"] for step in (1, 2, 3)}
    for (folder,) in folders.values():
        folder.mkdir()
    assert checkpoints.newest_complete(folders, lambda step: step == 2) == 2
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["step-1", "step-2"]
    assert checkpoints.newest_complete({}, lambda step: True) == 0


def test_a_framework_without_an_optional_module_says_what_it_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a new one: nothing but translation needs `command_parser`."""
    for folder in ("new", "trl"):
        (tmp_path / folder).mkdir()
    (tmp_path / "trl" / "command_parser.py").touch()
    monkeypatch.setattr(adapter, "FOLDER", tmp_path)
    monkeypatch.setattr(adapter, "framework_names", lambda: ["new", "trl"])
    assert adapter.frameworks_with("command_parser") == ["trl"]
    with refused("missing-framework-module", framework="new", module="command_parser"):
        command_parser.load("new")
