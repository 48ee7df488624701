"""Runs and frameworks side by side: final and best checkpoints, and our figures beside the published ones."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from analysis import hash_order
from analysis.pages.table_texts import Table, interval_columns, interval_text, percent, points
from analysis.results import RunResults
from analysis.statistics import checkpoint_difference, published_tables
from analysis.statistics.accuracy_rows import CheckpointRow, overall_column
from analysis.statistics.checkpoint_difference import mean_of
from contracts import seeds
from eval import statistics
from eval.statistics import Estimate
from recipes import runs as run_files
from system.errors import UserError

PAIR_VERDICTS = {
    "rose": "the second checkpoint is better", "fell": "the first checkpoint is better", "cannot tell": "cannot tell",
}  # fmt: skip


COMPLETED = "benchmark questions completed from 60 % (%)"


@dataclass(frozen=True)
class RunFacts:
    """What a run is, from its run file. A dash or None means that it has none, such as imported generations."""

    framework: str = "–"
    algorithm: str = "–"
    model: str = "–"
    reference: str | None = None
    control: str | None = None
    control_of: str | None = None


def run_facts(run: RunResults, scale: str) -> RunFacts:
    """Look a run up in recipes/ by its name, <recipe>/<run>/seed-<n>."""
    try:
        found = run_files.load_run(seeds.run_of(run.name), scale)
    except UserError:
        record = next((r for name, r in run.provenance.items() if name.startswith("training_log")), {})
        return RunFacts(framework=str(record.get("framework", "–")))
    return RunFacts(found.framework, found.algorithm, found.model, found.reference, found.control, found.control_of)


def best_step(run: RunResults) -> int:
    """The checkpoint with the highest average over all problems, which are also those it is reported on."""
    return max(run.steps, key=lambda step: checkpoint_difference.average_accuracy(run, step).value)


def best_held_out(run: RunResults) -> Estimate | None:
    """Accuracy of the best checkpoint, chosen on one half of the problems and measured on the other, both ways.

    The halves are given by a hash of the problem's name. No problem is used for both, so that luck in the choice does
    not count as skill. The two chosen checkpoints may differ. None with fewer than four problems.
    """
    halves = {
        name: np.array([int(hash_order.key(f"half of {p}")[:2], 16) % 2 for p in run.problems(name)])
        for name in run.benchmarks
    }
    if any(min((half == 0).sum(), (half == 1).sum()) < 2 for half in halves.values()):
        return None
    measured = []
    for chosen_on in (0, 1):

        def mean(step: int, half: int = chosen_on) -> float:
            shares = [run.correct(step, name)[halves[name] == half].mean() for name in run.benchmarks]
            return float(np.mean(shares))

        step = max(run.steps, key=mean)
        kept = [run.correct(step, name)[halves[name] != chosen_on] for name in run.benchmarks]
        measured.append(mean_of([statistics.avg_at_k(correct) for correct in kept]))
    return mean_of(measured)


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
    data, shown = [], []
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
        shown.append(
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
    return Table("runs", pd.DataFrame(data), pd.DataFrame(shown))


def pairs_table(runs: Sequence[RunResults]) -> Table | None:
    """Final checkpoints of two runs against each other, paired by problem, on the benchmarks that both have.

    A pair whose results are not comparable (analysis.comparability) has no difference, but a line that says why.
    """
    data, shown = [], []
    for first, second in itertools.combinations(runs, 2):
        shared = [name for name in first.benchmarks if name in second.benchmarks]
        if not shared:
            continue
        why = checkpoint_difference.obstacles(first, second, shared)
        gap = None if why else checkpoint_difference.between_runs(first, second, shared)
        shown.append(
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
    return Table("pairs", pd.DataFrame(data), pd.DataFrame(shown)) if shown else None


def without_shared_benchmark(runs: Sequence[RunResults]) -> int:
    """Pairs of runs that cannot be compared because they have no benchmark in common."""
    return sum(not {*one.benchmarks} & {*two.benchmarks} for one, two in itertools.combinations(runs, 2))


def beside_published(runs: Sequence[RunResults], facts: dict[str, RunFacts]) -> Table | None:
    """Our accuracy beside the published one at the same step, with the tolerance that n and k of both allow.

    Published problems were answered once, and which answers were correct is unknown, so nothing is paired. Only a
    difference outside the tolerance, whichever grader judges our completions, is evidence against a reproduction.
    """
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for run in runs:
        name = facts[run.name].reference
        shared = [benchmark for benchmark in published_tables.sizes() if benchmark in run.benchmarks]
        if not name or not shared:
            continue
        figures = {int(row["step"]): row for row in published_tables.published_table(name).to_dict("records")}
        pairs += [
            _beside_one(run, step, benchmark, float(figures[step][benchmark]))
            for step in run.steps
            if step in figures
            for benchmark in shared
        ]
    data, shown = [data for data, _ in pairs], [shown for _, shown in pairs]
    return Table("published", pd.DataFrame(data), pd.DataFrame(shown)) if pairs else None


def _beside_one(run: RunResults, step: int, benchmark: str, share: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """One line of the table, as data and as text. `share` is the published accuracy."""
    n = published_tables.sizes()[benchmark]
    ours, theirs = checkpoint_difference.accuracy(run, step, benchmark), published_tables.estimate(share, n)
    gap = statistics.independent_difference(theirs, ours)
    within = gap.change == "cannot tell"
    lowest, highest = band = run.graders_band(step, benchmark) or (ours.value, ours.value)
    # Within the tolerance for a grader of the band, which moves the difference and its interval alike.
    by_grader = gap.low + lowest - ours.value <= 0 <= gap.high + highest - ours.value
    shown_band = "–" if run.graders_band(step, benchmark) is None else "–".join(map(percent, band))
    return {
        "run": run.name, "step": step, "benchmark": benchmark, "published": theirs.value, "ours": ours.value,
        "difference": gap.value, "low": gap.low, "high": gap.high, "within": within,
        "graders_low": lowest, "graders_high": highest, "within_by_grader": by_grader,
    }, {
        "run": run.name,
        "checkpoint": run.label(step),
        "benchmark": benchmark,
        "published (%)": f"{percent(theirs.value)} (n = {n}, k = 1)",
        "ours (%)": interval_text(ours, percent),
        "ours over graders (%)": shown_band,
        "ours less published (points)": points(gap.value),
        "tolerance (points)": f"{points(gap.low - gap.value)} to {points(gap.high - gap.value)}",
        "verdict": "within" if within else "depends on the grader" if by_grader else "outside",
    }  # fmt: skip
