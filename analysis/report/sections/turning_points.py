"""The best checkpoint of each recipe, and what changes from there to the last one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.claims import table as claims
from analysis.measures.turning_points import AT_THE_END, NAME, PARTS, find, level
from analysis.pages.figure_curves import BAND, CHECKPOINT, SHARES, band
from analysis.pages.figure_style import INK, MARKER_SIZE, broken, legend, panels, run_handle, run_styles
from analysis.pages.table_texts import Table, interval_columns, interval_text, points
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.statistics.training_seeds import Recipe
from contracts import seeds


def turning_points_table(recipes: Iterable[Recipe]) -> Table | None:
    """A row for each recipe with enough checkpoints; None if no recipe has."""
    data, texts = [], []
    for recipe in recipes:
        turn = find(recipe)
        if turn is None:
            continue
        label = recipe.runs[0].label
        data.append(
            {
                "recipe": seeds.run_of(recipe.runs[0].name), "seeds": len(recipe.runs), "best": turn.best,
                "first": turn.first, "end": turn.end, **interval_columns({**turn.changes, "reward": turn.reward}),
                "verdict": turn.verdict,
            }
        )  # fmt: skip
        span = label(turn.first) if turn.first == turn.end else f"{label(turn.first)} to {label(turn.end)}"
        after = turn.verdict != AT_THE_END
        texts.append(
            {
                "run": recipe.display_name,
                "best checkpoint": label(turn.best),
                "95 % interval": span,
                **{
                    f"{part}, best to last (points)": interval_text(turn.changes[part], points)
                    if after and part in turn.changes
                    else "–"
                    for part in PARTS
                },
                "reward in training": interval_text(turn.reward, "{:+.3f}".format) if turn.reward else "–",
                "verdict": turn.verdict,
            }
        )
    return Table(NAME, pd.DataFrame(data), pd.DataFrame(texts)) if texts else None


def plot_turning_points(recipes: Sequence[Recipe]) -> Figure:
    """Right, unfinished and wrong completions over checkpoints, with the best one and the interval of its step.

    Args:
        recipes: recipes; those with too few checkpoints are left out.
    """
    turns = [(recipe, turn) for recipe in recipes if (turn := find(recipe))]
    columns = 2 if len(turns) == 4 else min(len(turns), 3)
    figure, grid = panels(len(turns), columns, 2.5, xlabel=CHECKPOINT, sharex=False, sharey=True)
    styles = run_styles(PARTS)
    for axes, (recipe, turn) in zip(grid, turns, strict=True):
        for part in turn.changes:
            values, style = [level(recipe, step, part) for step in recipe.steps], styles[part]
            axes.plot(
                recipe.steps, [100 * v.value for v in values], color=style.colour, linestyle=style.dash,
                marker=style.marker, markersize=MARKER_SIZE,
            )  # fmt: skip
            band(axes, recipe.steps, [100 * v.low for v in values], [100 * v.high for v in values], style)
        axes.axvspan(turn.first, turn.end, color=INK, alpha=0.08, linewidth=0)
        axes.axvline(turn.best, color=INK, linewidth=1, linestyle=":")
        axes.set_title(broken(recipe.display_name), fontsize=8.5)
        axes.set_ylim(SHARES)
    for axes in grid[::columns]:
        axes.set_ylabel("share of completions (%)")
    handles = [*(run_handle(styles[part]) for part in PARTS), Patch(color=INK, alpha=BAND, linewidth=0),
               Line2D([], [], color=INK, linewidth=1, linestyle=":"), Patch(color=INK, alpha=0.08)]  # fmt: skip
    legend(figure, handles, [*PARTS, "95 % interval", "best checkpoint", "may be the best"])
    return figure


def content(report: ReportData) -> Content | None:
    """The table and the figure, where a recipe has enough checkpoints."""
    turning = [recipe for recipe in report.recipes if find(recipe)]
    table = turning_points_table(turning)
    if table is None:
        return None
    return Content(
        [table], {NAME: plot_turning_points(turning)}, {"claims": claims.best_checkpoint_claims(report.runs)}
    )


SECTION = Section(
    order=510,
    content=content,
    tables={
        NAME: (
            "The best checkpoint of each run with the interval of its step, the change from there to the last "
            "checkpoint, and whether the training went on for too long."
        )
    },
    figures={
        NAME: (
            "Right, unfinished (truncated) and finished but wrong completions of each checkpoint over all benchmarks, "
            "with the best checkpoint and the interval of its step. Look at whether accuracy falls after it while "
            "unfinished or wrong completions grow: then the training went on for too long."
        )
    },
    numbers={NAME: NAME},
    text="""\
{{ figure("turning_points") }}
{{ table("turning_points", "The best checkpoint of each run, the interval of its step, and what changes
from there to the last checkpoint. A checkpoint is outside of the interval if another one is above it beyond noise, at a
level corrected for their number.", 1) }}
{% for claim, source, finding in claims %}<p>“{{ claim }}” <span class="soft">({{ source }})</span> By the claim's own
rules, for these runs of {{ report.scale }} scale: <b>{{ finding.verdict }}</b>, {{ finding.evidence }}.</p>
{% endfor %}
""",
)
