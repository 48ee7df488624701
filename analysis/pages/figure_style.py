"""The style of all figures: safe for colour-blind readers, readable in print, and reproducible to the byte."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

INK, FAINT = "#2b2b2b", "#8a8a8a"
WIDTH = 7.4  # inches, the width of the text on an A4 or letter page
LEGEND_LINE = 0.19  # inches per line of the legend
# By simulated annealing: every two are distinct for colour-blind readers, in grey, and on the dark page (report.css).
COLOURS = (
    "#4083fe", "#aa5100", "#19420f", "#ff9e07", "#4d0250", "#65d2ec", "#804e64", "#060400", "#7175b0", "#bd8c5d",
    "#4f2bd2", "#a8a69e",
)  # fmt: skip
MARKER_SIZE = 4.5
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "h", "<", ">", "d")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.4, 1.2)), (0, (5, 1.4, 1.2, 1.4)))


@dataclass(frozen=True)
class RunStyle:
    """How one run is drawn in every figure. Runs never differ by colour alone."""

    colour: str
    marker: str
    dash: Any


def run_styles(names: Sequence[str]) -> dict[str, RunStyle]:
    """A style for each run, in order. When the colours are used up, they repeat with other markers and dashes."""
    styles = {}
    for i, name in enumerate(names):
        turn = i + i // len(COLOURS)
        styles[name] = RunStyle(COLOURS[i % len(COLOURS)], MARKERS[turn % len(MARKERS)], DASHES[turn % len(DASHES)])
    return styles


def set_style() -> None:
    """Set the common style. Names of runs are never parsed as mathematics."""
    sns.set_theme(
        context="paper", style="ticks", font_scale=1.0,
        rc={
            "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
            "text.parse_math": False, "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
            "axes.edgecolor": "#b5b5b5", "axes.linewidth": 0.8, "axes.spines.top": False, "axes.spines.right": False,
            "axes.grid": True, "grid.color": "#ececec", "grid.linewidth": 0.7, "axes.axisbelow": True,
            "axes.titlesize": 9.5, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.labelsize": 9,
            "xtick.labelsize": 8, "ytick.labelsize": 8, "xtick.major.size": 3, "ytick.major.size": 0,
            "legend.fontsize": 8.5, "legend.frameon": False, "lines.linewidth": 1.7, "lines.solid_capstyle": "round",
            "figure.constrained_layout.use": True, "figure.constrained_layout.h_pad": 0.06,
            "figure.constrained_layout.w_pad": 0.06, "savefig.dpi": 200, "svg.fonttype": "none",
            "svg.hashsalt": "crosszero",
        },
    )  # fmt: skip


def broken(title: str) -> str:
    """The title of a run over lines that fit a third of the page's width."""
    return "\n".join(textwrap.wrap(title.replace("/", " / "), 30)) or title


def panels(
    count: int, columns: int, height: float, *, xlabel: str = "", sharex: bool = True, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with a grid of axes over whole steps.

    Args:
        count: how many axes; the rest of the grid is empty.
        columns: of the grid.
        height: of a row, in inches.
        xlabel: of the lowest axes of each column.
        sharex: whether all axes have the same x range.
        sharey: likewise for y.

    Returns:
        The figure, and its axes row by row.
    """
    rows = -(-count // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(WIDTH, height * rows + 0.35), squeeze=False, sharex=sharex, sharey=sharey
    )
    all_axes = list(grid.ravel())
    for position, axes in enumerate(all_axes):
        axes.set_visible(position < count)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        if position + columns >= count:
            axes.set_xlabel(xlabel)
            axes.tick_params(labelbottom=True)
    return figure, all_axes[:count]


def legend(figure: Figure, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """Add one legend above the whole figure, which grows by the lines of the legend.

    Args:
        figure: to add it to.
        handles: the drawn samples.
        labels: their texts.
    """
    widest = max((len(label) for label in labels), default=0)
    in_one_line = sum(len(label) + 9 for label in labels) <= 110
    most = len(labels) if in_one_line else max(1, int(110 / (widest + 9)))
    lines = -(-len(labels) // most)
    figure.legend(
        handles, labels, loc="outside upper left", ncols=-(-len(labels) // lines), handlelength=2.6, columnspacing=1.8
    )
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE * (lines - 1))


def run_handle(style: RunStyle) -> Line2D:
    """The line of a run in the legend."""
    return Line2D([], [], color=style.colour, linestyle=style.dash, marker=style.marker, markersize=MARKER_SIZE)


def run_legend(figure: Figure, styles: dict[str, RunStyle], more: Sequence[tuple[Artist, str]] = ()) -> None:
    """Add a legend to a figure over checkpoints.

    Args:
        figure: to add it to.
        styles: of runs or recipes, by their names.
        more: further entries, drawn samples with their texts.
    """
    handles: list[Artist] = [run_handle(style) for style in styles.values()]
    legend(figure, [*handles, *(one for one, _ in more)], [*styles, *(text for _, text in more)])


def not_reported(axes: Axes, why: str = "not reported") -> None:
    """Write into an empty panel why it is empty."""
    axes.tick_params(bottom=False, left=False, labelbottom=False, labelleft=False)
    axes.grid(False)
    axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color=FAINT, fontsize=9)


def window(length: int) -> int:
    """Width of the running mean in steps: odd, about a tenth of the log, at least 3."""
    return max(3, length // 10 // 2 * 2 + 1)


def running_mean(values: pd.Series, width: int) -> pd.Series:
    """Centred mean over `width` rows, or fewer at the ends. A gap wider than half of `width` stays a gap."""
    return values.rolling(width, center=True, min_periods=width // 2 + 1).mean()


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write a figure and close it.

    Args:
        figure: to write.
        folder: gets `<name>.svg` and `<name>.png`.
        name: of the files.

    Returns:
        The text of the SVG.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # matplotlib would lay out and draw anew for each file
    if layout := figure.get_layout_engine():
        layout.execute(figure)
    with plt.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
        figure.savefig(folder / f"{name}.png", metadata={"Software": None})
    plt.close(figure)
    return (folder / f"{name}.svg").read_text(encoding="utf-8")
