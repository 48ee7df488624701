"""The published figures, with their source: results/reference/report_tables.csv."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from contracts.errors import UserError

PUBLISHED = Path(__file__).resolve().parent.parent / "results" / "reference" / "report_tables.csv"
BENCHMARKS = ("gsm8k", "math500", "minerva_math", "olympiadbench", "aime24", "amc23")  # in the report's column order


def in_order(benchmarks: Iterable[str]) -> list[str]:
    """Benchmarks in the report's column order; those that it does not have come after, by name."""
    place = {name: position for position, name in enumerate(BENCHMARKS)}
    return sorted(benchmarks, key=lambda name: (place.get(name, len(place)), name))


def source(path: Path = PUBLISHED) -> str:
    """Where the figures come from, as the file itself says."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))


def published(recipe: str, path: Path = PUBLISHED) -> pd.DataFrame:
    """The published checkpoints of a recipe: table, algorithm, checkpoint, step, BENCHMARKS and average_as_printed.

    Accuracies are fractions, as everywhere; the file has percent, as printed.
    """
    figures = pd.read_csv(path, comment="#")
    rows = figures[figures["recipe"] == recipe].sort_values("step", ignore_index=True)
    if rows.empty:
        known = ", ".join(sorted(figures["recipe"].unique()))
        raise UserError(f"{path.name} should have published figures of {recipe}, but has only those of {known}")
    accuracies = [*BENCHMARKS, "average_as_printed"]
    rows[accuracies] = rows[accuracies] / 100
    return rows
