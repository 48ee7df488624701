"""The training log and the rollouts of one stage, from the framework's own log and from the recorded rollouts.

Reading them never throws a training away: what cannot be read is reported as a warning, and is null or left out.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

from contracts import tables
from contracts.run_file import Run, Stage
from frameworks import phases, rollout_log, update_tokens
from frameworks.adapter import Adapter, Paths
from recipes import rewards
from system.errors import UserError

Row = dict[str, Any]


def read(
    adapter: Adapter, run: Run, stage: Stage, paths: Paths, run_name: str, steps: int | None = None
) -> tuple[list[Row], list[Row]]:
    """Rows of contracts.tables.TRAINING_LOG and of contracts.tables.ROLLOUT.

    Args:
        adapter: the run's.
        run: the run.
        stage: that was trained; the log has a row for each of its steps.
        paths: where it was trained.
        run_name: what tables call the run.
        steps: the last step, if it was ended before that of the stage.

    Raises:
        UserError: a metric is not a number; the trainer itself may have continued.
    """
    batch = rollout_log.Batch.of_stage(stage)
    attempts = list(rollout_log.attempt_steps(paths.work, batch))
    recorded = rollout_log.complete_steps(attempts, batch)
    updates = rollout_log.of_last_attempts((attempt, _update_tokens(attempt, rows)) for attempt, rows in attempts)
    log: list[Row] = []
    elapsed, empty = 0.0, dict.fromkeys(tables.TRAINING_LOG.names)
    logged, names = adapter.metrics_of_training(run, stage, paths), rewards.short_names(run.rewards)
    last = stage.steps if steps is None else steps
    times = phases.intervals(paths.work)
    for step in range(1, last + 1):
        metrics = adapter.our_columns(logged.get(step, {}), stage.rollout["max_response_tokens"])
        _check_numbers(metrics, step, run, paths)
        seconds, tokens = metrics.get("seconds"), metrics.get("tokens")
        judged, interval = recorded.get(step, []), times.get(step)
        parts = phases.of_step(adapter.timers, logged.get(step, {}), seconds, interval)
        elapsed += sum(part["seconds"] for part in parts or [])
        position = {"run": run_name, "stage": stage.number, "step": stage.steps_before + step}
        timed = {
            "wall_time": elapsed if parts else None,
            "step_seconds": seconds,
            "tokens_per_second": tokens / seconds if seconds and tokens is not None else None,
        }
        length = metrics.get("response_length_mean")
        sampled = None if length is None or batch.resampled or not judged else len(judged) * length
        each = {
            "rewards": rollout_log.reward_columns(judged, names),
            "phases": parts,
            "sampled_tokens": sampled,
            **(interval.used if interval else {}),
            **updates.get(step, {}),
        }
        log.append(empty | metrics | position | timed | rollout_log.step_columns(judged) | each)
    _warn(run, last, logged, "nothing is logged")
    _warn(run, last, recorded, "rollouts are incomplete, so accuracy, error rates and signal are null")
    kept = {step: rollout_log.kept_rows(rows) for step, rows in recorded.items() if step <= last}
    return log, [_rollout(run_name, stage, step, row) for step, rows in kept.items() for row in rows]


def _update_tokens(attempt: rollout_log.Attempt, steps: Mapping[int, Sequence[Row]]) -> dict[int, dict[str, float]]:
    starts = {step: min(row["time"] for row in rows) for step, rows in steps.items()}
    return update_tokens.columns(attempt.folder, starts)


def _warn(run: Run, last: int, known: Container[int], what: str) -> None:
    if missing := [step for step in range(1, last + 1) if step not in known]:
        print(f"WARNING: {run.name}: {what} at {len(missing)} of {last} steps, from step {missing[0]}", flush=True)


def _check_numbers(metrics: dict[str, float], step: int, run: Run, paths: Paths) -> None:
    if broken := sorted(name for name, value in metrics.items() if not math.isfinite(value)):
        reason = "; every reward function gave none there" if broken == ["reward_mean"] else ""
        raise UserError(
            f"{run.name}: {', '.join(broken)} is not a number at step {step}{reason}; fix the settings and delete "
            f"{paths.work} to train again",
            code="metric-not-a-number",
            metrics=broken,
            step=step,
        )


def _rollout(run_name: str, stage: Stage, step: int, row: rollout_log.Row) -> Row:
    columns = {name: row.get(name) for name in ("problem_id", "prompt", "completion", "reward", "verdict")}
    # Parquet holds UTF-8, which has no lone surrogates
    texts = {
        name: value.encode("utf-8", "replace").decode() for name, value in columns.items() if isinstance(value, str)
    }
    return {"run": run_name, "stage": stage.number, "step": stage.steps_before + step} | columns | texts
