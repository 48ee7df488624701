"""Each step of a training is followed by TensorBoard events and a chosen tracker; accuracy so far."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from contracts import paths, tables
from eval import accuracy_so_far
from frameworks import experiment_trackers, tensorboard_events
from frameworks.experiment_trackers import Trackers
from tests.user_errors import refused

TRACKIO = """
from pathlib import Path
from tests.user_errors import refused
def init(project, name, resume): Path("log").write_text(f"{project} {name}\\n")
def log(values, step):
    if step > 12: raise RuntimeError("no disk")
    with Path("log").open("a") as file: file.write(f"{step} {values}\\n")
def finish(): pass
"""


def followed(folder: Path, first: int, resumed_from: int, steps: range) -> None:
    trackers = Trackers(
        experiment_trackers.events_folder(folder / "stage-2" / "training_log.parquet"),
        "r/r/seed-0",
        first,
        resumed_from,
    )
    for step in steps:
        trackers.add(step, {"step": step, "reward_mean": step / 2, "kl": None, "entropy": float("nan")})
    trackers.close()


def rewards(folder: Path) -> list[tuple[int, float]]:
    files = sorted((folder / "tensorboard" / "stage-2").glob(tensorboard_events.PATTERN))
    return [
        (one.step, one.value)
        for file in files
        for one in tensorboard_events.read_scalars(file)
        if one.tag == "reward_mean"
    ]


def test_events_of_a_resumed_training_follow_and_those_of_a_new_one_replace(tmp_path: Path) -> None:
    followed(tmp_path, 100, 0, range(1, 4))
    followed(tmp_path, 100, 2, range(3, 5))
    assert rewards(tmp_path) == [(101, 0.5), (102, 1.0), (103, 1.5), (103, 1.5), (104, 2.0)]
    followed(tmp_path, 0, 0, range(1, 2))
    assert rewards(tmp_path) == [(1, 0.5)]


def test_a_tracker_that_fails_does_not_end_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trackio.py").write_text(TRACKIO)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "trackio", raising=False)
    monkeypatch.setenv(experiment_trackers.VARIABLE, "trackio")
    monkeypatch.setenv("WANDB_MODE", "offline")
    followed(tmp_path, 10, 0, range(1, 5))
    assert (tmp_path / "log").read_text() == "crosszero r/r/seed-0\n11 {'reward_mean': 0.5}\n12 {'reward_mean': 1.0}\n"
    assert capsys.readouterr().out.count("no more steps are sent to the tracker: no disk") == 1
    assert len(rewards(tmp_path)) == 4


def test_stages_and_what_is_resumed_are_one_run_of_weights_and_biases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wandb.py").write_text(
        "started = []\ndef init(project, name, id, resume): started.append((id, resume))\ndef finish(): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    monkeypatch.setenv(experiment_trackers.VARIABLE, "wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    for steps_before, resumed_from in ((0, 0), (0, 7), (10, 0), (10, 3), (0, 0)):
        stage = "stage-2" if steps_before else "stage-1"
        events = experiment_trackers.events_folder(tmp_path / stage / "training_log.parquet")
        Trackers(events, "r/r/seed-0", steps_before, resumed_from).close()
    started = sys.modules["wandb"].started
    assert len({one for one, _ in started[:4]}) == 1 != len({*started}) and {how for _, how in started} == {"allow"}


@pytest.mark.parametrize(("name", "code"), [("tracker", "unknown-name"), ("wandb", "missing-package")])
def test_a_tracker_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str
) -> None:
    monkeypatch.setenv(experiment_trackers.VARIABLE, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, name, raising=False)
    with refused(code):
        Trackers(tmp_path, "r/r/seed-0", 0, 0)


def test_accuracy_so_far(tmp_path: Path) -> None:
    assert accuracy_so_far.summary("a/b/seed-0", accuracy_so_far.read(tmp_path)) == ""
    for step, benchmark, verdicts in ((0, "a", "cw"), (0, "b", "ww"), (20, "a", "cc"), (20, "b", "cw")):
        names = ["correct" if verdict == "c" else "wrong" for verdict in verdicts]
        rows = [{"run": "r", "step": step, "benchmark": benchmark, "verdict": name} for name in names]
        file = tmp_path / f"step-{step}" / f"{benchmark}.parquet"
        tables.write(pa.Table.from_pylist(rows, tables.GRADED), tables.GRADED, file)
    assert accuracy_so_far.read(tmp_path) == {0: 0.25, 20: 0.75}
    (tmp_path / "step-40").mkdir()
    (tmp_path / "step-40" / "a.parquet").write_bytes(b"PAR1")  # being written
    assert accuracy_so_far.summary("a/b/seed-0", accuracy_so_far.read(tmp_path)) == "25.0 → 75.0 % (step 20)"
    assert accuracy_so_far.summary("a/b/seed-0", {0: 0.5}) == "50.0 % (base model)"
    assert accuracy_so_far.summary("models/mine-0123", {0: 0.5}) == "50.0 %"


def test_only_verdicts_of_runs_are_held_out_accuracy() -> None:
    runs = Path("results/demo/runs")
    assert paths.run_of_graded(runs / "a/b/seed-0/graded") == "a/b/seed-0"
    assert paths.run_of_graded(runs / "models/mine-0123/graded") == "models/mine-0123"
    assert paths.run_of_graded(Path("results/demo/contamination/a/b/seed-0/graded")) == ""
