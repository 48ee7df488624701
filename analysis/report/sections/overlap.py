"""Problems of each benchmark that are also in a training set."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.pages.table_texts import Table, percent
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from system.errors import UserError


def overlap_table(file: Path) -> Table:
    """How many problems of each benchmark occur in each training set, from the CSV table of tasks.overlap."""
    try:
        data = pd.read_csv(file)
        return Table("overlap", data, _shown_overlap(data))
    except (KeyError, TypeError, ValueError) as error:  # among them pandas' own, for an empty or a cut file
        raise UserError(
            f"{file} should be the table that tasks.overlap writes, but is another or damaged ({error}): delete it to "
            "have it made again",
            code="damaged-table", path=str(file),
        ) from None  # fmt: skip


def _shown_overlap(data: pd.DataFrame) -> pd.DataFrame:
    def of_all(column: str) -> list[str]:
        return [f"{n} ({percent(share)} %)" for n, share in zip(data[column], data[f"{column}_share"], strict=True)]

    return pd.DataFrame(
        {
            "training set": data["train"],
            "benchmark": data["benchmark"],
            "problems": data["problems"].map("{:,}".format),
            "identical text": of_all("exact"),
            "half of its 13-word windows": of_all("gram13_half"),
            "half of its 8-word windows": of_all("gram8_half"),
        }
    )


def content(report: ReportData) -> Content:
    """The table, if it was computed."""
    tables = [overlap_table(report.overlap)] if report.overlap else []
    return Content(tables, values={"computed": bool(tables)})


SECTION = Section(
    order=1100,
    title="Overlap of training data and benchmarks",
    anchor="overlap",
    link="Overlap",
    content=content,
    tables={"overlap": "Problems of each benchmark that are also in the training set."},
    text="""\
{% if computed %}
<p>Problems of a benchmark that are also in the training set: with identical text, or sharing many windows of
consecutive words (windows that occur in more than ten training problems are not counted). A score on problems that were
trained on is not a held-out score. Generated word problems share sentences by construction and differ in their
numbers.</p>
{{ table("overlap", "Benchmark problems that are also in the training set.", 2) }}
{% else %}
<p>Not computed for these results.</p>
{% endif %}
""",
)
