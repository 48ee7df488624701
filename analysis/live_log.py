"""What trainings that still run have logged: finished stages from their tables, others from their work folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from analysis.results import RunResults
from contracts import tables
from contracts.paths import ResultsFolder, RunFolder
from contracts.run_file import Run, Stage
from contracts.seeds import run_of
from eval import accuracy_so_far
from frameworks import adapter, collapse, rollout_log
from recipes.runs import load_run
from system.errors import UserError

Row = dict[str, Any]


@dataclass(frozen=True)
class LiveRun:
    """A run as far as it is trained: its log, signs of collapse, and completions of the newest step."""

    results: RunResults
    signs: list[collapse.Sign]
    step: int
    completions: list[Row]
    unseen: list[str] = field(default_factory=list)  # kinds of collapse that the log cannot show
    heldout: str = ""  # accuracy so far


def _stage_folder(work: Path, number: int) -> Path | None:
    """The newest work folder of a stage; others are of other settings."""
    folders = [folder for folder in work.glob(f"stage-{number}-*") if (folder / rollout_log.FOLDER).is_dir()]
    return max(folders, key=lambda folder: (folder / rollout_log.FOLDER).stat().st_mtime, default=None)


def printed_metrics(framework: adapter.Adapter, stage: Stage, folder: Path) -> dict[int, Row]:
    """The metrics of each step that the trainer has printed so far; a resumed training repeats steps."""
    log, starts = folder / "train.log", [attempt.resumed_from for attempt in rollout_log.attempts(folder)]
    by_step: dict[int, Row] = {}
    attempt, step = -1, 0
    for line in log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []:
        if line.startswith("$ "):  # the command of an attempt
            attempt += 1
            step = starts[attempt] if attempt < len(starts) else 0
            continue
        try:
            values = framework.columns_in_line(stage, line)
        except UserError:  # the training itself reports it
            continue
        if values is not None:
            step += 1
            by_step[step] = dict(values)
    return by_step


def _running_stage(run: Run, stage: Stage, folder: Path) -> tuple[list[Row], list[Row]]:
    """The log's rows of a stage that is being trained, and the newest judged completions."""
    logged = printed_metrics(adapter.load(run.framework), stage, folder)
    judged = rollout_log.read(folder, rollout_log.Batch.of_stage(stage))
    rows = []
    for step in sorted({*logged, *judged}):
        rewards = [row["reward"] for row in judged.get(step, []) if row["reward"] is not None]
        mean = {"reward_mean": sum(rewards) / len(rewards)} if rewards else {}
        values = {**mean, **logged.get(step, {}), **rollout_log.step_columns(judged.get(step, []))}
        known = {name: value for name, value in values.items() if name in tables.TRAINING_LOG.names}
        rows.append({"stage": stage.number, "step": stage.steps_before + step, **known})
    return rows, rollout_log.kept_rows(judged[max(judged)]) if judged else []


def from_log(run: RunResults) -> LiveRun:
    """A run of which the log alone is known."""
    absent = {column: {*run.log["step"]} - {*run.not_finite.get(column, [])} for column in run.log.columns}
    rows = [
        {str(key): None if pd.isna(value) and row["step"] in absent[str(key)] else value for key, value in row.items()}
        for row in run.log.to_dict("records")
    ]
    return _with_signs(run, rows, [])


def _with_signs(run: RunResults, rows: Sequence[Row], completions: list[Row]) -> LiveRun:
    signs = [sign for _, stage in groupby(rows, itemgetter("stage")) for sign in collapse.signs(stage)]
    return LiveRun(run, signs, rows[-1]["step"], completions, collapse.unseen(rows))


def read_run(results: Path, work: Path, name: str) -> LiveRun | None:
    """One run as far as it is trained; None before its first step.

    Args:
        results: `results/<scale>`.
        work: `work/<scale>`.
        name: `<recipe>/<run>/seed-<n>`.

    Raises:
        UserError: there is no such run file, or a finished stage's table is damaged.
    """
    run, stored = load_run(run_of(name), results.name), ResultsFolder(results).run(name)
    rows: list[Row] = []
    newest: list[Row] = []
    for stage in run.stages:
        table = stored.stage(stage.number) / "training_log.parquet"
        folder = _stage_folder(work / "runs" / name, stage.number)
        if table.is_file():
            rows += tables.read(table, tables.TRAINING_LOG).to_pylist()
            rollouts = tables.read(table.with_name("rollouts.parquet"), tables.ROLLOUT).to_pylist()
            last = max((row["step"] for row in rollouts), default=0)
            newest = [row for row in rollouts if row["step"] == last]
        elif folder:
            added, newest_here = _running_stage(run, stage, folder)
            rows, newest = rows + added, newest_here or newest
    if not rows and stored.training_log.is_file():  # its stages were deleted to free space
        rows = tables.read(stored.training_log, tables.TRAINING_LOG).to_pylist()
    if not rows:
        return None
    empty = dict.fromkeys(tables.TRAINING_LOG.names)
    rows = [empty | row | {"run": name} for row in rows]
    log = pa.Table.from_pylist(rows, tables.TRAINING_LOG).to_pandas()
    scores, graded = (schema.empty_table().to_pandas() for schema in (tables.SCORE, tables.GRADED))
    live_run = _with_signs(RunResults(name, log, {}, scores, graded, {}), rows, newest)
    return replace(live_run, heldout=accuracy_so_far.summary(name, accuracy_so_far.read(stored.graded)))


def stored_names(results: Path, work: Path) -> list[str]:
    """The trainings of which anything is stored."""
    folders = [folder for root in (work, results) for folder in (root / "runs").glob("*/*/seed-*/stage-*")]
    folders += (results / "runs").glob(f"*/*/seed-*/{RunFolder(Path()).training_log.name}")
    return sorted({"/".join(folder.parts[-4:-1]) for folder in folders})


def all_runs(results: Path, work: Path) -> tuple[list[LiveRun], dict[str, str]]:
    """Every run that has logged a step, and why others cannot be read, by their names."""
    runs, unreadable = list[LiveRun](), dict[str, str]()
    for name in stored_names(results, work):
        try:
            if live_run := read_run(results, work, name):
                runs.append(live_run)
        except (UserError, OSError) as error:
            unreadable[name] = str(error)
    return runs, unreadable
