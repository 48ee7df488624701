"""Right for the right reason: the verdict on an answer beside those on the steps before it, where tasks check steps.

A completion's reasoning is right if every step that a program can check is right. Completions without such a step are
counted apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import pandas as pd

from analysis import hash_order
from analysis.results import RunResults
from eval import statistics
from eval.statistics import Estimate
from grading.verdicts import DEFAULT
from tasks import reasoning_steps, registry
from tasks.problems import Problem

MOST_CHECKED = 2000  # completions of a checkpoint on a benchmark; whole problems, in the order of a hash
KINDS = {
    "right_right": "right answer, right reasoning",
    "right_wrong": "right answer, wrong reasoning",
    "wrong_right": "wrong answer, right reasoning",
    "wrong_wrong": "wrong answer, wrong reasoning",
    "right_unknown": "right answer, nothing to check",
    "wrong_unknown": "wrong answer, nothing to check",
}
EXAMPLES = 3  # of each kind, at the last checkpoint
SHARES = ("accuracy", "right_right", "right_wrong", "wrong_right", "of_right")


class Example(NamedTuple):
    """A completion of one kind; `fault` is its first wrong step, and what is wrong there."""

    run: str
    kind: str
    benchmark: str
    step: int
    problem_id: str
    repeat: int
    fault: str

    @property
    def link(self) -> str:
        """Where the sample browser shows it, as the part of the address after the `#`."""
        named = [self.run, self.step, self.benchmark, self.problem_id, self.repeat]
        return f"open={quote(json.dumps(named, ensure_ascii=False, separators=(',', ':')))}"


def _chosen(samples: pd.DataFrame, most: int) -> pd.DataFrame:
    """The completions that are checked: all, or those of as many whole problems as fit."""
    if len(samples) <= most:
        return samples
    names = sorted(samples["problem_id"].unique(), key=lambda name: hash_order.key(str(name), 0))
    kept = names[: max(1, most * len(names) // len(samples))]
    return samples[samples["problem_id"].isin(kept)]


def checked(samples: pd.DataFrame, problems: Mapping[str, Problem], most: int = MOST_CHECKED) -> pd.DataFrame | None:
    """The kind of each completion, its checkable and all its steps, and its first fault.

    Args:
        samples: graded completions of one checkpoint and benchmark.
        problems: the benchmark's, by name.
        most: completions that are checked at most: those of whole problems.

    Returns:
        Columns problem_id, cluster (the problem, where it is none's), repeat, kind, checkable, lines, fault, and why it
        is one, in the checker's own words alone; None if the task checks no steps.
    """
    if not problems or registry.get(next(iter(problems.values())).task).step_module() is None:
        return None
    rows = []
    for row in _chosen(samples, most).to_dict("records"):
        problem, cluster = problems[str(row["problem_id"])], row.get("cluster")
        step_verdicts = registry.get(problem.task).check_steps(str(row["completion"] or ""), problem) or []
        right, wrong = reasoning_steps.all_right(step_verdicts), reasoning_steps.first_wrong(step_verdicts)
        answer = "right" if row["verdict"] == "correct" else "wrong"
        rows.append(
            {
                "problem_id": row["problem_id"],
                "cluster": row["problem_id"] if pd.isna(cluster) else f"cluster {cluster}",
                "repeat": row["repeat"],
                "kind": f"{answer}_{'unknown' if right is None else 'right' if right else 'wrong'}",
                "checkable": sum(step.verdict != reasoning_steps.NOT_CHECKABLE for step in step_verdicts),
                "lines": len(step_verdicts),
                "fault": f"{wrong.text}: {wrong.why}" if wrong else "",
                "why": wrong.why if wrong else "",
            }
        )
    return pd.DataFrame(rows)


def share(rows: pd.DataFrame, kinds: Sequence[str], among: Sequence[str] = tuple(KINDS)) -> Estimate | None:
    """The share of some kinds, with its 95 % interval, clustered as an accuracy's; None if there is nothing to count.

    Args:
        rows: as `checked` returns.
        kinds: those counted.
        among: the kinds that they are a share of. If not all, the interval is that of a ratio, linearised by cluster.
    """
    inside = rows[rows["kind"].isin(among)]
    if inside.empty:
        return None
    grouped = inside["kind"].isin(kinds).groupby(inside["cluster"])
    return statistics.ratio(np.asarray(grouped.sum(), dtype=float), np.asarray(grouped.size(), dtype=float))


def count(run: RunResults) -> tuple[pd.DataFrame, list[Example]]:
    """One row per checkpoint and benchmark whose steps can be checked, and examples at the last checkpoint.

    Shares are fractions with 95 % intervals: `accuracy`; `right_right`, `right_wrong` and `wrong_right` of all
    completions; `of_right`, the share of right answers with something to check whose reasoning is right. `checkable` is
    the share of all lines of reasoning. Without steps, the table is empty.
    """
    rows, examples = [], []
    for benchmark in run.benchmarks:
        problems = run.problem_rows.get(benchmark, {})
        for step in run.steps if problems else []:
            kinds = checked(run.samples(step, benchmark), problems, MOST_CHECKED)
            if kinds is None:
                break
            counts = kinds["kind"].value_counts()
            shares = {
                "accuracy": share(kinds, [kind for kind in KINDS if kind.startswith("right")]),
                **{kind: share(kinds, [kind]) for kind in SHARES[1:4]},
                "of_right": share(kinds, ["right_right"], ["right_right", "right_wrong"]),
            }
            row = {"run": run.name, "step": step, "benchmark": benchmark, "completions": len(kinds)}
            row |= {kind: int(counts.get(kind, 0)) for kind in KINDS}
            row |= {"checkable": kinds["checkable"].sum() / max(kinds["lines"].sum(), 1)}
            for name, value in shares.items():
                low_high = (np.nan, np.nan, np.nan) if value is None else value
                row |= {f"{name}_{part}": one for part, one in zip(("share", "low", "high"), low_high, strict=True)}
            rows.append(row)
            if step == run.last:
                examples += _examples(kinds, run.name, benchmark, step)
    return pd.DataFrame(rows), examples


def _examples(checked_rows: pd.DataFrame, run: str, benchmark: str, step: int) -> list[Example]:
    """The first completions of each kind in the order of a hash."""
    chosen = []
    for kind in KINDS:
        rows = checked_rows[checked_rows["kind"] == kind].to_dict("records")
        rows.sort(key=lambda row: hash_order.key(str(row["problem_id"]), int(row["repeat"])))
        chosen += [
            Example(run, kind, benchmark, step, str(row["problem_id"]), int(row["repeat"]), str(row["fault"]))
            for row in rows[:EXAMPLES]
        ]
    return chosen


def second_verifiers(run: RunResults) -> pd.DataFrame:
    """How a task's own verifier and its others judge the same answers, such as a published one with faults.

    Columns: run, step, benchmark, grader, answers, own (accepted by the task's own), other, only_own, only_other.
    """
    rows = []
    for benchmark in run.benchmarks:
        problems = run.problem_rows.get(benchmark, {})
        task = registry.get(next(iter(problems.values())).task) if problems else None
        others = [] if task is None or DEFAULT in task.graders else list(task.graders)
        for step in run.steps if others else []:
            samples = run.rows(step, benchmark).dropna(subset=["answer"]).to_dict("records")
            for grader in others:
                verdicts = [
                    tuple(
                        registry.get(problem.task).verify(
                            str(row["answer"]), problem.answer or "", problem.meta, grader=g
                        )
                        == "correct"
                        for g in ("", grader)
                    )
                    for row in samples
                    for problem in [problems[str(row["problem_id"])]]
                ]
                rows.append(
                    {"run": run.name, "step": step, "benchmark": benchmark, "grader": grader, "answers": len(verdicts),
                     "own": sum(own for own, _ in verdicts), "other": sum(other for _, other in verdicts),
                     "only_own": verdicts.count((True, False)), "only_other": verdicts.count((False, True))}
                )  # fmt: skip
    return pd.DataFrame(rows)
