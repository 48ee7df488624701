"""What trainings cost: GPU-hours are each training's hours times its own GPUs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from analysis.compare_recipes import training_cost
from contracts import provenance, tables


def trained(folder: Path, hours: float, devices: list[str], **record: int) -> Path:
    log = folder / "stage-1" / "training_log.parquet"
    row = dict.fromkeys(tables.TRAINING_LOG.names) | {"run": "r", "stage": 1, "step": 1, "wall_time": 3600 * hours}
    tables.write(pa.Table.from_pylist([row], tables.TRAINING_LOG), tables.TRAINING_LOG, log)
    provenance.write(log, devices=devices, **record)
    return folder / "graded"


def test_each_training_has_its_own_gpus(tmp_path: Path) -> None:
    eight, one = trained(tmp_path / "eight", 2.0, ["H100"] * 8), trained(tmp_path / "one", 4.0, ["H100"])
    cost = training_cost.recorded([eight, one])
    assert cost.unit == "GPU-hours" and cost.amount == pytest.approx((16 + 4) / 2)


def test_of_a_machine_s_gpus_those_count_that_were_used_on_all_nodes(tmp_path: Path) -> None:
    alone = trained(tmp_path / "alone", 2.0, ["H100"] * 8, gpus=1)
    wide = trained(tmp_path / "wide", 1.0, ["H100"] * 8, gpus=32)
    assert training_cost.recorded([alone]).amount == pytest.approx(2)
    assert training_cost.recorded([alone, wide]).amount == pytest.approx((2 + 32) / 2)


def test_without_gpus_or_logs(tmp_path: Path) -> None:
    cost = training_cost.recorded(
        [trained(tmp_path / "a", 0.5, ["cpu x86"]), trained(tmp_path / "b", 1.5, ["cpu x86"])]
    )
    assert (cost.amount, cost.unit) == (pytest.approx(1.0), "hours")
    assert training_cost.recorded([tmp_path / "none" / "graded"]) == training_cost.ONE_TRAINING
