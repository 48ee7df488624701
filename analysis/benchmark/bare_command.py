"""What CrossZero adds to a training: its seconds beside those of the framework's own command on the same data.

With CrossZero they count from the start of the training's job to its end: its checks and tables, its watcher, its
hooks in the trainer. `frameworks/bare_training.py` says what is left of that in the other.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from analysis.measures import phases
from contracts import provenance, tables
from contracts.paths import RunFolder
from system.errors import UserError

WHOLE, STEPS, OUTSIDE = "whole", "steps", "start-up, end and between steps"
NOT_TIMED = ("start-up", "rest", "end")  # phases that are what timers leave


def seconds_by_part(folder: RunFolder, stages: int) -> dict[str, list[float]]:
    """By part of a training, its seconds with CrossZero and by the framework's own command.

    Parts are the whole, what lies outside of steps, the steps by the framework's own time of each, and their phases by
    the framework's timers. Empty where the command was not run, or on another machine, or the training was resumed:
    then its time is not that of one job.

    Args:
        folder: of the training.
        stages: how many it has.
    """
    with_crosszero, bare = Counter[str](), Counter[str]()
    for stage in range(1, stages + 1):
        log = folder.stage(stage) / "training_log.parquet"
        if not folder.bare_training(stage).is_file():
            return {}
        record, of_bare = provenance.read(log), provenance.read(folder.bare_training(stage))
        if record.get("machine") != of_bare.get("machine"):
            return {}
        job = record.get("job_seconds")
        rows = tables.read(log, tables.TRAINING_LOG, ["step_seconds", "phases"]).to_pandas()
        timed = phases.seconds(rows)
        if job is None or job < sum(timed.values()) or phases.starts(rows) > 1 or rows["step_seconds"].isna().all():
            return {}
        _add(with_crosszero, job, float(rows["step_seconds"].sum()), timed)
        content = _read(folder, stage)
        _add(bare, content["seconds"], sum(content["parts"].values()), content["parts"])
    return {part: [with_crosszero[part], bare[part]] for part in with_crosszero if part in bare}


def _read(folder: RunFolder, stage: int) -> dict[str, Any]:
    file = folder.bare_training(stage)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return {"seconds": float(content["seconds"]), "parts": {k: float(v) for k, v in content["parts"].items()}}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(
            f"{file} should say how long a training took, but does not: delete it, and run the benchmark again",
            code="damaged-file",
            path=str(file),
        ) from None


def _add(total: Counter[str], whole: float, in_steps: float, timed: dict[str, float]) -> None:
    total.update({WHOLE: whole, OUTSIDE: whole - in_steps, STEPS: in_steps})
    total.update({phase: seconds for phase, seconds in timed.items() if phase not in NOT_TIMED})
