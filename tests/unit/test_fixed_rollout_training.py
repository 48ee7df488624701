"""Recorded completions and the comparison of weights, without a training."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from frameworks import adapter, recorded_rollouts, rollout_log, tensorboard_events
from recipes.runs import load_run
from studies.lockstep import fixed_rollout_training, weights
from studies.lockstep.study import runs, times_table, update_seconds
from system import json_lines
from tests.user_errors import refused

BATCH = rollout_log.Batch(prompts=2, samples=2)
STEPS = {1: [("a", [1.0, 0.0]), ("b", [0.0, 0.0])], 2: [("c", [1.0, 1.0]), ("d", [0.0, 1.0])]}


def judge(work: Path, steps: dict[int, list[tuple[str, list[float]]]]) -> None:
    """Rollouts as a reward hook records them."""
    writer = rollout_log.Recorder(rollout_log.start_attempt(work, 0).folder)
    for step, groups in steps.items():
        writer.write(
            {
                "step": step, "problem_id": name, "prompt": name, "completion": "", "reward": reward,
                "verdict": "wrong", "format_error": False, "parts": [reward],
            }
            for name, rewards in groups
            for reward in rewards
        )  # fmt: skip


def test_how_long_updates_take_is_read_from_each_framework_s_log(tmp_path: Path) -> None:
    verl, openrlhf, trl = (tmp_path / name for name in ("verl", "openrlhf", "trl"))
    for folder in (verl / "native" / "log", openrlhf, trl):
        folder.mkdir(parents=True)
    steps = [{"step": step, "data": {"timing_s/update_actor": 2.0 * step, "timing_s/gen": 9.0}} for step in (1, 2, 3)]
    (verl / "native/log/from-000000.jsonl").write_text("".join(map(json_lines.dump, steps)))
    (openrlhf / "train.log").write_text("Global step 1: {'reward': 0.5, 'timing/ppo_train': 7.0}\n")
    events = tensorboard_events.Writer(trl / "native" / "runs", 0)
    events.add(1, {"train/reward": 0.5, "train/timing/update": 3.0, "train/timing/sampling": 4.0})
    events.close()
    updates = {work.name: update_seconds(f"crosscheck/{work.name}", work, "demo") for work in (verl, openrlhf, trl)}
    assert updates == {"verl": [2, 4, 6], "openrlhf": [7], "trl": [3]}
    assert "| verl | 4.00 | 3.00 to 5.00 |" in times_table(updates)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The recording of two steps with two prompts each; prompts and completions are single tokens."""
    monkeypatch.setenv(recorded_rollouts.VARIABLE, str(tmp_path / "sampled.jsonl"))
    for step in STEPS:
        first = 10 * step
        recorded_rollouts.write_sampled([[first], [first], [first + 1], [first + 1]], [[1], [2, 3], [4], []])
    judge(tmp_path / "work", STEPS)
    groups = fixed_rollout_training.recorded_groups(tmp_path / "sampled.jsonl", tmp_path / "work", BATCH)
    (tmp_path / "rollouts.jsonl").write_text("".join(json_lines.dump(vars(group)) for group in groups))
    monkeypatch.setenv(recorded_rollouts.VARIABLE, str(tmp_path / "rollouts.jsonl"))
    recorded_rollouts._groups_of_process.cache_clear()
    return tmp_path / "rollouts.jsonl"


def test_a_recording_gives_each_completion_to_its_prompt(recorded: Path) -> None:
    assert [(group.step, group.problem_id, group.rewards) for group in recorded_rollouts.read(recorded)] == [
        (step, name, rewards) for step, groups in STEPS.items() for name, rewards in groups
    ]
    assert recorded_rollouts.completion(np.array([20]), 1) == [2, 3] and recorded_rollouts.completion([11], 1) == []
    with pytest.raises(KeyError):
        recorded_rollouts.completion([12], 0)


def test_a_prompt_that_comes_twice_is_refused(recorded: Path) -> None:
    content = recorded.read_text()
    recorded.write_text(content + content)
    with refused("duplicate-prompts"):
        recorded_rollouts.completion([20], 1)


def test_other_rewards_than_the_recorded_are_noticed(recorded: Path, tmp_path: Path) -> None:
    fixed_rollout_training.check_rewards(recorded, tmp_path / "work", BATCH)
    judge(tmp_path / "other", STEPS | {2: [("c", [1.0, 1.0]), ("d", [0.0, 0.0])]})
    with refused("not-the-recorded-rewards", step=2):
        fixed_rollout_training.check_rewards(recorded, tmp_path / "other", BATCH)


def test_settings_replace_those_of_the_run_file() -> None:
    (stage,) = load_run("crosscheck/trl", "demo").stages
    changed = fixed_rollout_training.with_settings(
        stage, ["objective.scale_rewards=none", "optimizer.learning_rate=0.001"]
    )
    assert changed.objective["scale_rewards"] == "none" and changed.optimizer["learning_rate"] == 0.001
    assert changed.batch == stage.batch
    with refused("unreadable-setting", setting="scale=1"):
        fixed_rollout_training.with_settings(stage, ["scale=1"])


@pytest.mark.parametrize("run", runs())
def test_the_framework_of_every_run_replays_a_recording(run: str) -> None:
    file = adapter.FOLDER / load_run(run, "demo").framework / "fixed_rollouts.py"
    assert file.is_file(), "studies/lockstep/fixed_rollout_training.py loads it"


def test_the_run_that_the_others_extend_is_recorded() -> None:
    assert [name.partition("/")[2] for name in runs()] == ["trl", "openrlhf", "verl"]


def write(folder: Path, dtype: str, values: bytes) -> Path:
    """A safetensors file with one tensor of two values."""
    header = json.dumps({"w": {"dtype": dtype, "shape": [2], "data_offsets": [0, len(values)]}}).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + values)
    return folder


def test_weights_of_every_precision_are_compared_as_numbers(tmp_path: Path) -> None:
    single = weights.read(write(tmp_path / "single", "F32", np.array([1.0, -2.0], "<f4").tobytes()))
    half = weights.read(write(tmp_path / "half", "BF16", np.array([0x3F80, 0xC040], "<u2").tobytes()))  # 1, -3
    assert half["w"].tolist() == [1.0, -3.0]
    assert weights.distance(single, half) == (1.0, "w", 1.0)
    with refused("no-common-tensors"):
        weights.distance(single, {})
    with refused("unknown-dtype"):
        weights.read(write(tmp_path / "integers", "I8", b"ab"))
