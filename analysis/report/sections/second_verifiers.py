"""Answers as two verifiers of the same task judge them, such as a published one with faults."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.measures import reasoning
from analysis.pages.table_texts import Table
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults, checkpoint_labels


def verifiers_table(runs: Sequence[RunResults], counts: pd.DataFrame) -> Table:
    """The counts of `second_verifiers` for readers."""
    texts = {
        "run": counts["run"],
        "benchmark": counts["benchmark"],
        "checkpoint": checkpoint_labels(runs, counts),
        "other verifier": counts["grader"],
        "answers": counts["answers"].map("{:,}".format),
        "accepted by ours": counts["own"].map("{:,}".format),
        "accepted by the other": counts["other"].map("{:,}".format),
        "by ours alone": counts["only_own"].map("{:,}".format),
        "by the other alone": counts["only_other"].map("{:,}".format),
    }
    return Table("second_verifiers", counts, pd.DataFrame(texts))


def content(report: ReportData) -> Content | None:
    """The table, where a task has several verifiers."""
    counts = pd.concat([reasoning.second_verifiers(run) for run in report.runs], ignore_index=True)
    return Content([verifiers_table(report.runs, counts)]) if len(counts) else None


SECTION = Section(
    order=810,
    content=content,
    tables={
        "second_verifiers": (
            "Answers as the task's own verifier and another one judge them, such as a published one with faults."
        )
    },
    text="""\
{{ table("second_verifiers", "Answers as two verifiers of the same task judge them. Ours follows the stated rules; the
other is the published one, faults included.", 4) }}
""",
)
