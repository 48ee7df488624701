"""Figures in the text of documents (results/reference/document_figures.csv), beside what was measured here."""

from __future__ import annotations

from analysis.pages.table_texts import Table
from analysis.reference import FIGURES, read_csv
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section


def figures_table(claimed: Table) -> Table:
    """Each figure with what was measured here for the claim that it belongs to.

    Args:
        claimed: the table of claims (analysis.claims.table).
    """
    figures = read_csv(FIGURES, text=True)
    ours = claimed.data.set_index("id")[["measured", "verdict"]]
    data = figures.join(ours, on="claim").fillna("")
    texts = data.replace("", "–").drop(columns="claim")
    return Table("document_figures", data, texts)


def content(report: ReportData) -> Content:
    """The table."""
    return Content([figures_table(report.claims)])


SECTION = Section(
    order=310,
    content=content,
    tables={
        "document_figures": (
            "Figures in the text of the documents, and what was measured here for the claim that each belongs to."
        )
    },
    text="""\
<details><summary>Figures in the text of other documents, and what was measured here</summary>
{{ table("document_figures", "The sources are listed below the claims.", 6) }}
</details>
""",
)
