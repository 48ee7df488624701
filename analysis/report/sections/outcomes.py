"""Verdicts on the completions of each checkpoint, and those that were truncated."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.pages.figure_curves import SHARES, Panel, checkpoint_panels, curves
from analysis.pages.figure_style import broken, legend
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults
from analysis.statistics.training_seeds import Recipe
from contracts.tables import VERDICTS

# In the order of the stack. Light and dark alternate, so that neighbours differ in grey.
VERDICT_COLOURS = {
    "correct": "#0072b2", "wrong": "#f0c9a8", "no_answer": "#b5651d", "format_error": "#e6e2d3", "truncated": "#5b5b5b",
    "ungradable": "#ffffff",
}  # fmt: skip
VERDICT_NAMES = {
    "correct": "correct", "wrong": "wrong", "no_answer": "no answer", "format_error": "format error",
    "truncated": "truncated", "ungradable": "could not be graded",
}  # fmt: skip


def plot_outcomes(runs: Sequence[RunResults]) -> Figure:
    """Verdicts on the completions of each checkpoint over all benchmarks, as shares."""
    figure, grid = checkpoint_panels(len(runs), 2.5, "share of completions (%)")
    used = [v for v in VERDICT_COLOURS if any(run.scores[f"n_{v}"].sum() for run in runs)]
    for axes, run in zip(grid, runs, strict=True):
        counts = run.scores.groupby("step")[[f"n_{v}" for v in VERDICTS]].sum().sort_index()
        shares = 100 * counts.div(counts.sum(axis=1), axis=0)
        drawn = shares[[f"n_{v}" for v in used]]
        drawn.plot.bar(
            stacked=True, ax=axes, width=0.74, color=[VERDICT_COLOURS[v] for v in used], edgecolor="#6f6f6f",
            linewidth=0.5, legend=False, xlabel=axes.get_xlabel(),
        )  # fmt: skip
        labels = [str(step) if run.trained else run.label(step) for step in shares.index]
        axes.set_xticks(range(len(shares)), labels, rotation=90 if len(shares) > 10 else 0)
        axes.set_xlim(-0.6, max(len(shares), 3) - 0.4)  # so that a single bar has the same width as others
        axes.set_title(broken(run.display_name), fontsize=8.5)
        axes.set_ylim(0, 100)
        axes.grid(False)
    handles = [Patch(facecolor=VERDICT_COLOURS[v], edgecolor="#6f6f6f", linewidth=0.5) for v in used]
    legend(figure, handles, [VERDICT_NAMES[v] for v in used])
    return figure


def _shares(run: RunResults) -> pd.DataFrame:
    """Shares by step, in percent: correct, truncated, finished."""
    counts = run.scores.groupby("step")[[f"n_{verdict}" for verdict in VERDICTS]].sum().sort_index()
    # Without finish reasons the number of truncated completions is unknown, not zero.
    known = run.scores["truncated_rate"].notna().groupby(run.scores["step"]).all()
    parts = pd.DataFrame({"correct": counts["n_correct"], "truncated": counts["n_truncated"].where(known)})
    shares = 100 * parts.div(counts.sum(axis=1), axis=0)
    return shares.assign(finished=100 - shares["correct"] - shares["truncated"])


def plot_finished(recipes: Sequence[Recipe]) -> Figure:
    """Shares of held-out completions that are correct, truncated, and finished but not correct, over checkpoints."""
    ylabel = "share of completions (%)"
    panels = (
        Panel("Correct", ylabel, lambda run: _shares(run)["correct"], SHARES),
        Panel("Truncated", ylabel, lambda run: _shares(run)["truncated"], SHARES),
        Panel("Finished, not correct", ylabel, lambda run: _shares(run)["finished"], SHARES),
    )
    return curves(recipes, panels, training=False, sharey=True)


def content(report: ReportData) -> Content:
    """Both figures."""
    return Content(figures={"outcomes": plot_outcomes(report.runs), "finished": plot_finished(report.recipes)})


SECTION = Section(
    order=500,
    title="Truncation, lengths and verdicts",
    anchor="outcomes",
    link="Truncation and verdicts",
    content=content,
    figures={
        "outcomes": (
            "The verdict on every completion of each checkpoint, over all benchmarks. Look at what the correct "
            "answers replace: wrong answers, or failures of form (no answer, format error, truncated)."
        ),
        "finished": (
            "Held-out completions of each checkpoint over all benchmarks: correct, truncated at the length limit, and "
            "finished but not correct. The three add up to all completions. Without finish reasons, which not all "
            "imported completions have, only the share correct can be drawn."
        ),
    },
    numbers={"outcomes": "verdicts", "finished": "verdicts"},
    text="""\
<p>A completion truncated at the length limit is graded as it is, and is usually not correct: the score then measures
the limit as much as the model. So completions that were not truncated are also scored separately.</p>
{{ figure("outcomes") }}
{{ figure("finished") }}
""",
)
