"""Completions that are not correct, by what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.measures import bad_cases
from analysis.pages.table_texts import Table, percent
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults, checkpoint_labels


def bad_cases_table(runs: Sequence[RunResults], counts: pd.DataFrame) -> Table:
    """The counts for readers: shares of all completions, and of the wrong ones that were searched."""

    def share(part: str, whole: str) -> list[str]:
        pairs = zip(counts[part], counts[whole], strict=True)
        return [
            f"{count:,} ({percent(count / total)} %)" if total and not pd.isna(count) else "–" for count, total in pairs
        ]

    texts = {
        "run": counts["run"],
        "benchmark": counts["benchmark"],
        "checkpoint": checkpoint_labels(runs, counts),
        "no answer": share("no_answer", "completions"),
        "format error": share("format_error", "completions"),
        "truncated": share("truncated", "completions"),
        "wrong answer": share("wrong", "completions"),
        "wrong, searched": counts["searched"].map("{:,}".format),
        "with an arithmetic error": share("arithmetic_error", "searched"),
    }
    return Table("bad_cases", counts, pd.DataFrame(texts))


def content(report: ReportData) -> Content:
    """The counts, and examples at the last checkpoint of each run."""
    counts = pd.concat([counts for counts, _ in report.wrong_answers.values()], ignore_index=True)
    examples = {name: examples for name, (_, examples) in report.wrong_answers.items()}
    return Content([bad_cases_table(report.runs, counts)], values={"examples": examples, "kinds": bad_cases.KINDS})


SECTION = Section(
    order=900,
    title="Wrong answers",
    anchor="bad",
    content=content,
    tables={
        "bad_cases": (
            "Completions that are not correct, by kind. An arithmetic error is a false equation between numbers; it "
            "need not be the cause of the wrong answer."
        )
    },
    text="""\
<p>Completions that are not correct, by kind. Wrong answers are searched for arithmetic errors: equations between
numbers that are false (parsed, never evaluated). An arithmetic error need not be the cause of the wrong answer.</p>
{% for run, of_run in examples.items() %}
{{ table("bad_cases", run=run, caption=titles[run], text_columns=2) }}
<details><summary>Examples at the last checkpoint: the first of each kind in the order of a hash</summary>
{% for item in of_run %}
<article class="pair"><header><b>{{ item.benchmark }}: {{ kinds[item.kind] }}</b> <span class="soft">problem</span>
<code>{{ item.problem_id|clipped(200) }}</code> <span class="soft">answer</span> <code>{{ item.answer|clipped(200)
}}</code> <span class="soft">gold answer</span> <code>{{ item.gold|clipped(200) }}</code>{% if item.evidence %} <span
class="soft">false:</span> <code>{{ item.evidence|clipped(200) }}</code>{% endif %}</header>
<pre dir="ltr">
{{ item.excerpt }}</pre></article>
{% endfor %}
</details>
{% endfor %}
""",
)
