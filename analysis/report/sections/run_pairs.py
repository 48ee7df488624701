"""Final checkpoints of two runs against each other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pandas as pd

from analysis.pages.table_texts import Table, interval_text, points
from analysis.report.pair_verdicts import PagePairs
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults

PAIR_VERDICTS = {
    "rose": "the second checkpoint is better", "fell": "the first checkpoint is better", "cannot tell": "cannot tell",
}  # fmt: skip
P_COLUMN = "p (Holm, all pairs of this page)"


def pairs_table(decided: PagePairs) -> Table | None:
    """Final checkpoints of two runs against each other, paired by problem, on the benchmarks that both have.

    A pair whose results are not comparable (analysis.comparability) has no difference, but a line that says why.
    """
    data, texts = [], []
    for pair in decided.runs:
        gap = pair.difference
        texts.append(
            {
                "first": f"{pair.first.display_name}, {pair.first.label(pair.first.last)}",
                "second": f"{pair.second.display_name}, {pair.second.label(pair.second.last)}",
                "benchmarks": len(pair.benchmarks),
                "second less first (points)": interval_text(gap, points) if gap else "–",
                P_COLUMN: f"{pair.p_adjusted:.4f}" if gap else "–",
                "verdict": PAIR_VERDICTS[pair.change] if gap else f"not compared: {pair.obstacle}",
            }
        )
        estimate = {**gap._asdict(), "p_adjusted": pair.p_adjusted, "verdict": pair.change} if gap else {}
        data.append({"first": pair.first.name, "second": pair.second.name, **estimate, "not_compared": pair.obstacle})
    return Table("pairs", pd.DataFrame(data), pd.DataFrame(texts)) if texts else None


def without_shared_benchmark(runs: Sequence[RunResults]) -> int:
    """Pairs of runs that cannot be compared because they have no benchmark in common."""
    return sum(not {*one.benchmarks} & {*two.benchmarks} for one, two in itertools.combinations(runs, 2))


def content(report: ReportData) -> Content:
    """The table, where two runs have a benchmark in common."""
    pairs = pairs_table(report.pairs)
    values = {"unpaired": without_shared_benchmark(report.runs), "tests": report.pairs.tests}
    return Content([pairs] if pairs else [], values=values)


SECTION = Section(
    order=240,
    content=content,
    tables={
        "pairs": (
            "Final checkpoints against each other, paired by problem, for runs that answered the same problems under "
            "the same protocol. Verdicts are corrected for the number of pairs of the page; intervals are not."
        )
    },
    text="""\
{{ table("pairs", "Final checkpoints against each other, paired by problem, for runs that answered the same problems,
with the same prompts, under the same protocol. For the others the last column says what differs. A verdict is that of
the paired test of their mean; the chance of any false one, over the " ~ tests ~ " comparison" ~ ("s" if tests > 1) ~ "
of runs and of recipes on this page, is at most 5 % (Holm). Intervals are for one pair alone.", 2) }}
{% if unpaired %}<p class="soft">{{ unpaired }} pair{{ "s" if unpaired > 1 }} of runs {{ "have" if unpaired > 1 else
"has" }} no benchmark in common.</p>{% endif %}
""",
)
