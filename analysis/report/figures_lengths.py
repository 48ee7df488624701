"""Figures of lengths: their distribution over steps, thinking and answer, and truncated completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from analysis import patterns
from analysis.report.figure_style import (
    INK,
    MARKER_SIZE,
    RunStyle,
    legend,
    panels,
    run_handle,
    run_styles,
    running_mean,
    window,
)
from analysis.report.figures_training import STEP, mark_stages, not_reported, on_one_axis, training_legend
from analysis.results import RunResults
from contracts.tables import VERDICTS

BANDS = ((0.1, 0.9, 0.18), (0.25, 0.75, 0.32))  # quantiles from and to, opacity
MAX_CURVES = 6  # checkpoints whose distribution is drawn, spread over all of them
THINKING_ENDS = "</think>"
MIN_THINKING = 0.1  # share of a step's completions with a thinking part; a mean over fewer is not drawn


def split(completions: pd.Series, tokens: pd.Series) -> pd.DataFrame:
    """Length in tokens of the thinking part and of the answer part of each completion: columns thinking and answer.

    The tokens of a completion are divided in proportion to its characters before and after the first `</think>`.
    Completions without one, or of unknown length, have NaN.
    """
    text = pa.array(completions, pa.large_string(), from_pandas=True)
    place = pc.find_substring(text, THINKING_ENDS).to_numpy(zero_copy_only=False).astype(float)
    whole = pc.binary_length(text).to_numpy(zero_copy_only=False).astype(float) - len(THINKING_ENDS)
    count = pd.to_numeric(tokens, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    share = np.where((place >= 0) & (whole > 0), place / np.where(whole > 0, whole, 1), np.nan)
    return pd.DataFrame({"thinking": share * count, "answer": (1 - share) * count}, index=completions.index)


def thinks(run: RunResults) -> bool:
    """Whether any held-out or training completion of a run has a thinking part."""
    return any(
        rows["completion"].str.contains(THINKING_ENDS, regex=False, na=False).any()
        for rows in (run.graded, run.rollouts)
    )


def _over_steps(axes: Axes, steps: pd.Series, values: pd.DataFrame, style: RunStyle, smooth: bool) -> bool:
    by_step = values.assign(step=steps.to_numpy()).groupby("step")
    enough = by_step["thinking"].count() >= MIN_THINKING * by_step.size()
    means = by_step.mean()[enough].dropna()
    if means.empty:
        return False
    for column, dash in (("thinking", "-"), ("answer", (0, (1.4, 1.2)))):
        if smooth:
            axes.plot(means.index, means[column], ".", color=style.colour, alpha=0.35, markersize=3, markeredgewidth=0)
            drawn = running_mean(means[column], window(len(means)))
            marks: dict[str, Any] = {"marker": style.marker, "markevery": max(1, len(means) // 6), "markersize": 4}
            axes.plot(means.index, drawn, color=style.colour, linestyle=dash, **marks)
        else:
            axes.plot(means.index, means[column], color=style.colour, linestyle=dash, marker=style.marker, markersize=4)
    return True


def thinking(runs: Sequence[RunResults]) -> Figure:
    """Mean length of the thinking and the answer part, over training steps and over checkpoints."""
    figure, (training, heldout) = panels(1, 2, 2.5, sharex=False)
    styles = run_styles([run.name for run in runs])
    named: set[str] = set()
    for axes, title, of_training in ((training, "In training", True), (heldout, "Held out", False)):
        drawn = []
        for run in runs:
            rows = run.rollouts if of_training else run.graded
            parts = split(rows["completion"], rows["completion_tokens"])
            if _over_steps(axes, rows["step"], parts, styles[run.name], of_training):
                drawn.append(run.name)
        named |= set(drawn)
        if drawn:
            axes.set_ylim(0, max(1.0, 1.06 * axes.dataLim.ymax))
        else:
            not_reported(axes, "no completion has a thinking part")
        axes.set(title=title, xlabel=STEP if of_training else "checkpoint (training step)", ylabel="length (tokens)")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    handles = [
        Line2D([], [], color=styles[run.name].colour, marker=styles[run.name].marker, markersize=MARKER_SIZE)
        for run in runs
        if run.name in named
    ]
    handles += [Line2D([], [], color=INK), Line2D([], [], color=INK, linestyle=(0, (1.4, 1.2)))]
    legend(figure, handles, [*(run.name for run in runs if run.name in named), "thinking", "answer"])
    return figure


def _spread_out(steps: Sequence[int], most: int) -> list[int]:
    places = np.linspace(0, len(steps) - 1, min(most, len(steps))).round().astype(int)
    return [steps[place] for place in dict.fromkeys(places.tolist())]


def length_distribution(runs: Sequence[RunResults]) -> Figure:
    """Lengths of completions: held out, as shares for some checkpoints; in training, as quantiles over steps.

    Runs without token counts, such as imported generations, are left out.
    """
    runs = [run for run in runs if run.graded["completion_tokens"].notna().any()]
    figure, grid = panels(len(runs), 2, 2.3, sharex=False)
    shades = matplotlib.colormaps["cividis_r"]
    for row, run in enumerate(runs):
        heldout, training = grid[2 * row], grid[2 * row + 1]
        lengths = pd.to_numeric(run.graded["completion_tokens"], errors="coerce")
        if lengths.notna().any():
            edges = np.histogram_bin_edges(lengths.dropna(), bins=24)
            chosen = _spread_out(run.steps, MAX_CURVES)
            for place, step in enumerate(chosen):
                own = lengths[(run.graded["step"] == step).to_numpy()].dropna()
                shares = 100 * np.histogram(own, edges)[0] / max(len(own), 1)
                colour = shades(0.1 + 0.9 * place / max(len(chosen) - 1, 1))
                heldout.stairs(shares, edges, color=colour, linewidth=1.6, label=run.label(step))
            heldout.legend(loc="upper right", fontsize=7)
        else:
            not_reported(heldout)
        heldout.set(title=run.name.replace("/", " / "), xlabel="length (tokens)", ylabel="share of completions (%)")
        trained = pd.to_numeric(run.rollouts["completion_tokens"], errors="coerce")
        if trained.notna().any():
            by_step = trained.groupby(run.rollouts["step"].to_numpy())
            quantiles = {q: by_step.quantile(q) for q in (0.1, 0.25, 0.5, 0.75, 0.9)}
            for low, high, dark in BANDS:
                training.fill_between(
                    quantiles[low].index, quantiles[low], quantiles[high], color="#0072b2", alpha=dark, linewidth=0
                )
            training.plot(quantiles[0.5].index, quantiles[0.5], color="#0072b2")
            training.set_ylim(0, None)
        else:
            not_reported(training)
        training.set(title="in training", xlabel=STEP, ylabel="length (tokens)")
        training.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    handles = [Line2D([], [], color="#0072b2"), Patch(color="#0072b2", alpha=0.5), Patch(color="#0072b2", alpha=0.18)]
    legend(figure, handles, ["in training: median", "middle half", "middle 80 %"])
    return figure


def finished(runs: Sequence[RunResults]) -> Figure:
    """Shares of held-out completions that are correct, truncated, and finished but not correct, over checkpoints."""
    figure, grid = panels(1, 3, 2.4, sharey=True)
    styles = run_styles([run.name for run in runs])
    for run in runs:
        counts = run.scores.groupby("step")[[f"n_{verdict}" for verdict in VERDICTS]].sum().sort_index()
        whole = counts.sum(axis=1)
        # Without finish reasons the number of truncated completions is unknown, not zero.
        known = run.scores["truncated_rate"].notna().groupby(run.scores["step"]).all()
        cut = counts["n_truncated"].where(known)
        shares = {
            "Correct": counts["n_correct"] / whole,
            "Truncated": cut / whole,
            "Finished, not correct": (whole - counts["n_correct"] - cut) / whole,
        }
        for axes, (title, values) in zip(grid, shares.items(), strict=True):
            style = styles[run.name]
            axes.plot(
                values.index, 100 * values, color=style.colour, linestyle=style.dash, marker=style.marker,
                markersize=MARKER_SIZE,
            )  # fmt: skip
            axes.set(title=title, xlabel="checkpoint (training step)", ylim=(-3, 103))
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    grid[0].set_ylabel("share of completions (%)")
    legend(figure, [run_handle(styles[run.name], marker=True) for run in runs], [run.name for run in runs])
    return figure


def training_patterns(runs: Sequence[RunResults], lists: Sequence[patterns.PatternList]) -> Figure:
    """Keyword matches per completion over training steps, in the completions that were trained on."""
    figure, grid = panels(1, len(lists), 2.4)
    styles = run_styles([run.name for run in runs])
    for axes, item in zip(grid, lists, strict=True):
        drawn = False
        for run in runs:
            if run.rollouts.empty:
                continue
            found = pd.Series(patterns.count(run.rollouts["completion"], item.regex))
            means = found.groupby(run.rollouts["step"].to_numpy()).mean()
            colour, dash = styles[run.name].colour, styles[run.name].dash
            axes.plot(means.index, means, ".", color=colour, alpha=0.38, markersize=4, markeredgewidth=0)
            axes.plot(means.index, running_mean(means, window(len(means))), color=colour, linestyle=dash)
            mark_stages(axes, on_one_axis(run.log)[1], colour)
            drawn = True
        if not drawn:
            not_reported(axes)
        axes.set(title=item.title[0].upper() + item.title[1:], xlabel=STEP, ylabel="matches per completion")
        axes.set_ylim(0, max(0.1, 1.06 * axes.dataLim.ymax) if drawn else 1)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    training_legend(figure, runs, styles)
    return figure
