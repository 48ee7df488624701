"""OpenRLHF's adapter where it needs no OpenRLHF: units, checkpoints, its line of a step, and the reward of a text."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.run_file import Run, Stage
from frameworks import adapter, reward_hook, rollout_log, tensorboard_events
from frameworks.openrlhf import reward_hook as openrlhf_reward
from frameworks.openrlhf.adapter import keep_newest_checkpoint, path_without_separators
from frameworks.openrlhf.command import copies_of_data, data_passes, gpu_layout, stated_settings
from recipes import rewards
from recipes.runs import load_run
from system.errors import UserError
from tests.hostile_text import TEXTS
from tests.user_errors import refused

RUN = load_run("simplerl/qwen2.5-math-7b", "full")


def stage_of(run: Run, **changes: object) -> Stage:
    return replace(run.stages[0], **changes)


@pytest.mark.parametrize(
    ("rows", "steps", "expected"),
    [
        (8523, 160, (8, 20)),  # SimpleRL: 331 problems are left over
        (8192, 8, (8, 1)),
        (8523, 3, (3, 1)),  # less than one pass
        (1024, 2, (1, 2)),
    ],
)
def test_passes_over_the_data(rows: int, steps: int, expected: tuple[int, int]) -> None:
    assert data_passes(RUN, stage_of(RUN, steps=steps), rows) == expected


@pytest.mark.parametrize(("rows", "steps", "code"), [(8523, 100, "ends-within-a-pass"), (1000, 4, "too-few-problems")])
def test_a_stage_that_would_end_within_a_pass_is_refused(rows: int, steps: int, code: str) -> None:
    with refused(code):
        data_passes(RUN, stage_of(RUN, steps=steps), rows)


def test_what_a_start_printed_counts_before_events_of_an_earlier_one(tmp_path: Path) -> None:
    events = tensorboard_events.Writer(tmp_path / "native" / "log" / "ppo", 0)
    for step in (1, 2, 3):
        events.add(step, {"train/reward": 0.1 * step, "train/timing/checkpoint": 4.0})
    events.close()
    printed = [
        f"Global step {step}: {{'reward': {reward}, 'kl': 0.0}}" for step, reward in ((2, 0.2), (2, 0.5), (4, 0.7))
    ]
    (tmp_path / "train.log").write_text("\n".join(printed))
    paths = adapter.Paths(problems=Path(), model=Path(), work=tmp_path)
    logged = adapter.load("openrlhf").metrics_of_training(RUN, RUN.stages[0], paths)
    assert {step: round(values["reward"], 6) for step, values in logged.items()} == {1: 0.1, 2: 0.5, 3: 0.3, 4: 0.7}
    assert logged[2]["timing/checkpoint"] == 4.0 and "timing/checkpoint" not in logged[4]


def test_with_dynamic_sampling_there_are_ten_prompts_for_each_that_a_step_keeps() -> None:
    steady = {"learning_rate": 1e-6, "schedule": "constant_with_warmup", "warmup_ratio": 0.05}
    objective = {key: value for key, value in RUN.stages[0].objective.items() if key != "scale_rewards"}
    stage = stage_of(RUN, steps=100, optimizer=steady, objective={**objective, "dynamic_sampling": True})
    assert data_passes(RUN, stage, 8523) == (1000, 1)
    assert copies_of_data(RUN, stage, 8523) == 121 and copies_of_data(RUN, stage_of(RUN), 8523) == 1
    flags = stated_settings(RUN, stage, 8523)
    assert flags["data.max_samples"][0] == 1_024_000 <= 121 * 8523
    assert flags["actor.lr_warmup_ratio"][0] == 0.005  # of all prompts, over which OpenRLHF lays its schedule
    with refused("settings-conflict", key="optimizer.schedule"):
        stated_settings(RUN, replace(stage, optimizer={**steady, "schedule": "linear"}), 8523)


@given(st.integers(1, 20_000), st.integers(1, 500))
def test_passes_make_as_many_steps_as_asked(rows: int, steps: int) -> None:
    try:
        per_pass, number = data_passes(RUN, stage_of(RUN, steps=steps), rows)
    except UserError:
        assert rows < 1024 or (steps > rows // 1024 and steps % (rows // 1024))
        return
    assert per_pass * number == steps and per_pass * 1024 <= rows


def test_gpus_are_shared_out_as_in_the_script() -> None:
    assert gpu_layout(RUN, RUN.stages[0]) == {"actor": 8, "critic": 8, "vllm": 16}
    colocated = stage_of(RUN, rollout=RUN.stages[0].rollout | {"engine": "vllm-colocated"})
    assert gpu_layout(RUN, colocated) == {"actor": 32, "critic": 32, "vllm": 32}
    assert gpu_layout(replace(RUN, algorithm="grpo"), RUN.stages[0]) == {"actor": 16, "critic": 0, "vllm": 16}


HEADER = b'{"w": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}'
WEIGHTS = len(HEADER).to_bytes(8, "little") + HEADER + b"ww"  # a safetensors file


def checkpoint(folder: Path, step: int, *missing: str) -> None:
    """What OpenRLHF writes of a step, in its order, less what a kill left unwritten."""
    files = {
        "actor": folder / "_actor" / f"global_step{step}" / "metric.json",
        "weights": folder / f"global_step{step}_hf" / "model.safetensors",
        "tokenizer": folder / f"global_step{step}_hf" / "tokenizer.json",
        "critic": folder / "_critic" / f"global_step{step}" / "metric.json",
    }
    for name, file in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        if name not in missing:
            file.write_bytes(WEIGHTS if name == "weights" else b"{}")
    for state in ("_actor", "_critic"):
        (folder / state / "latest").write_text(f"global_step{step}")


@pytest.mark.parametrize("missing", ["actor", "weights", "tokenizer", "critic"])
def test_training_resumes_from_the_newest_complete_checkpoint(tmp_path: Path, missing: str) -> None:
    checkpoint(tmp_path, 4)
    checkpoint(tmp_path, 8)
    checkpoint(tmp_path, 12, missing)
    assert keep_newest_checkpoint(tmp_path, critic=True) == 8
    assert {(tmp_path / state / "latest").read_text() for state in ("_actor", "_critic")} == {"global_step8"}
    assert not list(tmp_path.rglob("global_step12*"))
    assert (tmp_path / "global_step4_hf").is_dir()  # to be exported later


def test_a_half_written_tokenizer_is_not_complete(tmp_path: Path) -> None:
    checkpoint(tmp_path, 4)
    (tmp_path / "global_step4_hf" / "tokenizer.json").write_text('{"version": "1.0", "trunc')
    assert keep_newest_checkpoint(tmp_path, critic=True) == 0
    assert not (tmp_path / "_actor").exists()  # otherwise OpenRLHF would load what is there


@pytest.mark.parametrize("state", ["_actor", "_critic"])
def test_what_a_power_cut_left_empty_is_not_complete(tmp_path: Path, state: str) -> None:
    for step in (4, 8):
        checkpoint(tmp_path, step)
    (tmp_path / state / "global_step8" / "zero_pp_rank_0_mp_rank_00_optim_states.pt").touch()
    assert keep_newest_checkpoint(tmp_path, critic=True) == 4
    (tmp_path / "global_step4_hf" / "model.safetensors").write_bytes(WEIGHTS[:-1])
    assert keep_newest_checkpoint(tmp_path, critic=True) == 0


def test_without_a_critic_none_is_waited_for(tmp_path: Path) -> None:
    checkpoint(tmp_path, 4, "critic")
    assert keep_newest_checkpoint(tmp_path, critic=False) == 4
    assert keep_newest_checkpoint(tmp_path / "nothing", critic=False) == 0


LINE = (
    "(PPOTrainer pid=18201) INFO 11-21 07:37:54 ✨ Global step 3: {'critic_loss': 0.02, 'kl': 1e-05, 'return': -0.5, "
    "'policy_loss': nan, 'actor_grad_norm': 1.8, 'rollout/reward_mean': 0.03125, 'rollout/response_length_mean': 24.0}"
)


def test_metrics_of_a_step_are_read_from_its_line() -> None:
    openrlhf = adapter.load("openrlhf")
    metrics = openrlhf.columns_in_line(RUN.stages[0], LINE)
    assert metrics is not None and math.isnan(metrics.pop("loss"))
    assert metrics == {
        "critic_loss": 0.02, "kl": 1e-5, "return": -0.5, "grad_norm": 1.8, "reward_mean": 0.03125,
        "response_length_mean": 24.0,
    }  # fmt: skip
    assert openrlhf.columns_in_line(RUN.stages[0], "(PPOTrainer pid=1) Episode [1/1]: 12%") is None


PROMPT = "<|im_start|>user\nhow many?<|im_end|>\n<|im_start|>assistant\n<think>"
LABEL = {
    "problem_id": "p0", "task": "math", "answer": "15", "meta": "{}", "prefill": "<think>",
}  # fmt: skip


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a training process."""
    own = [{"function": "recipes.openr1.reward.tags", "weight": 2.0}]
    special = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
    for name, value in {**rewards.environment(own), **openrlhf_reward.environment(special)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(rollout_log.VARIABLE, str(rollout_log.start_attempt(tmp_path, 0).folder))
    for cached in (openrlhf_reward.end_of_turn, reward_hook.load_rewards, rollout_log.process_recorder):
        cached.cache_clear()
    return tmp_path


@pytest.mark.parametrize("more", [text for text in TEXTS.values() if "<" not in text])
def test_a_reward_reads_the_turn_up_to_its_end(process: Path, more: str) -> None:
    text = f"so{more}</think><answer>15</answer>"
    answer = openrlhf_reward.judge(f"{PROMPT}{text}<|im_end|>\n<|im_start|>user\nmore", PROMPT, json.dumps(LABEL))
    assert answer == {"rewards": 2.0, "scores": 2.0, "extra_logs": {}}
    ((step, (row,)),) = rollout_log.read(process, rollout_log.Batch(1, 1)).items()
    assert (step, row["prompt"], row["completion"], row["reward"]) == (1, PROMPT, text, 2.0)
    assert (row["problem_id"], row["verdict"], row["format_error"]) == ("p0", None, False)


def test_a_text_that_is_not_of_its_prompt_is_reported(process: Path) -> None:
    with pytest.raises(ValueError, match="does not begin with its prompt"):
        openrlhf_reward.judge("something else", PROMPT, json.dumps(LABEL))
    noted = reward_hook.noted_failure(os.environ)
    assert noted and noted["reason"].startswith("ValueError: the completion's text does not begin with its prompt")
    assert noted["trace"].startswith("Traceback") and noted["reason"] in noted["trace"]


def test_variants_train_although_openrlhf_reads_their_names_as_separators(tmp_path: Path) -> None:
    run, data = load_run("crosscheck/openrlhf", "demo"), tmp_path / "openrlhf@steps=2,seed=1"
    data.mkdir()
    path = path_without_separators(run, data, tmp_path / "scratch")
    assert path.resolve() == data and not set(",@") & set(str(path))
    assert path_without_separators(run, tmp_path, tmp_path / "scratch") == tmp_path
    with refused("unusable-path"):
        path_without_separators(replace(run, hardware={**run.hardware, "nodes": 2}), data, tmp_path / "other")
