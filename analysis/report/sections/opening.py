"""What the page opens with: three sentences, warnings, and held-out accuracy before and after training."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.pages.figure_style import FAINT, INK, MARKER_SIZE, RunStyle, legend, run_styles
from analysis.pages.table_texts import points
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.report.summary import next_step, summary
from analysis.statistics import training_seeds
from analysis.statistics.accuracy_rows import BASE_MARKS, CheckpointRow, overall_column
from analysis.statistics.training_seeds import Recipe
from eval.statistics import Estimate

QUESTIONS = ("What was run?", "Did it get better, and by how much?", "Can it be trusted?")
WIDTH, ROW = 5.2, 0.44  # inches; narrow, so that its text can be read on a telephone
LETTERS, LINE = 72, 0.34  # of a title's line; its height, in rows


def _plot_point(figure: Figure, row: float, value: Estimate, style: RunStyle, filled: bool) -> None:
    middle, reach = 100 * value.value, [[100 * (value.value - value.low)], [100 * (value.high - value.value)]]
    figure.axes[0].errorbar(
        middle, row, xerr=reach, color=style.colour, marker=style.marker, markersize=MARKER_SIZE + 1, capsize=2.2,
        markerfacecolor=style.colour if filled else "white", elinewidth=1.1, linestyle="none",
    )  # fmt: skip


def plot_overview(recipes: Sequence[Recipe], rows: Mapping[str, Sequence[CheckpointRow]]) -> Figure:
    """A line per recipe: the base model, the last checkpoint, and the difference, on the average of its benchmarks.

    Several seeds are a tick each, and the point is their mean.

    Args:
        recipes: those to draw, from the top.
        rows: their accuracy rows, by name.
    """
    styles = run_styles([recipe.display_name for recipe in recipes])
    titles = [textwrap.wrap(recipe.display_name, LETTERS) for recipe in recipes]
    heights = [1 + LINE * (len(title) - 1) for title in titles]
    figure, axes = plt.subplots(figsize=(WIDTH, ROW * sum(heights) + 0.95))
    for row, title, recipe in zip(itertools.accumulate(heights), titles, recipes, strict=True):
        style, own = styles[recipe.display_name], rows[recipe.runs[0].name]
        column = overall_column(own[0].cells)
        first, cell = own[0].cells[column].accuracy, own[-1].cells[column]
        last, gap = cell.accuracy, cell.difference
        if recipe.has_several_seeds:
            names = recipe.runs[0].benchmarks
            each = training_seeds.accuracy_of_each_seed(recipe, None, names)
            axes.plot(100 * each, [row] * len(each), "|", color=style.colour, markersize=9)
            first, last = training_seeds.before_and_last(recipe)
            gap = training_seeds.gain(recipe, None, names)
        axes.text(0, row - 0.18, "\n".join(title), ha="left", va="bottom", fontsize=8.5, color=INK)
        if gap:
            axes.plot([100 * first.value, 100 * last.value], [row] * 2, color=style.colour, alpha=0.35)
            _plot_point(figure, row, first, style, filled=False)
            label = f"{points(gap.value)} {BASE_MARKS[gap.change]}"
            end = 100 * max(first.high, last.high) + 1.5
            axes.text(end, row, label, ha="left", va="center", fontsize=8.5, color=INK)
        _plot_point(figure, row, last, style, filled=True)
    axes.set(xlim=(-1, 113), ylim=(sum(heights) + 0.5, 0.35), xticks=range(0, 101, 20), yticks=[])
    axes.set_xlabel("held-out accuracy (%), with 95 % intervals; differences in points")
    axes.spines["left"].set_visible(False)
    marks = [Line2D([], [], marker="o", linestyle="none", color=FAINT, markerfacecolor=c) for c in ("white", FAINT)]
    if any(len(own) > 1 for own in rows.values()):
        legend(figure, marks, ["base model", "last checkpoint"])
    return figure


def content(report: ReportData) -> Content:
    """The figure; the sentences are made from the same numbers."""
    return Content(
        figures={"overview": plot_overview(report.recipes, report.rows)},
        values={
            "summary": dict(
                zip(
                    QUESTIONS,
                    summary(report.recipes, report.rows, report.facts, report.warnings, report.scale),
                    strict=True,
                )
            ),
            "next_step": next_step(report.recipes, report.scale),
            "imported": [run.name for run in report.runs if not run.trained],
        },
    )


SECTION = Section(
    order=0,
    content=content,
    figures={
        "overview": (
            "Held-out accuracy of each run, on the average of its benchmarks, before training and at its last "
            "checkpoint. ▲ and ▼ mark differences, paired by problem, whose 95 % interval excludes zero. Only runs "
            "that were measured on the same benchmarks can be compared with each other. Where a recipe has several "
            "training seeds, each is a tick, and the point is their mean with a 95 % interval for new seeds and new "
            "problems."
        )
    },
    numbers={"overview": "runs"},
    text="""\
<div class="opening">
<div>
{% for question, sentence in summary.items() %}
<p class="summary"><b>{{ question }}</b> {{ sentence }}</p>
{% endfor %}
<p class="summary"><b>What next?</b> {{ next_step[0] }}</p>
<p class="summary"><code>{% for word in next_step[1].split() %}
<span class="word">{{ word }}</span>
{% endfor %}</code></p>
{% if report.scale == "demo" and imported|length < report.runs|length %}
<details class="note"><summary><b>These are demo-scale numbers.</b></summary><p>They come from models of half a million
parameters, trained from scratch on generated problems, and show that the whole workflow runs. They say nothing about
the published recipes, whose models are thousands of times larger.{% if imported %} The imported generations ({{
imported|join(", ") }}) are from other models.{% endif %}</p></details>
{% endif %}
{% if report.scale == "small" and imported|length < report.runs|length %}
<details class="note"><summary><b>These are small-scale numbers.</b></summary><p>They come from pretrained models of 135
to 500 million parameters, trained for minutes. What a model of this size learns or does not learn says little about
models of billions.</p></details>
{% endif %}
{% if report.warnings %}
{{ warning_list(report.warnings, titles) }}
{% else %}
<p class="none">No warnings: no NaN, no step without signal, no truncation above 5 %, nothing missing, and all records
from one clean commit.</p>
{% endif %}
</div>
{{ figure("overview") }}
</div>
""",
)
