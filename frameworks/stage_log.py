"""The training log and the rollouts of one stage, from the framework's own log and from the recorded rollouts.

Reading them never throws a training away: what cannot be read is reported as a warning, and is null or left out.
"""

from __future__ import annotations

import math
from typing import Any

from contracts import tables
from contracts.errors import UserError
from contracts.run_file import Run, Stage
from frameworks import recorder
from frameworks.adapter import Adapter, Paths

Row = dict[str, Any]


def read(adapter: Adapter, run: Run, stage: Stage, paths: Paths, run_name: str) -> tuple[list[Row], list[Row]]:
    """Rows of contracts.tables.TRAINING_LOG and of contracts.tables.ROLLOUT.

    Args:
        adapter: the run's.
        run: the run.
        stage: that was trained, to its end or not.
        paths: where it was trained.
        run_name: what tables call the run.

    Raises:
        UserError: a metric is not a number; the trainer itself may have continued.
    """
    recorded = recorder.read(paths.work, recorder.Batch.of(stage))
    log: list[Row] = []
    elapsed = 0.0
    for step, values in sorted(adapter.logged(run, stage, paths).items()):
        found = adapter.columns(stage, values)
        _check_numbers(found, step, run, paths)
        seconds = found.get("seconds")
        elapsed += seconds or 0.0
        tokens = found.get("tokens")
        timed = {
            "wall_time": elapsed,
            "tokens_per_second": tokens / seconds if seconds and tokens is not None else None,
        }
        log.append(_row(run_name, stage, step) | found | timed | recorder.columns(recorded.get(step, [])))
    unrecorded = [row["step"] for row in log if row["step"] - stage.first_step not in recorded]
    if unrecorded:
        print(
            f"WARNING: {run.name}: the rollouts of {len(unrecorded)} of {len(log)} steps, from step {unrecorded[0]}, "
            "are incomplete: accuracy, error rates and signal are null there",
            flush=True,
        )
    return log, [_rollout(run_name, stage, step, row) for step in recorded for row in recorder.kept(recorded[step])]


def fill(log: list[Row], run: Run, stage: Stage, run_name: str) -> list[Row]:
    """The log with a row for every step of a stage that was trained to its end; missing steps are reported.

    Args:
        log: as `read` gives it.
        run: for the message.
        stage: that was trained.
        run_name: what tables call the run.
    """
    by_step = {row["step"]: row for row in log}
    wanted = range(stage.first_step + 1, stage.first_step + stage.steps + 1)
    if missing := [step for step in wanted if step not in by_step]:
        print(f"WARNING: {run.name}: nothing is logged of {len(missing)} of {stage.steps} steps, from {missing[0]}")
    return [by_step.get(step) or _row(run_name, stage, step - stage.first_step) for step in wanted]


def _row(run_name: str, stage: Stage, step: int) -> Row:
    return dict.fromkeys(tables.TRAINING_LOG.names) | {
        "run": run_name,
        "stage": stage.number,
        "step": stage.first_step + step,
    }


def _check_numbers(found: dict[str, float], step: int, run: Run, paths: Paths) -> None:
    if broken := sorted(name for name, value in found.items() if not math.isfinite(value)):
        reason = "; every reward function gave none there" if broken == ["reward_mean"] else ""
        raise UserError(
            f"{run.name}: {', '.join(broken)} is not a number at step {step}{reason}; fix the settings and delete "
            f"{paths.work} to train again"
        )


def _rollout(run_name: str, stage: Stage, step: int, row: recorder.Row) -> Row:
    found = {name: row.get(name) for name in ("problem_id", "prompt", "completion", "reward", "verdict")}
    # Parquet holds UTF-8, which has no lone surrogates
    texts = {name: value.encode("utf-8", "replace").decode() for name, value in found.items() if isinstance(value, str)}
    return {"run": run_name, "stage": stage.number, "step": stage.first_step + step} | found | texts
