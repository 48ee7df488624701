"""What trainings cost besides their steps, from jobs and logs with known times."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from contracts import tables
from studies.training_time import study

RUNS = {"openr1/qwen2.5-math-7b": "trl", "tinyzero/grpo-3b": "verl"}


def _log(run: str, steps: int, start_up: float, step: float) -> pa.Table:
    rows = [
        {"run": f"{run}/seed-0", "stage": 1, "step": n, "wall_time": start_up + n * step} for n in range(1, steps + 1)
    ]
    return pa.Table.from_pylist(rows, tables.TRAINING_LOG)


def _jobs(folder: Path, *, start_up: float, step: float, steps: int) -> pd.DataFrame:
    """A training of each run, whose job ends a second after its last step, and a job that is no training."""
    rows = [{"rule": "export", "label": "export", "output": "x", "start": 0.0, "end": 1.0}]
    for name in RUNS:
        stage = Path("results/demo/runs", name, "seed-0/stage-1")
        tables.write(_log(name, steps, start_up, step), tables.TRAINING_LOG, folder / stage / "training_log.parquet")
        times = {"start": 5.0, "end": 5.0 + start_up + steps * step + 1.0}
        rows.append({"rule": "train", "label": name, "output": str(stage / "rollouts.parquet"), **times})
    return pd.DataFrame(rows)


def test_start_up_is_apart_from_steps(tmp_path: Path) -> None:
    trainings = study.trainings(_jobs(tmp_path, start_up=19.0, step=2.0, steps=10), tmp_path, "demo")
    assert [training.framework for training in trainings] == list(RUNS.values())
    for training in trainings:
        assert (training.steps, training.whole, training.in_steps) == pytest.approx((10, 40.0, 20.0))
    table = study.summary(trainings)
    assert list(table["whole / steps"]) == ["2.00", "2.00"]
    assert list(table["besides its steps"]) == ["20", "20"]


def test_removed_and_too_short_trainings_are_left_out(tmp_path: Path) -> None:
    jobs = _jobs(tmp_path, start_up=1.0, step=2.0, steps=1)
    assert study.trainings(jobs, tmp_path, "demo") == []
    assert study.trainings(jobs, tmp_path / "elsewhere", "demo") == []
