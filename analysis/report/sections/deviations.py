"""What the pinned frameworks cannot train as published, as the run files list it."""

from __future__ import annotations

from analysis.provenance_summary import deviations
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section


def content(report: ReportData) -> Content | None:
    """The deviations of each run that has any."""
    by_run = [(run.name, listed) for run in report.runs if (listed := deviations(run))]
    return Content(values={"by_run": by_run}) if by_run else None


SECTION = Section(
    order=330,
    content=content,
    text="""\
<h3>What the pinned frameworks cannot train as published</h3>
{% for run, listed in by_run %}
<p>{{ title_of(run) }}</p>
<ul>{% for item in listed %}<li><b>{{ item.what }}:</b> published: {{ item.published }}; here: {{ item.here }} <span
class="soft">({{ item.source }})</span></li>{% endfor %}</ul>
{% endfor %}
""",
)
