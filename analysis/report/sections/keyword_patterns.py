"""Keywords of step-by-step reasoning and of reflection in held-out completions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis.measures import reasoning_patterns
from analysis.pages.figure_curves import SHARES, Panel, curves
from analysis.pages.table_texts import Table, percent
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults, checkpoint_labels
from analysis.statistics.training_seeds import Recipe


def _of_pattern(counts: pd.DataFrame, name: str, column: str, scale: int) -> Callable[[RunResults], pd.Series]:
    chosen = counts[(counts["benchmark"] == reasoning_patterns.ALL) & (counts["pattern"] == name)].sort_values("step")
    return lambda run: scale * chosen[chosen["run"] == run.name].set_index("step")[column]


def plot_patterns(
    recipes: Sequence[Recipe], counts: pd.DataFrame, lists: Sequence[reasoning_patterns.PatternList]
) -> Figure:
    """Matches per completion and share of completions with a match, per keyword list, over all benchmarks.

    Args:
        recipes: those to draw.
        counts: what patterns.table counted, of all runs.
        lists: one row of panels each.
    """
    panels = []
    for item in lists:
        title = item.title[0].upper() + item.title[1:]
        many, share = (_of_pattern(counts, item.name, *one) for one in (("per_completion", 1), ("share", 100)))
        panels.append(Panel(f"{title}: matches", "matches per completion", many, 0.1))
        panels.append(Panel(f"{title}: completions", "share of completions (%)", share, SHARES))
    return curves(recipes, panels, training=False, columns=2)


def patterns_table(
    runs: Sequence[RunResults], counts: pd.DataFrame, lists: Sequence[reasoning_patterns.PatternList]
) -> Table:
    """Keyword counts per checkpoint and benchmark.

    Args:
        runs: for the names of checkpoints.
        counts: what patterns.table counted, of all runs.
        lists: for the titles.
    """
    titles = {item.name: item.title for item in lists}
    texts = pd.DataFrame(
        {
            "run": counts["run"],
            "keywords": counts["pattern"].map(titles),
            "benchmark": counts["benchmark"],
            "checkpoint": checkpoint_labels(runs, counts),
            "per completion": counts["per_completion"].map("{:.2f}".format),
            "completions with any (%)": counts["share"].map(percent),
            "per 1,000 tokens": counts["per_1000_tokens"].map(lambda x: "–" if math.isnan(x) else f"{x:.2f}"),
        }
    )
    return Table("patterns", counts, texts)


def content(report: ReportData) -> Content:
    """The figure and the counts."""
    lists = report.matched_lists
    counts = report.pattern_counts[report.pattern_counts["pattern"].isin([item.name for item in lists])]
    return Content(
        [patterns_table(report.runs, counts, lists)],
        {"reasoning_patterns": plot_patterns(report.recipes, counts, lists)},
    )


SECTION = Section(
    order=700,
    title="Step-by-step reasoning and reflection",
    anchor="patterns",
    link="Reasoning patterns",
    content=content,
    tables={
        "patterns": (
            "Keywords of step-by-step reasoning and of reflection: matches per completion and per 1,000 tokens, and "
            "the share of completions with any."
        )
    },
    figures={
        "reasoning_patterns": (
            "Keywords of step-by-step reasoning and of reflection in the completions of each checkpoint over all "
            "benchmarks, by the keyword lists of the published report. Left: matches per completion. Right: the share "
            "of completions with at least one match. Longer completions have more matches (the table also gives them "
            "per 1,000 tokens), and a keyword does not prove reasoning."
        )
    },
    numbers={"reasoning_patterns": "patterns"},
    text="""\
{{ figure("reasoning_patterns") }}
<details>
<summary>The counts, by benchmark</summary>
{% for run in report.runs %}
<h3>{{ title_of(run.name) }}</h3>
{{ table("patterns", run=run.name, caption="Keyword matches in the completions of each checkpoint.", text_columns=3) }}
{% endfor %}
</details>
<details>
<summary>The keyword lists and how they are matched</summary>
{% for item in report.matched_lists %}
<h3>{{ item.title }}</h3>
<p>{{ "As published" if item.always else "Chosen here" }}: {{ item.listed }}.</p>
<dl class="keys">{% for entry in item.entries %}<dt>{{ entry.keyword }}</dt><dd><code>{{ entry.regex
}}</code>{% if entry.matches %} <span class="soft">{{ entry.matches }}</span>{% endif %}</dd>{% endfor %}</dl>
{% endfor %}
</details>
""",
)
