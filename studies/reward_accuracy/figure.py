"""The figure of a task of `snakemake study_reward_accuracy`: gain against the error of the reward."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from analysis.pages import figure_style
from analysis.pages.table_texts import interval_text, points
from eval.statistics import Estimate
from studies.reward_accuracy.dials import AGREEMENT, BIAS, MEAN_SQUARED, VARIANCE, Studied
from studies.reward_accuracy.gain_fit import Fit

PANELS = {
    MEAN_SQUARED: "mean squared error",
    BIAS: "squared bias",
    VARIANCE: "variance",
    AGREEMENT: "agreement within a problem",
}
UNIT = 0.1  # of error, for which slopes are stated


def per_unit(slope: Estimate) -> Estimate:
    """A slope for UNIT of error instead of 1."""
    return Estimate(*(UNIT * part for part in slope))


def draw(studied: Studied, folder: Path) -> str:
    """The figure as SVG, which is written to the folder, too."""
    figure_style.set_style()
    styles = figure_style.run_styles([dial.label for dial in studied.dials])
    figure, axes = figure_style.panels(len(PANELS), 2, 2.7, sharex=False, sharey=True)
    both = studied.fit(BIAS, VARIANCE)
    fits = {BIAS: both, VARIANCE: both} | {name: studied.fit(name) for name in (MEAN_SQUARED, AGREEMENT)}
    for panel, (measure, title) in zip(axes, PANELS.items(), strict=True):
        panel.xaxis.set_major_locator(MaxNLocator(6))
        panel.tick_params(labelbottom=True)
        panel.axhline(0, color=figure_style.FAINT, linewidth=0.8)
        for dial in studied.dials:
            error, gain, style = dial.error(measure), dial.gain, styles[dial.label]
            if np.isnan(error.value):
                continue
            panel.errorbar(
                [error.value], [100 * gain.value],
                [[100 * (gain.value - gain.low)], [100 * (gain.high - gain.value)]],
                [[error.value - error.low], [error.high - error.value]],
                fmt=style.marker, color=style.colour, markersize=figure_style.MARKER_SIZE + 1, capsize=2,
                markerfacecolor="white" if dial.extreme else style.colour, linewidth=1,
            )  # fmt: skip
            each = 100 * dial.gain_of_seeds
            panel.plot([error.value] * len(each), each, ".", color=style.colour, markersize=3, alpha=0.5)
        panel.set(xlabel=title, ylabel="held-out gain, points")
        _line(panel, fits[measure], measure)
        if measure == MEAN_SQUARED:
            _point(panel, studied)
    handles = [figure_style.run_handle(styles[dial.label]) for dial in studied.dials]
    for handle, dial in zip(handles, studied.dials, strict=True):
        handle.set_linestyle("none")
        handle.set_markerfacecolor("white" if dial.extreme else handle.get_color())
    figure_style.legend(figure, handles, [dial.label for dial in studied.dials])
    return figure_style.save(figure, folder, f"reward_accuracy_{studied.task.name}")


def _line(panel: Axes, fitted: Fit | None, measure: str) -> None:
    """The fitted line; of two errors, where the other one is 0."""
    slope = fitted.slopes.get(measure) if fitted else None
    if fitted is None or slope is None:
        panel.set_title("no slope: too few settings, or it does not vary", fontsize=8.5, fontweight="normal")
        return
    low, high = panel.get_xlim()
    x = np.array([max(low, 0.0), high])
    panel.plot(x, 100 * (fitted.intercept + slope.value * x), color=figure_style.INK, linewidth=1, linestyle="--")
    panel.set_xlim(low, high)
    panel.set_title(f"{interval_text(per_unit(slope), points)} per {UNIT}", fontsize=8.5, fontweight="normal")


def _point(panel: Axes, studied: Studied) -> None:
    """A line at the error up to which 90 % of the exact reward's gain are kept, if there is one."""
    dials, knee = studied.knee()
    if knee and knee.enough is not None:
        panel.axvline(dials[knee.enough].error(MEAN_SQUARED).value, color=figure_style.INK, linestyle=":", linewidth=1)
