"""What a verl training is watched by while it runs: its own line of a step, and the completions that it dumped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.errors import UserError
from frameworks.verl import adapter as verl
from recipes import rewards
from recipes.runs import load_run

RUN = load_run("tinyzero/grpo-3b", "demo")
STAGE = RUN.stages[0]
LIMIT = STAGE.rollout["max_response_tokens"]
LINE = (
    "(TaskRunnerV1 pid=1) step:7 - critic/score/mean:0.25 - actor/loss:np.float64(-1e-3) - num_turns/max:np.int32(2) - "
    f"response_length/mean:9.0 - response_length/max:{LIMIT}.0 - response_length/clip_ratio:0.25\n"
)
PRINTED = {"reward": 0.25, "loss": -0.001, "length": 9.0}


def dump(native: Path, outputs: dict[str, tuple[float, str]]) -> None:
    truth = {"problem_id": "p", "task": "countdown", "answer": "6", "meta": '{"nums": [1, 2, 3]}', "prefill": "<think>"}
    rows = [
        {"output": output, "gts": json.dumps(truth), "score": score, "uid": uid}
        for uid, (score, output) in outputs.items()
    ]
    (native / "rollouts").mkdir()
    (native / "rollouts" / "7.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_accuracy_format_and_signal_come_from_the_completions(tmp_path: Path) -> None:
    right, wrong = "</think><answer>1+2+3</answer>", "</think><answer>1+2-3</answer>"
    dump(tmp_path, {"a_0": (1.0, right), "a_1": (0.1, wrong), "b_0": (0.0, "none"), "b_1": (0.0, "none")})
    assert verl._watched_metrics(RUN, STAGE, tmp_path, LINE) == PRINTED | {
        "truncated": 0.25, "accuracy": 0.25, "format_error": 0.5, "zero_signal": 0.5,
    }  # fmt: skip


def test_verls_clip_ratio_is_no_truncation_where_the_longest_was_not_cut(tmp_path: Path) -> None:
    dump(tmp_path, {"a_0": (0.0, "none")})
    shorter = LINE.replace(f"max:{LIMIT}.0", f"max:{LIMIT - 1}.0")
    found = verl._watched_metrics(RUN, STAGE, tmp_path, shorter)
    assert found is not None and found["truncated"] == 0.0


def test_a_dump_that_is_not_there_yet_leaves_what_verl_printed(tmp_path: Path) -> None:
    assert verl._watched_metrics(RUN, STAGE, tmp_path, LINE) == PRINTED
    dump(tmp_path, {"a_0": (0.0, "none")})
    file = tmp_path / "rollouts" / "7.jsonl"
    file.write_text(file.read_text()[:-9])
    assert verl._watched_metrics(RUN, STAGE, tmp_path, LINE) == PRINTED


def test_other_lines_have_no_metrics_and_a_failure_ends_the_run(tmp_path: Path) -> None:
    assert verl._watched_metrics(RUN, STAGE, tmp_path, "(WorkerDict pid=7) loading step 3 of 4\n") is None
    with pytest.raises(UserError, match="a reward function failed: ValueError: no"):
        verl._watched_metrics(RUN, STAGE, tmp_path, "(pid=7) a reward function failed: ValueError: no\n")


@pytest.mark.parametrize(
    ("groups", "rate"),
    [
        ([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0]], 0.5),
        ([[1.0], [0.0]], None),
        ([[1.0], [0.0, 0.0]], 1.0),
        ([], None),
    ],
)
def test_share_of_groups_without_a_signal(groups: list[list[float]], rate: float | None) -> None:
    assert rewards.zero_signal_rate(groups) == rate
