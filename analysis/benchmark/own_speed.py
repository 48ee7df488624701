"""CrossZero's own speed by commit: what it takes beside a bare way to the same end, both measured in turn.

`results/reference/own_speed.csv` has a row per commit, machine and ratio; `make bench` writes it
(`tests/performance/own_speed.py`) and fails where a ratio is worse than it was by more than its noise. Who accepts that
deletes the rows that it is worse than.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analysis.pages import figure_style
from system import durable
from system.errors import ROOT, UserError

FILE = ROOT / "results" / "reference" / "own_speed.csv"
FALSE_ALARMS = 0.05  # of a measurement without any change, over all its ratios
ENOUGH = 5  # commits that show how much runs vary: one change among their differences does not move the median
MEDIAN = 0.6745  # of a normal value's size, in standard deviations: Hampel 1974, JASA 69, 383-393
NUMBERS: dict[str, Callable[[str], Any]] = {"repetitions": int, "value": float, "low": float, "high": float}
PANEL_COLUMNS, PANEL_HEIGHT = 3, 1.9


@dataclass(frozen=True)
class Row:
    """One ratio, CrossZero's seconds to those of the bare way.

    Attributes:
        commit: that was measured, `+` behind it where files had changed since.
        date: of the measurement.
        machine: processor, cores and memory, and whether other work ran beside.
        ratio: its name.
        repetitions: pairs, each with a ratio of its own.
        value: their geometric mean.
        low: of its 95 % interval.
        high: likewise.
    """

    commit: str
    date: str
    machine: str
    ratio: str
    repetitions: int
    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse what cannot be compared."""
        texts = all(text and text.isprintable() for text in (self.commit, self.date, self.machine, self.ratio))
        if not (texts and self.repetitions > 1 and 0 < self.low < self.value < self.high < math.inf):
            raise ValueError("an empty or unreadable cell, fewer than 2 repetitions, or not 0 < low < value < high")


def read(file: Path) -> list[Row]:
    """All rows, the oldest first; none without the file.

    Raises:
        UserError: a line is no such row.
    """
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", errors="surrogateescape", newline="") as lines:
        table = csv.DictReader(lines)
        try:
            return [Row(**{key: NUMBERS.get(key, str)(cell) for key, cell in cells.items()}) for cells in table]
        except (csv.Error, TypeError, ValueError) as error:
            raise UserError(
                f"{file}:{table.line_num} should be a row of {', '.join(one.name for one in fields(Row))}, but is not "
                f"({error}): mend or delete the line",
                code="damaged-table", path=str(file), line=table.line_num,
            ) from error  # fmt: skip


def write(rows: Sequence[Row], file: Path) -> None:
    """Write all rows."""
    frame = pd.DataFrame([astuple(row) for row in rows], columns=[one.name for one in fields(Row)])
    durable.write_text(file, frame.to_csv(index=False, float_format="%.6g"))


def worse(history: Sequence[Row], new: Sequence[Row]) -> list[str]:
    """A sentence for each ratio that is worse than it was at another commit on such a machine.

    Compared with every other commit, so that several small losses are one large one, by Welch's t of the logarithms
    (Welch 1947, Biometrika 34, 28-35), one-sided, at FALSE_ALARMS divided by the number of comparisons of all ratios
    (Bonferroni).

    Runs can vary by more than the repetitions within one: grading of f6fb604f, run four times in a row, took 0.363 to
    0.398 times as long, a spread of twice the standard errors. So from ENOUGH commits on, the error of a difference is
    at least what the median difference of neighbouring commits says, which slow losses and a few large changes hardly
    move. With fewer it is that of the repetitions alone: grading is then a false alarm in one of 12 measurements.
    """
    compared = [(row, earlier) for row in new if (earlier := _earlier(history, row))]
    comparisons = sum(len(earlier) for _, earlier in compared)
    sentences = []
    for row, earlier in compared:
        low, value, high, repetitions = np.array([(r.low, r.value, r.high, r.repetitions) for r in [*earlier, row]]).T
        logs, freedom = np.log(value), repetitions - 1
        squares = (np.log(high / low) / 2 / stats.t.ppf(0.975, freedom)) ** 2  # of the standard errors
        square = squares[:-1] + squares[-1]
        welch = square**2 / (squares[:-1] ** 2 / freedom[:-1] + squares[-1] ** 2 / freedom[-1])
        if len(earlier) >= ENOUGH:
            square = np.maximum(square, (np.median(abs(np.diff(logs[:-1]))) / MEDIAN) ** 2)
        p = stats.t.sf((logs[-1] - logs[:-1]) / np.sqrt(square), welch)
        if p.min() < FALSE_ALARMS / comparisons:
            best = earlier[p.argmin()]
            sentences.append(
                f"{row.ratio} takes {_text(row)} times as long as the bare way, and took {_text(best)} times in "
                f"{best.commit}: more than its noise"
            )
    return sentences


def without_earlier(history: Sequence[Row], new: Sequence[Row]) -> list[str]:
    """The ratios that no other commit was measured for on such a machine: for these `worse` says nothing."""
    return [row.ratio for row in new if not _earlier(history, row)]


def _earlier(history: Sequence[Row], row: Row) -> list[Row]:
    """The same ratio on such a machine at other commits."""
    return [one for one in history if (one.machine, one.ratio) == (row.machine, row.ratio) and one.commit != row.commit]


def _text(row: Row) -> str:
    return f"{row.value:.3g} [{row.low:.3g}, {row.high:.3g}]"


def plot(history: Sequence[Row], folder: Path) -> str:
    """A panel for each ratio, by commit, a line for each machine, with 95 % intervals."""
    ratios, commits, machines = (
        list(dict.fromkeys(getattr(row, key) for row in history)) for key in ("ratio", "commit", "machine")
    )
    styles = figure_style.run_styles(machines)
    columns = min(PANEL_COLUMNS, len(ratios))
    figure, panels = figure_style.panels(len(ratios), columns, PANEL_HEIGHT)
    for axes, ratio in zip(panels, ratios, strict=True):
        for machine, style in styles.items():
            rows = [row for row in history if (row.ratio, row.machine) == (ratio, machine)]
            x, y = [commits.index(row.commit) for row in rows], [row.value for row in rows]
            spread = [[row.value - row.low for row in rows], [row.high - row.value for row in rows]]
            axes.errorbar(
                x, y, yerr=spread, color=style.colour, linestyle=style.dash, marker=style.marker, capsize=2,
                markersize=figure_style.MARKER_SIZE,
            )  # fmt: skip
        axes.axhline(1, color=figure_style.FAINT, linestyle=":", linewidth=1)
        axes.set_title(ratio)
        axes.set_xticks(range(len(commits)), commits, rotation=45, ha="right")
        axes.set_xlim(-0.5, len(commits) - 0.5)
        axes.set_ylim(bottom=0)
    for axes in panels[::columns]:
        axes.set_ylabel("times the bare way")
    figure_style.run_legend(figure, styles)
    return figure_style.save(figure, folder, "own_speed")
