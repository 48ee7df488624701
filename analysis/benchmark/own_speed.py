"""CrossZero's own speed by commit: what it takes beside a bare way to the same end, both measured in turn.

`results/reference/own_speed.csv` has a row per commit, machine and ratio; `make bench` writes it
(`tests/performance/own_speed.py`) and fails where a ratio is worse than it was by more than the noise of both. Who
accepts that deletes the row that it is compared with.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import pandas as pd

from analysis.pages import figure_style
from analysis.statistics import mean_intervals
from eval.statistics import Estimate
from system import durable
from system.errors import ROOT

FILE = ROOT / "results" / "reference" / "own_speed.csv"
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

    @property
    def estimate(self) -> Estimate:
        """The mean with its interval."""
        return Estimate(self.value, self.low, self.high)


def read(file: Path) -> list[Row]:
    """All rows, the oldest first; none without the file."""
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        return [
            Row(r["commit"], r["date"], r["machine"], r["ratio"], int(r["repetitions"]), *(float(r[k]) for k in LIMITS))
            for r in csv.DictReader(lines)
        ]


LIMITS = ("value", "low", "high")


def write(rows: Sequence[Row], file: Path) -> None:
    """Write all rows."""
    frame = pd.DataFrame([astuple(row) for row in rows], columns=[one.name for one in fields(Row)])
    durable.write_text(file, frame.to_csv(index=False, float_format="%.4g"))


def worse(history: Sequence[Row], new: Sequence[Row]) -> list[str]:
    """A sentence for each ratio that is worse than it was at another commit on such a machine.

    Of the other commits, that counts whose interval ends lowest: several small losses are one large one, and what was
    worse once is not what the next is compared with. It has to be more than the noise of both: the 95 % interval of the
    quotient lies above 1.
    """
    sentences = []
    for row in new:
        if not (earlier := _earlier(history, row)):
            continue
        best = min(earlier, key=lambda one: one.high)
        if mean_intervals.ratio(best.estimate, row.estimate).low > 1:
            sentences.append(
                f"{row.ratio} takes {_text(row)} times as long as the bare way, and took {_text(best)} times in "
                f"{best.commit}: more than the noise of both"
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
        axes.set_title(ratio)
        axes.set_xticks(range(len(commits)), commits, rotation=45, ha="right")
        axes.set_xlim(-0.5, len(commits) - 0.5)
        axes.set_ylim(bottom=0)
    figure_style.run_legend(figure, styles)
    return figure_style.save(figure, folder, "own_speed")
