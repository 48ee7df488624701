"""The table of runs, from a report's accuracies and Snakemake's times."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis import run_table
from tests.user_errors import refused

JOBS = pd.DataFrame(
    [
        ("base_model demo-countdown", 0, 100),
        ("train tinyzero/grpo-3b stage-1", 100, 160),
        ("train tinyzero/grpo-3b stage-1", 160, 240),  # another seed
        ("train tinyzero/grpo-3b stage-2", 240, 250),
        ("train tinyzero/grpo-3b-trl stage-1", 0, 900),
    ],
    columns=["label", "start", "end"],
)


def report(folder: Path, run: str, column: str) -> Path:
    tables = folder / "demo" / "report" / "some" / "tables"
    tables.mkdir(parents=True)
    accuracy = {
        f"{column}{end}": [first, last]
        for end, first, last in (("", 0.2, 0.5), ("_low", 0.1, 0.4), ("_high", 0.3, 0.6))
    }
    gain = {f"{column}_difference{end}": [None, value] for end, value in (("", 0.3), ("_low", 0.25), ("_high", 0.35))}
    pd.DataFrame({"run": run, "step": [0, 10], **accuracy, **gain}).to_csv(tables / "accuracy.csv")
    return tables.parent


def test_a_row_has_times_accuracies_and_gain(tmp_path: Path) -> None:
    (row,) = run_table.rows(report(tmp_path, "tinyzero/grpo-3b/seed-0", "countdown_demo"), JOBS)
    assert (row["run"], row["framework"]) == ("tinyzero/grpo-3b/seed-0", "verl, grpo")
    assert [row[f"{part} (s)"] for part in run_table.JOBS] == ["100", "80", "–"]
    assert row["base model (%)"] == "20.0 [10.0, 30.0]"
    assert row["last checkpoint (%)"] == "50.0 [40.0, 60.0], step 10"
    assert row["gain in points"] == "+30.0 [+25.0, +35.0]"


def test_the_average_stands_for_several_benchmarks(tmp_path: Path) -> None:
    (row,) = run_table.rows(report(tmp_path, "openr1/qwen2.5-math-7b/seed-0", "average"), JOBS.iloc[:0])
    assert row["gain in points"] == "+30.0 [+25.0, +35.0]"
    assert row["training (s)"] == "–"


def test_a_folder_that_is_no_report(tmp_path: Path) -> None:
    with refused("not-a-report"):
        run_table.rows(tmp_path, JOBS)
