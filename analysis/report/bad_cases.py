"""Completions that were not right, sorted by what is wrong with them: counts per checkpoint, and examples."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.report.arithmetic_errors import Slip, slips
from analysis.results import Run
from analysis.table_export import Table, percent

KINDS = {
    "no_answer": "no answer",
    "format_error": "format",
    "truncated": "truncated",
    "slip": "arithmetic slip",
    "reasoning": "wrong reasoning",
}
COUNTED = ("no_answer", "format_error", "truncated", "wrong")
# Wrong completions of a checkpoint and benchmark that are read for slips; the first ones in the order of a hash.
READ = 500
SHOWN = 300  # characters of an example on each side of the place that matters


@dataclass(frozen=True)
class Example:
    """One bad completion; `evidence` is the equation that does not hold, if that is what is wrong."""

    kind: str
    benchmark: str
    step: int
    problem_id: str
    gold: str
    answer: str
    evidence: str
    excerpt: str


def _order(problem_id: str, repeat: int) -> str:
    return hashlib.sha256(f"{problem_id}\0{repeat}".encode("utf-8", "surrogatepass")).hexdigest()


def _drawn(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    if len(rows) <= most:
        return rows
    keys = [_order(str(p), int(r)) for p, r in zip(rows["problem_id"], rows["repeat"], strict=True)]
    return rows.iloc[sorted(range(len(keys)), key=keys.__getitem__)[:most]]


def count(run: Run) -> tuple[pd.DataFrame, list[Example]]:
    """How many bad completions of each kind every checkpoint and benchmark has, and the first example of each kind.

    Columns: run, step, benchmark, completions, no_answer, format_error, truncated, wrong, read, slip, reasoning. Of
    the `wrong` ones `read` were searched for equations that do not hold; slip and reasoning are counts of those. A slip
    need not be why the answer is wrong, and reasoning is what is left: both are a place to look, not a diagnosis.
    `truncated` is null where it is not known how completions ended.
    """
    rows, examples = [], []
    for benchmark in run.benchmarks:
        for step in run.steps:
            samples = run.samples(step, benchmark)
            verdicts = samples["verdict"].value_counts()
            wrong = _drawn(samples[samples["verdict"] == "wrong"], READ)
            found = [slips(str(text)) for text in wrong["completion"]]
            kinds = pd.Series(["slip" if broken else "reasoning" for broken in found], index=wrong.index, dtype=object)
            rows.append(
                {
                    "run": run.name, "step": step, "benchmark": benchmark, "completions": len(samples),
                    **{kind: int(verdicts.get(kind, 0)) for kind in COUNTED},
                    **({"truncated": None} if samples["finish_reason"].isna().any() else {}),
                    "read": len(wrong), "slip": int((kinds == "slip").sum()),
                    "reasoning": int((kinds == "reasoning").sum()),
                }
            )  # fmt: skip
            if step == run.last:
                examples += _examples(samples, kinds, {i: b for i, b in zip(wrong.index, found, strict=True) if b})
    return pd.DataFrame(rows).astype({"truncated": "Int64"}), examples


def _examples(samples: pd.DataFrame, kinds: pd.Series, broken: dict[object, list[Slip]]) -> list[Example]:
    chosen = []
    for kind in KINDS:
        of_kind = samples.loc[kinds.index[kinds == kind]] if kind in ("slip", "reasoning") else None
        rows = samples[samples["verdict"] == kind] if of_kind is None else of_kind
        if rows.empty:
            continue
        index = _drawn(rows, 1).index[0] if len(rows) > 1 else rows.index[0]
        row, text = rows.loc[index], str(rows.loc[index, "completion"] or "")
        slip = broken[index][0] if kind == "slip" else None
        middle = slip.start if slip else len(text)
        excerpt = text[max(0, middle - SHOWN) : middle + SHOWN]
        answer = "none" if pd.isna(row["answer"]) else str(row["answer"])
        chosen.append(
            Example(
                kind, str(row["benchmark"]), int(row["step"]), str(row["problem_id"]), str(row["gold"]), answer,
                slip.text if slip else "", excerpt,
            )
        )  # fmt: skip
    return chosen


def table(runs: Sequence[Run], counts: pd.DataFrame) -> Table:
    """The counts for reading: shares of all completions, and of the wrong ones that were read."""
    by_name = {run.name: run for run in runs}

    def share(part: str, whole: str) -> list[str]:
        pairs = zip(counts[part], counts[whole], strict=True)
        return [f"{found:,} ({percent(found / of)} %)" if of and not pd.isna(found) else "–" for found, of in pairs]

    shown = {
        "run": counts["run"],
        "benchmark": counts["benchmark"],
        "checkpoint": [by_name[n].label(s) for n, s in zip(counts["run"], counts["step"], strict=True)],
        "no answer": share("no_answer", "completions"),
        "format": share("format_error", "completions"),
        "truncated": share("truncated", "completions"),
        "wrong answer": share("wrong", "completions"),
        "of which read": counts["read"].map("{:,}".format),
        "with an arithmetic slip": share("slip", "read"),
        "wrong reasoning": share("reasoning", "read"),
    }
    return Table("bad_cases", counts, pd.DataFrame(shown))
