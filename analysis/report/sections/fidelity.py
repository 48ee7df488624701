"""The settings of the runs at full scale beside the published ones."""

from __future__ import annotations

from analysis import fidelity
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from contracts import seeds


def content(report: ReportData) -> Content | None:
    """The table of the runs whose published values are registered."""
    names = dict.fromkeys(seeds.run_of(run.name) for run in report.runs)
    registered = [name for name in names if fidelity.is_registered(name)]
    return Content([fidelity.table(registered)]) if registered else None


SECTION = Section(
    order=400,
    title="Published values and ours",
    anchor="fidelity",
    page=True,
    link="Published values",
    content=content,
    tables={
        "fidelity": (
            "Each value at full scale beside the published one, with the repository, commit, file and line in which "
            "it was read."
        )
    },
    text="""\
<p>The settings at full scale beside the published ones. A value is the same, or differs for the reason given, or the
source does not state it.{% if report.scale != "full" %} The runs of this page have those of the {{ report.scale }}
scale.{% endif %}</p>
<details><summary>All values and where they come from</summary>
{{ table("fidelity", "Each value, and the repository, commit, file and line in which the published one was read.", 7) }}
</details>
""",
)
