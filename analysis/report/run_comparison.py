"""Runs and frameworks side by side: final and best checkpoints, and our figures beside the published ones."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.report import checkpoint_comparison, published
from analysis.report.accuracy import Row, overall
from analysis.report.checkpoint_comparison import Interval, mean_of
from analysis.report.tables import interval_text
from analysis.results import BENCHMARKS, Run
from analysis.table_export import Table, percent, points
from contracts import seeds
from contracts.errors import UserError
from eval import statistics
from recipes import runs as run_files


@dataclass(frozen=True)
class About:
    """What a run is, from its run file; a dash or None where there is none, as for imported generations."""

    framework: str = "–"
    algorithm: str = "–"
    model: str = "–"
    reference: str | None = None


def about(run: Run, scale: str) -> About:
    """Look a run up in recipes/: its name is <recipe>/<run>/seed-<n>."""
    try:
        found = run_files.load_run(seeds.run_of(run.name), scale)
    except UserError:
        record = next((r for name, r in run.provenance.items() if name.startswith("training_log")), {})
        return About(framework=str(record.get("framework", "–")))
    return About(found.framework, found.algorithm, found.model, found.reference)


def _half(problem: str) -> int:
    return hashlib.sha256(f"half of {problem}".encode("utf-8", "surrogatepass")).digest()[0] % 2


def best_step(run: Run) -> int:
    """The checkpoint with the highest average over all items: chosen by the very items it is reported on."""
    return max(run.steps, key=lambda step: checkpoint_comparison.average_accuracy(run, step).value)


def best_apart(run: Run) -> Interval | None:
    """Accuracy of the best checkpoint, chosen on one half of the problems and measured on the other, both ways.

    Halves are by a hash of the problem's name. What is chosen and what is measured share no problem, so that the luck
    of the choice is not counted as skill; the two checkpoints may differ. None with fewer than four problems.
    """
    halves = {name: np.array([_half(problem) for problem in run.problems(name)]) for name in run.benchmarks}
    if any(min((half == 0).sum(), (half == 1).sum()) < 2 for half in halves.values()):
        return None
    measured = []
    for chosen_on in (0, 1):

        def mean(step: int, half: int = chosen_on) -> float:
            shares = [run.correct(step, name)[halves[name] == half].mean() for name in run.benchmarks]
            return float(np.mean(shares))

        step = max(run.steps, key=mean)
        kept = [run.correct(step, name)[halves[name] != chosen_on] for name in run.benchmarks]
        measured.append(mean_of([Interval(*statistics.avg_at_k(correct)) for correct in kept]))
    return mean_of(measured)


def runs_table(runs: Sequence[Run], rows: dict[str, list[Row]], facts: dict[str, About]) -> Table:
    """Each run's base model (imported generations have none), final and best checkpoint, on its benchmarks' average."""
    data, shown = [], []
    for run in runs:
        base, last = rows[run.name][0], rows[run.name][-1]
        column = overall(base.cells)
        step, apart = best_step(run), best_apart(run)
        top = checkpoint_comparison.average_accuracy(run, step)
        what = facts[run.name]
        words = {
            "run": run.name,
            "framework": f"{what.framework}, {what.algorithm}" if what.algorithm != "–" else what.framework,
            "measured on": f"average of {len(run.benchmarks)}" if len(run.benchmarks) > 1 else run.benchmarks[0],
            "base model (%)": interval_text(base.cells[column].accuracy, percent) if run.trained else "–",
            "final (%)": f"{interval_text(last.cells[column].accuracy, percent)} {last.cells[column].marks}".strip()
            + f" ({last.label})",
            "best, chosen on these items (%)": f"{percent(top.value)} ({run.label(step)}) †",
            "best, chosen on other items (%)": interval_text(apart, percent) if apart else "–",
        }
        numbers = {"run": run.name, "framework": what.framework, "algorithm": what.algorithm, "final_step": last.step}
        for name, part in (
            ("base", base.cells[column].accuracy if run.trained else None),
            ("final", last.cells[column].accuracy),
            ("final_difference", last.cells[column].difference),
            ("best_apart", apart),
        ):
            if part:
                numbers |= {name: part.value, f"{name}_low": part.low, f"{name}_high": part.high}
        data.append(numbers | {"best_step": step, "best_same_items": top.value})
        shown.append(words)
    return Table("runs", pd.DataFrame(data), pd.DataFrame(shown))


def pairs_table(runs: Sequence[Run]) -> Table | None:
    """Final checkpoints of two runs against each other, paired by problem, where they answered the same problems."""
    data, shown = [], []
    for first, second in itertools.combinations(runs, 2):
        shared = [name for name in first.benchmarks if name in second.benchmarks]
        gap = checkpoint_comparison.between_runs(first, second, shared) if shared else None
        if gap is None:
            continue
        verdict = {"rose": "the second is better", "fell": "the first is better", "cannot tell": "cannot tell"}
        shown.append(
            {
                "first": f"{first.name}, {first.label(first.last)}",
                "second": f"{second.name}, {second.label(second.last)}",
                "benchmarks": len(shared),
                "second less first (points)": interval_text(gap, points),
                "verdict": verdict[gap.change],
            }
        )
        data.append({"first": first.name, "second": second.name, "value": gap.value, "low": gap.low, "high": gap.high})
    return Table("pairs", pd.DataFrame(data), pd.DataFrame(shown)) if shown else None


def beside_published(runs: Sequence[Run], facts: dict[str, About]) -> Table | None:
    """Our accuracy beside the published one at the same step, with the tolerance that n and k of both allow.

    Published figures are of problems answered once, and of which answers is not known, so nothing is paired. A
    difference within the tolerance does not speak against a reproduction; one outside does.
    """
    data, shown = [], []
    for run in runs:
        name = facts[run.name].reference
        shared = [benchmark for benchmark in BENCHMARKS if benchmark in run.benchmarks]
        if not name or not shared:
            continue
        figures = {int(row["step"]): row for row in published.published(name).to_dict("records")}
        for step in [step for step in run.steps if step in figures]:
            for benchmark in shared:
                ours = checkpoint_comparison.accuracy(run, step, benchmark)
                theirs = published.estimate(figures[step][benchmark], published.problems()[benchmark])
                mine = statistics.Estimate(ours.value, ours.low, ours.high)
                gap = Interval(*statistics.independent_difference(theirs, mine))
                within = gap.change == "cannot tell"
                shown.append(
                    {
                        "run": run.name,
                        "checkpoint": run.label(step),
                        "benchmark": benchmark,
                        "published (%)": f"{percent(theirs.value)} (n = {published.problems()[benchmark]}, k = 1)",
                        "ours (%)": interval_text(ours, percent),
                        "ours less published (points)": points(gap.value),
                        "tolerance (points)": f"{points(gap.low - gap.value)} to {points(gap.high - gap.value)}",
                        "verdict": "within" if within else "outside",
                    }
                )
                data.append(
                    {
                        "run": run.name, "step": step, "benchmark": benchmark, "published": theirs.value,
                        "ours": ours.value, "difference": gap.value, "low": gap.low, "high": gap.high, "within": within,
                    }
                )  # fmt: skip
    return Table("published", pd.DataFrame(data), pd.DataFrame(shown)) if shown else None
