"""What a training of the compared recipes cost, by the logs and records beside their samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from contracts import provenance, tables


class Cost(NamedTuple):
    """Of one training, on average."""

    amount: float
    unit: str  # GPU-hours, hours without a GPU, or trainings


ONE_TRAINING = Cost(1.0, "trainings")


def recorded(folders: Sequence[Path]) -> Cost:
    """The mean over the runs whose stages have logs with times; a training, where there are none.

    Args:
        folders: graded samples of the runs, beside which their stages' logs are.
    """
    hours, on_gpus = [], False
    for folder in folders:
        logs = sorted(folder.resolve().parent.glob("stage-*/training_log.parquet"))
        record = provenance.read(logs[0]) if logs else {}
        gpus = len(provenance.used_gpus(record))
        times = [tables.read(log, tables.TRAINING_LOG)["wall_time"].drop_null().to_pylist() for log in logs]
        if seconds := sum(max(stage, default=0.0) for stage in times):
            hours.append(seconds / 3600 * max(1, gpus))
            on_gpus = on_gpus or gpus > 0
    if not hours:
        return ONE_TRAINING
    return Cost(sum(hours) / len(hours), "GPU-hours" if on_gpus else "hours")
