"""Training logs as CSV: an export of an experiment tracker, or a published curve with our own columns."""

from __future__ import annotations

import csv
from collections.abc import Container
from pathlib import Path

from system.errors import UserError

# Columns with the step, the first that is there: trackers also count their own calls (`_step`), which may be more.
STEPS = ("train/global_step", "training/global_step", "global_step", "trainer/global_step", "step", "Step", "_step")


def metric_in_column(column: str, known: Container[str]) -> str | None:
    """The metric in a column, which may have the name of a run (`run - metric`) or `train/` before it; or None."""
    name = column.rpartition(" - ")[2]
    return next((one for one in (name, name.removeprefix("train/")) if one in known), None)


def unknown_columns(file: Path, known: Container[str]) -> list[str]:
    """The columns that are neither a known metric, nor the step, nor a tracker's own bounds and times."""
    with file.open(encoding="utf-8-sig", newline="") as stream:
        columns = list(csv.DictReader(stream).fieldnames or ())
    own = ("_step", "_timestamp", "_runtime", "_wandb", "__MIN", "__MAX")
    unknown = [column for column in columns if column not in STEPS and not column.endswith(own)]
    return [column for column in unknown if metric_in_column(column, known) is None]


def read(file: Path, known: Container[str]) -> dict[int, dict[str, float]]:
    """By step, the known metrics; an empty cell is none, and of several rows of a step the last cell counts.

    Args:
        file: with one run, and a heading.
        known: names of metrics.

    Raises:
        UserError: it has no column of steps, two of one metric, or a cell that is no number, or it is no CSV in UTF-8.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            return _rows(file, csv.DictReader(stream), known)
    except (UnicodeDecodeError, csv.Error) as error:
        sentence = f"{file} should be CSV in UTF-8, but is not ({error}): export it again in UTF-8"
        raise UserError(sentence, code="unreadable-csv", path=str(file)) from None


def _rows(file: Path, rows: csv.DictReader[str], known: Container[str]) -> dict[int, dict[str, float]]:
    by_step: dict[int, dict[str, float]] = {}
    columns = list(rows.fieldnames or ())
    step_column = next((name for name in STEPS if name in columns), None)
    if step_column is None:
        has = f"has {', '.join(columns)}" if columns else "is empty"
        sentence = f"{file} should have a column of steps such as step or _step, but {has}"
        raise UserError(sentence, code="no-step-column", path=str(file))
    metrics = {column: name for column in columns if (name := metric_in_column(column, known))}
    named = [step_column if column == step_column else metrics.get(column) for column in columns]
    if twice := next((name for name in named if name and named.count(name) > 1), None):
        sentence = f"{file} should be the log of one run, but has {twice} in several columns; export one run"
        raise UserError(sentence, code="several-runs", path=str(file), column=twice)
    for number, row in enumerate(rows, start=2):
        try:
            if None in row:
                raise ValueError(f"{len(row[None])} more than its heading")
            values = {name: float(row[column]) for column, name in metrics.items() if row[column]}
            if values and row[step_column]:
                step = float(row[step_column])
                if not step.is_integer():
                    raise ValueError(f"step {row[step_column]}")
                by_step.setdefault(int(step), {}).update(values)
        except (TypeError, ValueError, OverflowError) as error:
            sentence = f"{file}, line {number} should hold numbers, but does not ({error})"
            raise UserError(sentence, code="not-a-number", path=str(file), line=number) from None
    return dict(sorted(by_step.items()))
