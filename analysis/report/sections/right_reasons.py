"""Right for the right reason: answers beside the reasoning before them, where a program can check its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.measures import reasoning
from analysis.measures.reasoning import KINDS
from analysis.pages.figure_curves import SHARES, Panel, curves
from analysis.pages.table_texts import Table, percent
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults, checkpoint_labels
from analysis.statistics.training_seeds import Recipe


def plot_right_reasons(recipes: Sequence[Recipe], counts: pd.DataFrame) -> Figure:
    """Right answers with right and with wrong reasoning, and wrong answers with right reasoning, over checkpoints.

    Args:
        recipes: those to draw.
        counts: what reasoning.count found, of all runs; the mean over benchmarks is drawn.
    """

    def mean(column: str) -> Callable[[RunResults], pd.Series]:
        return lambda run: 100 * counts[counts["run"] == run.name].groupby("step")[column].mean()

    panels = [
        Panel(title, "share of completions (%)", mean(f"{name}_share"), SHARES)
        for name, title in (
            ("right_right", "Right answer,\nright reasoning"),
            ("right_wrong", "Right answer,\nwrong reasoning"),
            ("wrong_right", "Wrong answer,\nright reasoning"),
        )
    ]
    return curves(recipes, panels, training=False)


def reasoning_table(runs: Sequence[RunResults], counts: pd.DataFrame) -> Table:
    """The counts for readers; in percent, with intervals."""

    def interval(name: str) -> list[str]:
        columns = (counts[f"{name}_{part}"] for part in ("share", "low", "high"))
        return [
            "–" if np.isnan(value) else f"{percent(value)} [{percent(low)}, {percent(high)}]"
            for value, low, high in zip(*columns, strict=True)
        ]

    texts = {
        "run": counts["run"],
        "benchmark": counts["benchmark"],
        "checkpoint": checkpoint_labels(runs, counts),
        "right answers": interval("accuracy"),
        KINDS["right_right"]: interval("right_right"),
        KINDS["right_wrong"]: interval("right_wrong"),
        KINDS["wrong_right"]: interval("wrong_right"),
        "right reasoning among right answers": interval("of_right"),
        "lines checkable": [percent(value) for value in counts["checkable"]],
        "completions": counts["completions"].map("{:,}".format),
    }
    return Table("reasoning", counts, pd.DataFrame(texts))


def content(report: ReportData) -> Content:
    """The figure, the table and examples of the runs whose steps can be checked."""
    by_run = {run.name: reasoning.count(run) for run in report.runs}
    counts = pd.concat([counts for counts, _ in by_run.values()], ignore_index=True)
    values = {"examples": {name: examples for name, (counts, examples) in by_run.items() if len(counts)}}
    constants = {"kinds": reasoning.KINDS, "most_checked": reasoning.MOST_CHECKED}
    if counts.empty:
        return Content(values={**values, **constants})
    checked = [run for run in report.runs if run.name in values["examples"]]
    return Content(
        [reasoning_table(report.runs, counts)],
        {"right_reasons": plot_right_reasons(report.recipes_of(checked), counts)},
        {**values, **constants},
    )


SECTION = Section(
    order=800,
    title="Right for the right reason",
    anchor="reasoning",
    link="Right reasons",
    content=content,
    tables={
        "reasoning": (
            "Right for the right reason: the verdict on the answer beside the verdicts on the steps before it that a "
            "program can check, in percent of completions with 95 % intervals clustered by problem."
        )
    },
    figures={
        "right_reasons": (
            "Answers beside the reasoning before them, where a program can check it step by step. Reasoning is right "
            "if every step that can be checked is right. Look at whether right answers with wrong reasoning grow "
            "while accuracy does. Completions without a checkable step are in none of the three."
        )
    },
    numbers={"right_reasons": "reasoning"},
    text="""\
{% if examples %}
<p>Some tasks check reasoning line by line. A completion's reasoning counts as right if every line that can be checked
is right; a line that is not understood is not checkable, never wrong, and an incomplete search can be right throughout
and still lead to a wrong answer. At most {{ "{:,}".format(most_checked) }} completions of a checkpoint on a benchmark
are checked: whole problems, in the order of a hash.</p>
{{ figure("right_reasons") }}
{% for run, of_run in examples.items() %}
{{ table("reasoning", run=run, caption=titles[run], text_columns=2) }}
<details><summary>Examples at the last checkpoint: the first of each kind in the order of a hash</summary>
<ul>
{% for item in of_run %}
<li><a href="samples/index.html#{{ item.link }}">{{ item.benchmark }}, {{ item.problem_id|clipped(200) }}, repeat {{
item.repeat }}</a>: {{ kinds[item.kind] }}{% if item.fault %} <span class="soft">first fault:</span> <code>{{
item.fault|clipped(300) }}</code>{% endif %}</li>
{% endfor %}
</ul>
</details>
{% endfor %}
{% else %}
<p>No task of these runs checks reasoning, or the problems that were graded are not stored beside the results.</p>
{% endif %}
""",
)
