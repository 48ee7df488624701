"""What the documents claim, and what these runs say of it."""

from __future__ import annotations

from analysis.claims import table as claims
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section


def content(report: ReportData) -> Content:
    """The table, and where the claims are from."""
    return Content(
        [report.claims],
        values={
            "claims": report.claims.data.to_dict("records"),
            "counted": claims.verdict_counts(report.claims),
            "sources": claims.sources(),
        },
    )


SECTION = Section(
    order=1500,
    title="What the documents claim",
    anchor="claims",
    page=True,
    link="Claims",
    content=content,
    tables={"claims": "What the documents claim, where, the rule that decides it, and what the stored results say."},
    text="""\
<p>{{ counted }}. The rules were fixed before there was any result of full scale. The verdicts are from the runs of this
page; a claim is supported only if all intervals lie inside what is claimed, and contradicted if one lies outside. A
sentence about a recipe is decided over its training seeds, two or more; each verdict has an error of 5 %, and nothing
is corrected for the number of claims. Runs of another scale than the claim's decide nothing. Shares are fractions,
lengths are in tokens; several rules are separated by semicolons.</p>
{{ claims_table(claims) }}
<dl class="keys">{% for name, source in sources.items() %}<dt id="claims-{{ name }}">{{ name }}</dt><dd>{{ source.title
}}{% if source.url is defined %}: <code>{{ source.url }}</code>{% endif %}</dd>{% endfor %}</dl>
""",
)
