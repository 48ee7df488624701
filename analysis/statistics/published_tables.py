"""The published tables (results/reference/report_tables.csv), with intervals from the number of problems alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import reference
from analysis.statistics.accuracy_rows import CheckpointRow, make_rows
from eval import benchmark, statistics
from eval.statistics import Estimate
from system.errors import UserError

AVERAGE_PRINTED = "average_as_printed"


@cache
def sizes() -> dict[str, int]:
    """Number of problems of each published benchmark."""
    return {name: benchmark.size(name) for name in reference.published_benchmarks()}


def table_names(path: Path = reference.PUBLISHED) -> list[str]:
    """The published tables, in their order."""
    return list(dict.fromkeys(reference.read_csv(path)["table"]))


def published_table(name: str, path: Path = reference.PUBLISHED) -> pd.DataFrame:
    """A published table: recipe, algorithm, checkpoint, step, the benchmarks and average_as_printed, as fractions.

    Raises:
        UserError: there is no table of this name.
    """
    figures = reference.read_csv(path)
    rows = figures[figures["table"] == name].sort_values("step", ignore_index=True)
    if rows.empty:
        raise UserError(
            f"{path.name} should have a table {name}, but has only {', '.join(table_names(path))}",
            code="unknown-name", name=name,
        )  # fmt: skip
    accuracies = [*sizes(), AVERAGE_PRINTED]
    rows[accuracies] = rows[accuracies] / 100  # printed in percent
    return rows


def solved(share: float, problems: int) -> int:
    """How many problems a printed share (fraction) means. Raises UserError if no whole number rounds to it."""
    count = round(share * problems)
    if abs(round(100 * count / problems, 1) - round(100 * share, 1)) > 1e-9:
        raise UserError(
            f"a printed {100 * share:.1f} % should be a share of {problems} problems, but {count} of them are "
            f"{100 * count / problems:.1f} %; correct results/reference",
            code="impossible-share", share=share, problems=problems,
        )  # fmt: skip
    return count


def estimate(share: float, problems: int) -> Estimate:
    """A printed share of problems answered once, with its interval."""
    return statistics.avg_at_k(np.arange(problems)[:, None] < solved(share, problems))._replace(value=share)


def rows(name: str, path: Path = reference.PUBLISHED) -> list[CheckpointRow]:
    """The rows of a published table. Nothing is paired because there are no samples."""
    figures = {int(row["step"]): row for row in published_table(name, path).to_dict("records")}

    def accuracy(step: int, name: str) -> Estimate:
        return estimate(figures[step][name], sizes()[name])

    return make_rows(
        f"published, table {name}",
        {step: str(row["checkpoint"]) for step, row in figures.items()},
        list(sizes()),
        accuracy,
        lambda before, after, name: statistics.independent_difference(accuracy(before, name), accuracy(after, name)),
    )
