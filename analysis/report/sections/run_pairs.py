"""Final checkpoints of two runs against each other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pandas as pd

from analysis.pages.table_texts import Table, interval_text, points
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults
from analysis.statistics import checkpoint_difference

PAIR_VERDICTS = {
    "rose": "the second checkpoint is better", "fell": "the first checkpoint is better", "cannot tell": "cannot tell",
}  # fmt: skip


def pairs_table(runs: Sequence[RunResults]) -> Table | None:
    """Final checkpoints of two runs against each other, paired by problem, on the benchmarks that both have.

    A pair whose results are not comparable (analysis.comparability) has no difference, but a line that says why.
    """
    data, texts = [], []
    for first, second in itertools.combinations(runs, 2):
        shared = [name for name in first.benchmarks if name in second.benchmarks]
        if not shared:
            continue
        why = checkpoint_difference.obstacles(first, second, shared)
        gap = None if why else checkpoint_difference.between_runs(first, second, shared)
        texts.append(
            {
                "first": f"{first.display_name}, {first.label(first.last)}",
                "second": f"{second.display_name}, {second.label(second.last)}",
                "benchmarks": len(shared),
                "second less first (points)": interval_text(gap, points) if gap else "–",
                "verdict": PAIR_VERDICTS[gap.change] if gap else f"not compared: {why}",
            }
        )
        estimate = {"value": gap.value, "low": gap.low, "high": gap.high} if gap else {}
        data.append({"first": first.name, "second": second.name, **estimate, "not_compared": why})
    return Table("pairs", pd.DataFrame(data), pd.DataFrame(texts)) if texts else None


def without_shared_benchmark(runs: Sequence[RunResults]) -> int:
    """Pairs of runs that cannot be compared because they have no benchmark in common."""
    return sum(not {*one.benchmarks} & {*two.benchmarks} for one, two in itertools.combinations(runs, 2))


def content(report: ReportData) -> Content:
    """The table, where two runs have a benchmark in common."""
    pairs = pairs_table(report.runs)
    return Content([pairs] if pairs else [], values={"unpaired": without_shared_benchmark(report.runs)})


SECTION = Section(
    order=240,
    content=content,
    tables={
        "pairs": (
            "Final checkpoints against each other, paired by problem, for runs that answered the same problems under "
            "the same protocol."
        )
    },
    text="""\
{{ table("pairs", "Final checkpoints against each other, paired by problem, for runs that answered the same problems,
with the same prompts, under the same protocol. For the others the last column says what differs.", 2) }}
{% if unpaired %}<p class="soft">{{ unpaired }} pair{{ "s" if unpaired > 1 }} of runs {{ "have" if unpaired > 1 else
"has" }} no benchmark in common.</p>{% endif %}
""",
)
