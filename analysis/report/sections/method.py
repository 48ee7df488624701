"""How to read the numbers."""

from __future__ import annotations

from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section


def content(report: ReportData) -> Content:
    """Text alone."""
    return Content()


SECTION = Section(
    order=1400,
    title="How to read the numbers",
    anchor="method",
    content=content,
    text="""\
<dl>
<dt><b>avg@k</b></dt><dd>Share of correct completions over all problems and their k repeats. A completion without an
answer or with a format error is not correct, and neither is a truncated one without an answer.</dd>
<dt><b>Intervals</b></dt><dd>95 %, clustered by problem: repeats of one problem are not independent, so more repeats
cannot replace more problems.</dd>
<dt><b>Paired differences</b></dt><dd>Each problem's share of correct completions after training less that before.
Pairing removes the difficulty of the problems, which is most of the noise.</dd>
<dt><b>Average</b></dt><dd>Unweighted mean over the benchmarks, as in the published tables. Its interval adds the
half-widths of the benchmarks in quadrature, separately on each side.</dd>
<dt><b>Multiple comparisons</b></dt><dd>Intervals are not corrected for the number of checkpoints and benchmarks: of
twenty without a true change, one excludes zero by chance.</dd>
<dt><b>Training seeds</b></dt><dd>Intervals say how these checkpoints do on problems like these. They do not cover how
another training seed would have turned out.</dd>
</dl>
""",
)
