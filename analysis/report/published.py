"""The published figures, with their source: results/reference/."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from analysis.report.accuracy import Row, make_rows
from analysis.report.checkpoint_comparison import Interval, mean_of
from analysis.results import BENCHMARKS
from analysis.table_export import points
from contracts.errors import UserError
from eval import statistics

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
PUBLISHED = REFERENCE / "report_tables.csv"
AVERAGE_PRINTED = "average_as_printed"


def source(path: Path = PUBLISHED) -> str:
    """Where the figures come from, as the file itself says."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))


@cache
def problems() -> dict[str, int]:
    """How many problems each benchmark has."""
    counts: dict[str, int] = yaml.safe_load((REFERENCE / "problems.yaml").read_text(encoding="utf-8"))
    return counts


def _all(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, comment="#", dtype={"table": str})


def table_names(path: Path = PUBLISHED) -> list[str]:
    """The published tables, in their order."""
    return list(dict.fromkeys(_all(path)["table"]))


def published(name: str, path: Path = PUBLISHED) -> pd.DataFrame:
    """A published table: recipe, algorithm, checkpoint, step, BENCHMARKS and average_as_printed.

    Accuracies are fractions, as everywhere; the file has percent, as printed.
    """
    figures = _all(path)
    rows = figures[figures["table"] == name].sort_values("step", ignore_index=True)
    if rows.empty:
        raise UserError(f"{path.name} should have a table {name}, but has only {', '.join(table_names(path))}")
    accuracies = [*BENCHMARKS, AVERAGE_PRINTED]
    rows[accuracies] = rows[accuracies] / 100
    return rows


def solved(share: float, of: int) -> int:
    """How many problems a printed percentage stands for; raises UserError where no whole number rounds to it."""
    count = round(share * of)
    if abs(round(100 * count / of, 1) - round(100 * share, 1)) > 1e-9:
        raise UserError(
            f"a printed {100 * share:.1f} % should be a share of {of} problems, but {count} of them are "
            f"{100 * count / of:.1f} %; mend results/reference"
        )
    return count


def estimate(share: float, of: int) -> statistics.Estimate:
    """A printed share of problems answered once, with its interval."""
    return statistics.avg_at_k(np.arange(of)[:, None] < solved(share, of))._replace(value=share)


def rows(name: str, path: Path = PUBLISHED) -> list[Row]:
    """The rows of a published table: intervals and differences from n and k alone, for there are no samples to pair."""
    figures = {int(row["step"]): row for row in published(name, path).to_dict("records")}
    counts = problems()

    def of(step: int, benchmark: str) -> statistics.Estimate:
        return estimate(figures[step][benchmark], counts[benchmark])

    labels = {step: str(row["checkpoint"]) for step, row in figures.items()}
    return make_rows(
        f"published, table {name}",
        labels,
        BENCHMARKS,
        lambda step, benchmark: Interval(*of(step, benchmark)),
        lambda before, after, benchmark: Interval(
            *statistics.independent_difference(of(before, benchmark), of(after, benchmark))
        ),
    )


def as_printed(name: str, path: Path = PUBLISHED) -> pd.DataFrame:
    """The table as the report prints it: model, benchmarks and average in percent with one digit.

    The average is the printed one. It is the mean of the row's six figures, but three of those lie halfway between
    two digits (45.85, 51.25, 48.15), and no one way of rounding gives what is printed for all three.
    """
    figures = published(name, path)
    shown = {"model": figures["checkpoint"]}
    shown |= {
        column: figures[column].map(lambda share: f"{100 * share:.1f}") for column in (*BENCHMARKS, AVERAGE_PRINTED)
    }
    return pd.DataFrame(shown).rename(columns={AVERAGE_PRINTED: "average"})


def what_it_shows(tables: Iterable[str], path: Path = PUBLISHED) -> list[str]:
    """Which of the published differences are beyond noise, in sentences made from the numbers."""
    sentences, counts = [], problems()
    small = [name for name in BENCHMARKS if counts[name] <= 40]
    apart = {name: [0, 0] for name in BENCHMARKS}
    for name in tables:
        made = rows(name, path)
        base, last, top = made[0], made[-1], max(made, key=lambda row: row.cells["average"].accuracy.value)
        gap = last.cells["average"].difference
        assert gap is not None
        words = {"rose": "above", "fell": "below", "cannot tell": "not distinguishable from"}[gap.change]
        text = (
            f"Table {name}: {last.label} is {words} {base.label} on average ({points(gap.value)} points, 95 % interval "
            f"{points(gap.low)} to {points(gap.high)})"
        )
        if top is not base:
            equal = [row for row in made if row is not top and _gap(top, row, name, path).change == "cannot tell"]
            verdict = f"cannot be told from {len(equal)} of the other {len(made) - 1} rows" if equal else "stands alone"
            text += f"; its best average, {100 * top.cells['average'].accuracy.value:.1f} at {top.label}, {verdict}"
        sentences.append(f"{text}.")
        for row in made[1:]:
            for benchmark in BENCHMARKS:
                step = row.cells[benchmark].from_above
                assert step is not None
                apart[benchmark][0] += step.change != "cannot tell"
                apart[benchmark][1] += 1
    told = ", ".join(f"{found} of {of} on {name} (n = {counts[name]})" for name, (found, of) in apart.items())
    sentences.append(f"Differences between neighbouring rows that are beyond noise: {told}.")
    for name in small:
        n, half = counts[name], counts[name] // 2
        need = next(k for k in range(1, n) if _beyond(half, half + k, n)) if n > 2 else n
        sentences.append(
            f"With {n} problems answered once, {name} can tell {half}/{n} only from {half + need}/{n} or more: "
            f"differences under {100 * need / n:.0f} points around one half are noise."
        )
    return sentences


def _beyond(low: int, high: int, n: int) -> bool:
    pair = [statistics.avg_at_k(np.arange(n)[:, None] < count) for count in (low, high)]
    return statistics.independent_difference(pair[0], pair[1]).low > 0


def _gap(top: Row, row: Row, name: str, path: Path) -> Interval:
    """The average of the row `top` less that of another of the same table."""
    parts = []
    for benchmark in BENCHMARKS:
        first, second = (statistics.Estimate(*_numbers(r.cells[benchmark].accuracy)) for r in (row, top))
        parts.append(Interval(*statistics.independent_difference(first, second)))
    return mean_of(parts)


def _numbers(interval: Interval) -> tuple[float, float, float]:
    return interval.value, interval.low, interval.high
