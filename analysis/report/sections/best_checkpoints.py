"""Runs and frameworks side by side: base model, final and best checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.pages.table_texts import Table, interval_columns, interval_text, percent
from analysis.report.report_data import ReportData, RunFacts
from analysis.report.section import Content, Section
from analysis.report.sections import contamination
from analysis.results import RunResults
from analysis.statistics import checkpoint_difference
from analysis.statistics.accuracy_rows import CheckpointRow, overall_column
from analysis.statistics.checkpoint_difference import mean_of
from eval import statistics
from eval.statistics import Estimate, clusters

COMPLETED = "benchmark questions completed from 60 % (%)"


def best_step(run: RunResults) -> int:
    """The checkpoint with the highest average over all problems, which are also those it is reported on."""
    return max(run.steps, key=lambda step: checkpoint_difference.average_accuracy(run, step).value)


def best_held_out(run: RunResults) -> Estimate | None:
    """Accuracy of the best checkpoint, chosen on one half of the problems and measured on the other, both ways.

    The halves are those of hash_order.halves. No problem is used for both, so that luck in the choice does
    not count as skill. The two chosen checkpoints may differ. None with fewer than four problems.
    """
    halves = {name: run.halves(name) for name in run.benchmarks}
    if any(min((half == 0).sum(), (half == 1).sum()) < 2 for half in halves.values()):
        return None
    measured = []
    for chosen_on in (0, 1):

        def mean(step: int, half: int = chosen_on) -> float:
            shares = [run.correct(step, name)[halves[name] == half].mean() for name in run.benchmarks]
            return float(np.mean(shares))

        step = max(run.steps, key=mean)
        kept = [(run, name, halves[name] != chosen_on) for name in run.benchmarks]
        measured.append(mean_of([_accuracy_of_part(*part, step) for part in kept]))
    return mean_of(measured)


def _accuracy_of_part(run: RunResults, benchmark: str, part: npt.NDArray[np.bool_], step: int) -> Estimate:
    shared = clusters.of_part(run.clusters(benchmark), part)
    return statistics.avg_at_k(run.correct(step, benchmark)[part], clusters=shared)


def runs_table(
    runs: Sequence[RunResults],
    rows: dict[str, list[CheckpointRow]],
    facts: dict[str, RunFacts],
    completed: Mapping[str, str] = MappingProxyType({}),
) -> Table:
    """The base model, the final and the best checkpoint of each run, on the average of its benchmarks.

    Args:
        runs: those to show. Imported generations have no base model.
        rows: their accuracy rows, by name.
        facts: what they are, by name.
        completed: by name, what the base model completes of its benchmarks' questions, for a column of its own.
    """
    data, texts = [], []
    for run in runs:
        base, last = rows[run.name][0], rows[run.name][-1]
        column = overall_column(base.cells)
        final, before = last.cells[column], base.cells[column].accuracy if run.trained else None
        step, held_out = best_step(run), best_held_out(run)
        top, what = checkpoint_difference.average_accuracy(run, step), facts[run.name]
        data.append(
            {
                "run": run.name, "framework": what.framework, "algorithm": what.algorithm, "final_step": last.step,
                **interval_columns({"base": before, "final": final.accuracy, "final_difference": final.difference}),
                **interval_columns({"best_apart": held_out}),
                "best_step": step, "best_same_items": top.value,
            }
        )  # fmt: skip
        texts.append(
            {
                "run": run.display_name,
                **({"model": what.model} if any(one.title for one in runs) else {}),
                "framework": f"{what.framework}, {what.algorithm}" if what.algorithm != "–" else what.framework,
                "measured on": f"average of {len(run.benchmarks)}" if len(run.benchmarks) > 1 else run.benchmarks[0],
                "base model (%)": interval_text(before, percent) if before else "–",
                "final (%)": f"{interval_text(final.accuracy, percent)} {final.marks}".strip() + f" ({last.label})",
                "best, chosen on the same problems (%)": f"{percent(top.value)} ({run.label(step)}) †",
                "best, chosen on other problems (%)": interval_text(held_out, percent) if held_out else "–",
                **({COMPLETED: completed[run.name]} if completed else {}),
            }
        )
    return Table("runs", pd.DataFrame(data), pd.DataFrame(texts))


def content(report: ReportData) -> Content:
    """The table, with a column for what was asked of the base models about contamination."""
    measured = any(not run.contamination.empty for run in report.runs)
    completed_from = {run.name: contamination.table_cell(run) for run in report.runs} if measured else {}
    return Content(tables=[runs_table(report.runs, report.rows, report.facts, completed_from)])


SECTION = Section(
    order=210,
    content=content,
    tables={
        "runs": (
            "Base model, final and best checkpoint of each run. † chosen on the problems that it is measured on, so "
            "biased upwards; the last column has no such bias."
        )
    },
    text="""\
<h3>Runs and frameworks side by side</h3>
{{ table("runs", "Base model, final and best checkpoint of each run.", 4) }}
<p class="soft">† Biased upwards: this checkpoint was chosen on the problems that it is measured on. The last column has
no such bias: the best checkpoint is chosen on one half of the problems and measured on the other, both ways.</p>
""",
)
