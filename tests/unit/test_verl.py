"""verl's adapter where it needs no verl: its line of a step, log and checkpoints, and the reward of a completion."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from frameworks import adapter, reward_hook, rollout_log
from frameworks.adapter import Paths
from frameworks.verl import reward_hook as verl_reward
from recipes import rewards
from recipes.runs import load_run
from tests.hostile_text import TEXTS
from tests.user_errors import refused

RUN = load_run("tinyzero/grpo-3b", "demo")
STAGE = RUN.stages[0]
VERL = adapter.load("verl")
LIMIT = STAGE.rollout["max_response_tokens"]
LINE = (
    "(TaskRunnerV1 pid=1) step:7 - critic/score/mean:0.25 - actor/loss:np.float64(-1e-3) - num_turns/max:np.int32(2) - "
    f"response_length/mean:9.0 - response_length/max:{LIMIT}.0 - response_length/clip_ratio:0.25\n"
)
PRINTED = {
    "reward_mean": 0.25, "loss": -0.001, "response_length_mean": 9.0, "response_length_max": LIMIT,
    "truncated_rate": 0.25,
}  # fmt: skip


def test_metrics_of_a_step_are_read_from_its_line() -> None:
    assert VERL.columns_in_line(STAGE, LINE) == PRINTED
    assert VERL.columns_in_line(STAGE, "(WorkerDict pid=7) loading step 3 of 4\n") is None


def test_the_clip_ratio_is_no_truncation_where_the_longest_was_not_cut() -> None:
    shorter = LINE.replace(f"max:{LIMIT}.0", f"max:{LIMIT - 1}.0")
    assert VERL.columns_in_line(STAGE, shorter) == PRINTED | {"response_length_max": LIMIT - 1, "truncated_rate": 0.0}


def test_a_prompt_that_verl_drops_ends_the_run() -> None:
    with refused("prompt-dropped"):
        VERL.columns_in_line(STAGE, "(AgentLoop pid=7) Error in _run_prompt for uid=1\n")


def paths(work: Path) -> Paths:
    return Paths(problems=Path(), model=Path(), work=work)


def test_the_log_is_read_whatever_a_kill_or_a_disk_did_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "native" / "log"
    log.mkdir(parents=True)
    lines = [json.dumps({"step": step, "data": {"actor/loss": float(step), "x": "\u2028\x85"}}) for step in (1, 2, 3)]
    (log / "from-000000.jsonl").write_text("\n".join(lines) + '\n{"step": 4, "da', encoding="utf-8")
    resumed = '{"step": 3, "data": {"actor/loss": null}}\n{"step": 4}\n{"step": 5, "data": {}}\n'
    (log / "from-000002.jsonl").write_text(resumed)
    metrics = VERL.metrics_of_training(RUN, STAGE, paths(tmp_path))
    assert [metrics[step]["actor/loss"] for step in (1, 2)] == [1.0, 2.0]
    assert math.isnan(metrics[3]["actor/loss"])  # the later attempt counts, and null is not a number
    assert sorted(metrics) == [1, 2, 3]
    assert "WARNING" in capsys.readouterr().out


def test_checkpoints_after_the_one_that_verl_names_are_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "native" / "checkpoints"
    for step in (2, 4, 6):
        (folder / f"global_step_{step}").mkdir(parents=True)
    (folder / "latest_checkpointed_iteration.txt").write_text("4")
    logs = [tmp_path / "native" / "log" / f"from-{step:06d}.jsonl" for step in (0, 2, 4, 5, 6)]
    logs[0].parent.mkdir()
    for log in logs:
        log.touch()
    assert VERL.newest_checkpoint(RUN, STAGE, paths(tmp_path)) == 4
    assert [log for log in logs if log.exists()] == logs[:3]  # what later ones say of steps is not of those to come
    assert {checkpoint.name for checkpoint in folder.glob("global_step_*")} == {"global_step_2", "global_step_4"}


@pytest.mark.parametrize("name", ["", "\0\0", "1", "7"])
def test_a_power_cut_that_spoils_the_name_of_the_newest_checkpoint_loses_no_other(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "native" / "checkpoints"
    for step in (8, 10, 12):
        (folder / f"global_step_{step}").mkdir(parents=True)
    (folder / "latest_checkpointed_iteration.txt").write_text(name)
    assert VERL.newest_checkpoint(RUN, STAGE, paths(tmp_path)) == 10
    assert (folder / "latest_checkpointed_iteration.txt").read_text() == "10"
    (folder / "global_step_10" / "model.pt").touch()  # empty
    assert VERL.newest_checkpoint(RUN, STAGE, paths(tmp_path)) == 8
    assert [checkpoint.name for checkpoint in folder.glob("global_step_*")] == ["global_step_8"]


TRUTH = {
    "problem_id": "p", "task": "countdown", "answer": "6", "meta": '{"nums": [1, 2, 3]}', "prefill": "<think>",
    "prompt": "Make 6.",
}  # fmt: skip


@pytest.mark.parametrize(
    ("completion", "score", "verdict"),
    [("</think><answer>1+2+3</answer>", 1.0, "correct")]
    + [(text, 0.0, "format_error") for text in TEXTS.values() if "<answer>" not in text],
)
def test_a_completion_is_judged_and_recorded_with_the_step_of_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, completion: str, score: float, verdict: str
) -> None:
    monkeypatch.setenv(rewards.VARIABLE, rewards.environment(RUN.rewards)[rewards.VARIABLE])
    monkeypatch.setenv(rollout_log.VARIABLE, str(rollout_log.start_attempt(tmp_path, 0).folder))
    reward_hook.load_rewards.cache_clear()
    rollout_log.process_recorder.cache_clear()
    answer = verl_reward.compute_score("countdown", completion, json.dumps(TRUTH), {"max_global_steps": 4})
    assert answer == {"score": score, "verdict": verdict}
    ((step, (row,)),) = rollout_log.read(tmp_path, rollout_log.Batch(1, 1)).items()
    assert (step, row["prompt"], row["completion"], row["reward"]) == (5, "Make 6.", completion, score)
