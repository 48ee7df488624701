"""A training that was ended at a sign of collapse: each stage of the line passes on why, and its log is left."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.load_results import load_results
from contracts import ended_training, provenance, tables
from contracts.paths import ResultsFolder
from eval import generate, grade, score
from frameworks import __main__ as frameworks
from tests.unit.report.synthetic_results import write_run

RUN, WHY = "openr1/qwen2.5-math-7b", "training is collapsing (KL at step 7: 9 nats) and was ended"


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Call a command of the line."""

    def with_arguments(main: Callable[[], None], *arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", ["command", *map(str, arguments)])
        main()

    return with_arguments


def test_the_reason_reaches_the_scores_and_the_report(tmp_path: Path, call: Callable[..., None]) -> None:
    results = tmp_path / "demo"
    write_run(results, f"{RUN}/seed-0", 0.5, benchmarks=("words",), steps=(0, 20), problems=4)
    shutil.rmtree(results / "runs" / RUN / "seed-0" / "graded")
    run = ResultsFolder(results).run(f"{RUN}/seed-0")
    stage_log = run.stage(1) / "training_log.parquet"
    stage_log.parent.mkdir()
    provenance.write(stage_log, ended=WHY)
    training = [
        "--run",
        RUN,
        "--scale",
        "demo",
        "--seed",
        0,
        "--work",
        tmp_path / "work",
        "--model",
        tmp_path / "model",
    ]
    call(frameworks.main, "export", *training, "--step", 20, "--source", stage_log, "--output", run.checkpoint(20))
    assert [file.name for file in run.checkpoint(20).iterdir()] == ["provenance.json"]
    checkpoints = ["--checkpoint", "0=base", "--checkpoint", f"20={run.checkpoint(20)}"]
    sampling = ["--protocol", "demo", "--seed", 0, "--device", "cpu", "--benchmark", "arithmetic_words"]
    folders = ["--data", tmp_path, "--work", tmp_path / "work", "--output", run.samples]
    call(generate.main, "--run", f"{RUN}/seed-0", *checkpoints, *sampling, *folders)
    call(grade.main, "--samples", run.samples, "--data", tmp_path, "--output", run.graded)
    call(score.main, "--graded", run.graded, "--problems", tmp_path, "--output", run.scores)
    assert ended_training.reason(run.scores) == WHY
    stored = load_results(results, f"{RUN}/seed-0")
    assert not stored.evaluated and len(stored.log) == 20


def test_a_stage_after_one_that_was_ended_has_an_empty_log(tmp_path: Path, call: Callable[..., None]) -> None:
    ended_training.write_absence(tmp_path / "step-20", WHY)
    training = ["--run", RUN, "--scale", "demo", "--seed", 0, "--work", tmp_path / "work", "--problems", tmp_path]
    outputs = ["--output", tmp_path / "log.parquet", "--rollouts", tmp_path / "rollouts.parquet"]
    call(frameworks.main, "train", *training, "--model", tmp_path / "step-20", *outputs)
    assert ended_training.reason(tmp_path / "log.parquet") == WHY
    assert not len(tables.read(tmp_path / "log.parquet", tables.TRAINING_LOG))
    assert not len(tables.read(tmp_path / "rollouts.parquet", tables.ROLLOUT))
