"""Lengths of completions: their distribution, and the thinking and the answer part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.measures.thinking_lengths import THINKING_ENDS, split_tokens
from analysis.pages.figure_curves import CHECKPOINT, STEP, recipe_curve, seeds_legend
from analysis.pages.figure_style import FAINT, INK, broken, legend, not_reported, panels, run_handle, run_styles
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults, as_arrow
from analysis.statistics.training_seeds import Recipe

BANDS = ((0.1, 0.9, 0.18), (0.25, 0.75, 0.32))  # quantiles from and to, opacity
BINS = 24  # of lengths
MAX_CURVES = 6  # checkpoints whose distribution is drawn, spread over all of them
PARTS: dict[str, Any] = {"thinking": "-", "answer": (0, (1.4, 1.2))}  # and how each is drawn
Numbers = npt.NDArray[np.float64]
MIN_THINKING = 0.1  # share of a step's completions with a thinking part; a mean over fewer is not drawn


def _parts(run: RunResults, training: bool) -> Iterator[tuple[pa.Array | pa.ChunkedArray, pd.DataFrame]]:
    """The completions of training, or the held-out ones by checkpoint and benchmark, and the rows that they are of."""
    if training:
        yield as_arrow(run.rollouts["completion"]), run.rollouts
    else:
        yield from ((run.text(*cell), run.rows(*cell)) for cell in run.cells)


def thinks(run: RunResults) -> bool:
    """Whether any held-out or training completion of a run has a thinking part."""
    return any(
        bool(pc.any(pc.match_substring(texts, THINKING_ENDS)).as_py())
        for training in (True, False)
        for texts, _ in _parts(run, training)
    )


def _over_steps(run: RunResults, training: bool) -> pd.DataFrame:
    """Mean lengths by step, of the steps at which enough completions have a thinking part."""
    lengths = [
        split_tokens(texts, rows["completion_tokens"]).assign(step=rows["step"])
        for texts, rows in _parts(run, training)
    ]
    by_step = pd.concat(lengths).groupby("step")
    enough = by_step["thinking"].count() >= MIN_THINKING * by_step.size()
    return by_step.mean()[enough].dropna()


def plot_thinking(recipes: Sequence[Recipe]) -> Figure:
    """Mean length of the thinking and the answer part, over training steps and over checkpoints."""
    figure, grid = panels(2, 2, 2.5, sharex=False)
    styles, named = run_styles([recipe.display_name for recipe in recipes]), {}
    for axes, training in zip(grid, (True, False), strict=True):
        by_run = {recipe.display_name: [_over_steps(run, training) for run in recipe.runs] for recipe in recipes}
        means = {
            name: kept
            for name, all_lengths in by_run.items()
            if (kept := [one for one in all_lengths if not one.empty])
        }
        for name, lengths in means.items():
            named[name] = run_handle(replace(styles[name], dash="-"))
            for column, dash in PARTS.items():
                style = replace(styles[name], dash=dash)
                recipe_curve(axes, [one[column] for one in lengths], style, training=training)
        axes.set(title="In training" if training else "Held out", xlabel=STEP if training else CHECKPOINT)
        axes.set(ylabel="length (tokens)", ylim=(0, max(1.0, 1.06 * axes.dataLim.ymax) if means else 1.0))
        if not means:
            not_reported(axes, "no completion has a thinking part")
    handles: dict[str, Artist] = {name: named[name] for name in styles if name in named}
    handles |= {text: drawn for drawn, text in seeds_legend(recipes)}
    handles |= {column: Line2D([], [], color=INK, linestyle=dash) for column, dash in PARTS.items()}
    legend(figure, list(handles.values()), list(handles))
    return figure


def _spread_out(steps: Sequence[int], most: int) -> list[int]:
    positions = np.linspace(0, len(steps) - 1, min(most, len(steps))).round().astype(int)
    return [steps[position] for position in dict.fromkeys(positions.tolist())]


def held_out_lengths(run: RunResults) -> tuple[dict[int, Numbers], Numbers]:
    """The distribution of lengths at some checkpoints; those cut off at the limit have a last bin of their own.

    Args:
        run: with token counts.

    Returns:
        By step the percentage of completions in each bin, and the edges of the bins in tokens: BINS of the completions
        that ended, and one for the others if there are any.
    """
    lengths = pd.to_numeric(run.graded["completion_tokens"], errors="coerce")
    known, cut = lengths.notna(), run.graded["finish_reason"] == "length"
    ended = lengths[known & ~cut]
    edges: Numbers = np.histogram_bin_edges(ended if len(ended) else lengths[known], bins=BINS)
    if any_cut := bool((known & cut).any()):
        edges = np.append(edges, edges[-1] + 2 * (edges[-1] - edges[-2]))
    shares = {}
    for step in _spread_out(run.steps, MAX_CURVES):
        here = known & (run.graded["step"] == step)
        counts = np.histogram(lengths[here & ~cut], edges[: BINS + 1])[0]
        counts = np.append(counts, [(here & cut).sum()] * any_cut)
        shares[step] = 100 * counts / max(here.sum(), 1)
    return shares, edges


def plot_length_distribution(runs: Sequence[RunResults]) -> Figure:
    """Lengths of completions: held out, as shares for some checkpoints; in training, as quantiles over steps.

    Completions that were cut off at the limit are in a last bin. Runs without token counts, such as imported
    generations, are left out.
    """
    runs = [run for run in runs if run.graded["completion_tokens"].notna().any()]
    figure, grid = panels(2 * len(runs), 2, 2.3, sharex=False)
    shades = matplotlib.colormaps["cividis_r"]
    for row, run in enumerate(runs):
        heldout, training = grid[2 * row], grid[2 * row + 1]
        shares, edges = held_out_lengths(run)
        for position, (step, own) in enumerate(shares.items()):
            colour = shades(0.1 + 0.75 * position / max(len(shares) - 1, 1))
            heldout.stairs(own[:BINS], edges[: BINS + 1], color=colour, linewidth=1.6, label=run.label(step))
            heldout.stairs(own[BINS:], edges[BINS:], baseline=None, color=colour, linewidth=1.6)
        if len(edges) > BINS + 1:
            heldout.axvspan(*edges[BINS:], color=INK, alpha=0.06, linewidth=0)
            middle = float(edges[BINS:].mean())
            heldout.text(middle, 1.01, "cut off", ha="center", va="bottom", fontsize=7, color=FAINT,
                         transform=heldout.get_xaxis_transform())  # fmt: skip
        heldout.legend(loc="upper right", bbox_to_anchor=(0.88, 1), fontsize=7)
        heldout.set(title=broken(run.display_name), xlabel="length (tokens)", ylabel="share of completions (%)")
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
    handles = [Line2D([], [], color="#0072b2"), Patch(color="#0072b2", alpha=0.5), Patch(color="#0072b2", alpha=0.18)]
    legend(figure, handles, ["in training: median", "middle half", "middle 80 %"])
    return figure


def content(report: ReportData) -> Content:
    """Figures of the runs whose token counts are known."""
    figures = {}
    if any(run.graded["completion_tokens"].notna().any() for run in report.runs):
        figures["length_distribution"] = plot_length_distribution(report.runs)
        if any(thinks(run) for run in report.runs):
            figures["thinking"] = plot_thinking(report.recipes)
    return Content(figures=figures, values={"drawn": list(figures)})


SECTION = Section(
    order=520,
    content=content,
    figures={
        "length_distribution": (
            "Lengths of completions. Held out: the distribution for some checkpoints, spread over all of them. In "
            "training: the median, the middle half and the middle 80 % of each step. The last bin, set apart, has "
            "those that were cut off at the limit. Runs without token counts are left out."
        ),
        "thinking": (
            "Mean length of the thinking part and of the answer part, in training (a bounded sample of each step; "
            "faint points are steps, lines are running means) and held out. The tokens of a completion are divided in "
            "proportion to its characters before and after the first </think>. Completions without one are left out, "
            "and so are steps where fewer than a tenth have one. Look at whether only the thinking part grows."
        ),
    },
    text="""\
{{ figure("length_distribution") }}
{{ figure("thinking") }}
{% if "length_distribution" not in drawn %}<p class="soft">There is no figure of lengths: the
token counts of these completions were not recorded.</p>
{% elif "thinking" not in drawn %}<p class="soft">There is no figure of thinking: no completion has a thinking part.</p>
{% endif %}
""",
)
