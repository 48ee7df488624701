"""Our figures beside the published tables, and what those tables show by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis import reference
from analysis.pages.table_texts import Table, interval_text, percent, points
from analysis.reference import source
from analysis.report.report_data import ReportData, RunFacts
from analysis.report.section import Content, Section
from analysis.report.sections.accuracy import accuracy_table
from analysis.results import RunResults
from analysis.statistics import checkpoint_difference, published_tables
from analysis.statistics.accuracy_rows import CheckpointRow
from analysis.statistics.checkpoint_difference import mean_of
from analysis.statistics.published_tables import rows, sizes
from eval import statistics
from eval.statistics import Estimate


def beside_published(runs: Sequence[RunResults], facts: dict[str, RunFacts]) -> Table | None:
    """Our accuracy beside the published one at the same step, with the tolerance that n and k of both allow.

    Published problems were answered once, and which answers were correct is unknown, so nothing is paired. Only a
    difference outside the tolerance, whichever grader judges our completions, is evidence against a reproduction.
    """
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for run in runs:
        name = facts[run.name].reference
        shared = [benchmark for benchmark in published_tables.sizes() if benchmark in run.benchmarks]
        if not name or not shared:
            continue
        figures = {int(row["step"]): row for row in published_tables.published_table(name).to_dict("records")}
        pairs += [
            _beside_one(run, step, benchmark, float(figures[step][benchmark]))
            for step in run.steps
            if step in figures
            for benchmark in shared
        ]
    data, texts = [data for data, _ in pairs], [texts for _, texts in pairs]
    return Table("published", pd.DataFrame(data), pd.DataFrame(texts)) if pairs else None


def _beside_one(run: RunResults, step: int, benchmark: str, share: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """One line of the table, as data and as text. `share` is the published accuracy."""
    n = published_tables.sizes()[benchmark]
    ours, theirs = checkpoint_difference.accuracy(run, step, benchmark), published_tables.estimate(share, n)
    gap = statistics.independent_difference(theirs, ours)
    within = gap.change == "cannot tell"
    lowest, highest = band = run.graders_band(step, benchmark) or (ours.value, ours.value)
    # Within the tolerance for a grader of the band, which moves the difference and its interval alike.
    by_grader = gap.low + lowest - ours.value <= 0 <= gap.high + highest - ours.value
    shown_band = "–" if run.graders_band(step, benchmark) is None else "–".join(map(percent, band))
    return {
        "run": run.name, "step": step, "benchmark": benchmark, "published": theirs.value, "ours": ours.value,
        "difference": gap.value, "low": gap.low, "high": gap.high, "within": within,
        "graders_low": lowest, "graders_high": highest, "within_by_grader": by_grader,
    }, {
        "run": run.name,
        "checkpoint": run.label(step),
        "benchmark": benchmark,
        "published (%)": f"{percent(theirs.value)} (n = {n}, k = 1)",
        "ours (%)": interval_text(ours, percent),
        "ours over graders (%)": shown_band,
        "ours less published (points)": points(gap.value),
        "tolerance (points)": f"{points(gap.low - gap.value)} to {points(gap.high - gap.value)}",
        "verdict": "within" if within else "depends on the grader" if by_grader else "outside",
    }  # fmt: skip


FEW_PROBLEMS = 40  # benchmarks of at most this many get a sentence on how much they can show
COMPARED = {"rose": "above", "fell": "below", "cannot tell": "not distinguishable from"}


def what_it_shows(tables: Iterable[str], path: Path = reference.PUBLISHED) -> list[str]:
    """Which of the published differences are beyond noise, as sentences made from the numbers."""
    rows_of_table = {name: rows(name, path) for name in tables}
    sentences = [_table_sentence(name, rows) for name, rows in rows_of_table.items()]
    counts = []
    for name, size in sizes().items():
        steps = [row.cells[name].from_above for rows in rows_of_table.values() for row in rows[1:]]
        beyond = sum(step is not None and step.change != "cannot tell" for step in steps)
        counts.append(f"{beyond} of {len(steps)} on {name} (n = {size})")
    sentences.append(f"Differences between neighbouring rows that are beyond noise: {', '.join(counts)}.")
    return sentences + [_resolution_sentence(name, n) for name, n in sizes().items() if n <= FEW_PROBLEMS]


def _table_sentence(name: str, table_rows: list[CheckpointRow]) -> str:
    base, last, top = (
        table_rows[0],
        table_rows[-1],
        max(table_rows, key=lambda row: row.cells["average"].accuracy.value),
    )
    gap = last.cells["average"].difference
    assert gap is not None
    text = (
        f"Table {name}: {last.label} is {COMPARED[gap.change]} {base.label} on average ({points(gap.value)} points, "
        f"95 % interval {points(gap.low)} to {points(gap.high)})"
    )
    if top is not base:
        equal = [row for row in table_rows if row is not top and _average_gap(row, top).change == "cannot tell"]
        verdict = (
            f"not distinguishable from {len(equal)} of the other {len(table_rows) - 1} rows"
            if equal
            else "above all others"
        )
        text += f"; its best average, {100 * top.cells['average'].accuracy.value:.1f} at {top.label}, is {verdict}"
    return f"{text}."


def _average_gap(row: CheckpointRow, top: CheckpointRow) -> Estimate:
    """The average of the row `top` less that of another row of the same table."""
    pairs = [(row.cells[name].accuracy, top.cells[name].accuracy) for name in sizes()]
    return mean_of([statistics.independent_difference(*pair) for pair in pairs])


def _resolution_sentence(name: str, n: int) -> str:
    """The smallest difference around one half that n problems answered once can show."""
    half = n // 2
    need = next(k for k in range(1, n) if _beyond_noise(half, half + k, n))
    return (
        f"With {n} problems answered once, {name} can distinguish {half}/{n} only from {half + need}/{n} or more: "
        f"differences under {100 * need / n:.0f} points around one half are noise."
    )


def _beyond_noise(low: int, high: int, n: int) -> bool:
    pair = [statistics.avg_at_k(np.arange(n)[:, None] < count) for count in (low, high)]
    return statistics.independent_difference(pair[0], pair[1]).low > 0


def content(report: ReportData) -> Content:
    """The comparison, where a run reproduces a published table, and all published tables with intervals."""
    beside = beside_published(report.runs, report.facts)
    printed = {name: published_tables.rows(name) for name in published_tables.table_names()}
    return Content(
        tables=[
            *([beside] if beside else []),
            *(accuracy_table(rows, f"published-{name}") for name, rows in printed.items()),
        ],
        values={
            "beside": beside,
            "printed": printed,
            "reproduces_table": any(facts.reference for facts in report.facts.values()),
            "sentences": what_it_shows(printed),
            "source": source(),
        },
    )


SECTION = Section(
    order=300,
    title="The published figures",
    anchor="published",
    link="Published figures",
    content=content,
    tables={
        "published": (
            "Our figures beside the published ones at the same step. The tolerance follows from the number of "
            "problems and repeats of both, the range over graders from all that judged the same completions."
        ),
        "published-": "A published table, with intervals from the number of problems alone.",
    },
    text="""\
{% if beside %}{{ table("published", "Our figures beside the published ones at the same step. The tolerance follows from
the number of problems and repeats of both. The range over graders is that of all graders that judged the same
completions; a dash means that only one did (snakemake grade --config grader=strict adds one).", 3) }}
{% else %}<p>No comparison: none of these runs reproduces a published table and was evaluated on its benchmarks at one
of its steps.</p>
{% endif %}
{% if not reproduces_table %}<details><summary>Tables of another report, which none of these runs
reproduces</summary>{% endif %}
<p>What the published tables show, computed from their figures and the number of problems alone. Each figure is a whole
number of problems, answered once. Nothing is paired because the answers are not published.</p>
<ul>{% for sentence in sentences %}<li>{{ sentence }}</li>{% endfor %}</ul>
{% for name, rows in printed.items() %}
<details><summary>Table {{ name }}, with intervals</summary>
{{ accuracy_table("table " ~ name, rows) }}
</details>
{% endfor %}
<p class="soft">{{ source }}</p>
{% if not reproduces_table %}</details>{% endif %}
""",
)
