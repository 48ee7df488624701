"""Recorded rollouts: every one is read back as it was judged, at its step, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import tables
from frameworks import rollout_log, stage_training_log
from frameworks.adapter import Paths
from frameworks.rollout_log import Attempt, Batch, LiveColumns, Recorder
from recipes.runs import load_run
from tests.hostile_text import TEXTS
from tests.user_errors import refused

BATCH = Batch(prompts=2, samples=2)


def row(step: int | None, problem: str, reward: float | None = 0.0, text: str = "text", **more: Any) -> dict[str, Any]:
    verdict = "correct" if reward else "wrong"
    return {
        "step": step, "problem_id": problem, "prompt": "asked", "completion": text, "reward": reward,
        "verdict": verdict, "format_error": False, **more,
    }  # fmt: skip


def step_of(step: int | None, *rewards_: float, **more: Any) -> list[dict[str, Any]]:
    return [row(step, problem, reward, **more) for problem, reward in zip("aabb", rewards_, strict=True)]


def write(attempt: Attempt, *rows: dict[str, Any]) -> None:
    Recorder(attempt.folder).write(rows)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_hostile_texts_come_back_and_go_into_a_table(tmp_path: Path, text: str) -> None:
    write(rollout_log.start_attempt(tmp_path, 0), *step_of(1, 0, 1, 0, 0, text=f"a{text}b"))
    by_step = rollout_log.read(tmp_path, BATCH)
    assert [one["completion"] for one in by_step[1]] == [f"a{text}b"] * 4
    run = load_run("openr1/qwen2.5-math-7b", "demo")
    rollouts = [stage_training_log._rollout("r/x/seed-0", run.stages[0], 1, one) for one in by_step[1]]
    table = pa.Table.from_pylist(rollouts, schema=tables.ROLLOUT)
    assert table["completion"][0].as_py() == f"a{text}b".encode("utf-8", "replace").decode()


def test_a_later_attempt_replaces_what_it_repeats(tmp_path: Path) -> None:
    first, second = rollout_log.start_attempt(tmp_path, 0), rollout_log.start_attempt(tmp_path, 1)
    write(first, *step_of(1, 0, 0, 0, 0), *step_of(2, 0, 0, 0, 0), *step_of(3, 0, 0, 0, 0)[:1])
    write(second, *step_of(2, 1, 1, 1, 1))
    by_step = rollout_log.read(tmp_path, BATCH)
    assert {step: {one["reward"] for one in rows} for step, rows in by_step.items()} == {1: {0}, 2: {1}}


def test_rows_without_a_step_are_counted_from_the_checkpoint_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(float(number) for number in range(100))
    monkeypatch.setattr(rollout_log.time, "time", lambda: next(clock))
    attempt = rollout_log.start_attempt(tmp_path, 4)
    one, other = Recorder(attempt.folder), Recorder(attempt.folder)  # processes that share each step
    for reward in (0.0, 1.0, 2.0):
        one.write([row(None, "a", reward), row(None, "b", reward)])
        other.write([row(None, "a", reward), row(None, "b", reward)])
    one.write([row(None, "a", 3.0)])  # cut off by a kill
    by_step = rollout_log.read(tmp_path, BATCH)
    assert {step: {one["reward"] for one in rows} for step, rows in by_step.items()} == {5: {0.0}, 6: {1.0}, 7: {2.0}}


def test_with_dynamic_sampling_a_step_ends_with_its_last_group_that_has_a_signal(tmp_path: Path) -> None:
    batch = Batch(prompts=2, samples=2, resampled=True)
    attempt = rollout_log.start_attempt(tmp_path, 0)
    live = LiveColumns(attempt, batch)
    first = [("a", 0, 1), ("b", 0, 1), ("b", 0, 1), ("a", 0, 0), ("a", 1, 0), ("c", 0, 0), ("c", 0, 0), ("a", 1, 1)]
    second = [("a", 2, 1), ("a", 3, 1), ("a", 3, 0), ("a", 2, 0)]
    for done, rows in enumerate((first, [*second, ("d", 0, 1)]), 1):  # the last is of a third step
        write(attempt, *[row(None, problem, reward, copy=copy) for problem, copy, reward in rows])
        assert live.columns(done)["zero_signal_rate"] == (0.5 if done == 1 else 0.0)
    by_step = rollout_log.read(tmp_path, batch)
    assert {step: len(rows) for step, rows in by_step.items()} == {1: 8, 2: 4}


def test_groups_with_a_signal_are_counted_where_no_step_has_more_of_them(tmp_path: Path) -> None:
    batch = Batch(prompts=2, samples=2, resampled=True)
    write(rollout_log.start_attempt(tmp_path, 0), *step_of(None, 0, 1, 0, 1))  # verl drops what it has too many of
    write(rollout_log.start_attempt(tmp_path / "known", 0), *step_of(1, 0, 1, 0, 1), *step_of(1, 0, 1, 1, 1))
    assert rollout_log.read(tmp_path, batch) == {}
    assert {step: len(rows) for step, rows in rollout_log.read(tmp_path / "known", batch).items()} == {1: 8}


def test_counts_that_do_not_add_up_are_refused(tmp_path: Path) -> None:
    write(rollout_log.start_attempt(tmp_path, 0), *[row(None, problem) for problem in "aaab"])
    assert rollout_log.read(tmp_path, BATCH) == {}


def test_what_cannot_be_read_is_reported_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attempt = rollout_log.start_attempt(tmp_path, 0)
    write(attempt, *step_of(1, 0, 1, 0, 0), *step_of(2, 0, 0, 0, 0))
    (file,) = attempt.folder.iterdir()
    content = file.read_bytes()
    file.write_bytes(content + b'{"step": 3, "problem')
    assert sorted(rollout_log.read(tmp_path, BATCH)) == [1, 2] and not capsys.readouterr().out
    file.write_bytes(content.replace(b'"reward": 1', b'"rewarf": 1').replace(b'"b"', b"7"))
    assert rollout_log.read(tmp_path, BATCH) == {}
    lines = content.split(b"\n")
    lines[5] = lines[5][:7]
    file.write_bytes(b"\n".join(lines))
    assert sorted(rollout_log.read(tmp_path, BATCH)) == [1]
    assert "WARNING" in capsys.readouterr().out


@pytest.mark.parametrize("known", [True, False])
def test_live_columns_are_those_of_the_finished_log(tmp_path: Path, known: bool) -> None:
    attempt = rollout_log.start_attempt(tmp_path, 2)
    live, writer = LiveColumns(attempt, BATCH), Recorder(attempt.folder)
    assert live.columns(3) == {}
    seen = {}
    for step, rewards in enumerate([(0, 1, 0, 0), (1, 1, 1, 1), (0, 0, 0, 0.5)], 3):
        writer.write(step_of(step if known else None, *rewards))
        if step != 3:  # a step's rows may come late, over a network file system
            seen[step] = live.columns(step)
    by_step = rollout_log.read(tmp_path, BATCH)
    assert seen == {step: rollout_log.step_columns(by_step[step]) for step in (4, 5)}
    assert rollout_log.step_columns(by_step[3]) == {
        "accuracy": 0.25, "wrong_answer_rate": 0.75, "format_error_rate": 0.0, "reward_std": 0.5,
        "zero_signal_rate": 0.5,
    }  # fmt: skip


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=40), min_size=1, max_size=3))
def test_every_rollout_that_is_kept_has_its_text(problems_of_processes: list[list[str]]) -> None:
    """However the processes share a step, and in whatever order they judge."""
    rows = []
    for problems in problems_of_processes:
        writer = Recorder.__new__(Recorder)
        writer._step, writer._kept = None, []
        rows += [(problem, writer._may_be_kept(1, problem)) for problem in problems]
    kept = rollout_log.kept_rows([{"problem_id": problem, "kept": kept} for problem, kept in rows])
    assert all(one["kept"] for one in kept) and len(kept) == min(len(rows), tables.ROLLOUTS_PER_STEP)


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
    assert rollout_log.zero_signal_rate(groups) == rate


class Logged:
    """An adapter whose framework has logged these steps."""

    timers: ClassVar[dict[str, str]] = {}

    def __init__(self, steps: dict[int, dict[str, float]]) -> None:
        self.steps = steps

    def metrics_of_training(self, *_: Any) -> dict[int, dict[str, float]]:
        return self.steps

    def our_columns(self, values: dict[str, float], _: Any) -> dict[str, float]:
        return values


def test_a_damaged_log_leaves_gaps_and_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = load_run("openr1/qwen2.5-math-7b", "demo")
    stage, paths = run.stages[0], Paths(Path(), Path(), tmp_path)
    logged: Any = Logged({1: {"reward_mean": 0.5, "seconds": 2.0, "tokens": 8.0}, 3: {"reward_mean": 0.5}})
    log, rollouts = stage_training_log.read(logged, run, stage, paths, "r/x/seed-0")
    assert [one["step"] for one in log] == list(range(1, stage.steps + 1)) and rollouts == []
    assert [one["reward_mean"] for one in log[:3]] == [0.5, None, 0.5]
    assert (log[0]["tokens_per_second"], log[0]["wall_time"], log[0]["accuracy"]) == (4.0, 2.0, None)
    said = capsys.readouterr().out
    assert f"nothing is logged at {stage.steps - 2} of {stage.steps} steps, from step 2" in said
    assert f"rollouts are incomplete, so accuracy, error rates and signal are null at {stage.steps} of" in said
    pa.Table.from_pylist(log, schema=tables.TRAINING_LOG)


def test_a_metric_that_is_not_a_number_is_an_error(tmp_path: Path) -> None:
    run = load_run("openr1/qwen2.5-math-7b", "demo")
    logged: Any = Logged({1: {"reward_mean": 0.5}, 2: {"reward_mean": float("nan")}})
    with refused("metric-not-a-number", metrics=["reward_mean"], step=2):
        stage_training_log.read(logged, run, run.stages[0], Paths(Path(), Path(), tmp_path), "r/x/seed-0")
