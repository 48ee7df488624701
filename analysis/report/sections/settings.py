"""How each run was made: settings, packages, devices and commits by stage."""

from __future__ import annotations

from analysis.provenance_summary import stages
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section


def content(report: ReportData) -> Content:
    """The records of each run by stage."""
    return Content(values={"stages_by_run": [(run.name, stages(run)) for run in report.runs]})


SECTION = Section(
    order=1300,
    title="Settings and provenance",
    anchor="settings",
    page=True,
    content=content,
    text="""\
{% for run, stages in stages_by_run %}
{{ stage_settings(title_of(run), stages, "settings-" ~ loop.index0) }}
{% endfor %}
""",
)
