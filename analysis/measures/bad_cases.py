"""Count completions that are not correct by what is wrong with them, with an example of each kind."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import pandas as pd

from analysis import hash_order
from analysis.measures.arithmetic_errors import FalseEquation, false_equations
from analysis.results import RunResults

VERDICTS = ("no_answer", "format_error", "truncated", "wrong")
KINDS = {
    "no_answer": "no answer",
    "format_error": "format error",
    "truncated": "truncated",
    "arithmetic_error": "wrong answer with an arithmetic error",
    "wrong": "wrong answer without an arithmetic error",
}
MAX_SEARCHED = 500  # wrong completions per checkpoint and benchmark; the first ones in the order of a hash
EXCERPT = 300  # characters of an example on each side of the place that matters


@dataclass(frozen=True)
class BadCase:
    """One completion that is not correct. `evidence` is its false equation, if it has one."""

    kind: str
    benchmark: str
    step: int
    problem_id: str
    gold: str
    answer: str
    evidence: str
    excerpt: str


def _first(samples: pd.DataFrame, chosen: pd.Series, most: int) -> pd.DataFrame:
    """At most `most` of the chosen samples: the first ones in the order of a hash if there are more."""
    names = samples.loc[chosen, ["problem_id", "repeat"]]
    if len(names) > most:
        keys = map(hash_order.key, names["problem_id"].tolist(), names["repeat"].tolist())
        names = names.iloc[
            [position for _, position in heapq.nsmallest(most, zip(keys, range(len(names)), strict=True))]
        ]
    return samples.loc[names.index]


def count(run: RunResults) -> tuple[pd.DataFrame, list[BadCase]]:
    """Number of bad completions of each kind per checkpoint and benchmark, and an example of each kind at the last one.

    Columns: run, step, benchmark, completions, no_answer, format_error, truncated, wrong, searched, arithmetic_error.
    Of the `wrong` ones, `searched` were searched for false equations, and `arithmetic_error` of those have one, which
    need not be why the answer is wrong. `truncated` is null where finish reasons were not recorded.
    """
    rows, examples = [], []
    for benchmark in run.benchmarks:
        for step in run.steps:
            samples = run.rows(step, benchmark)
            verdicts = samples["verdict"].value_counts()
            wrong = _first(samples, samples["verdict"] == "wrong", MAX_SEARCHED).index
            needed = set(wrong)
            if step == run.last:
                needed |= {index for kind in KINDS for index in _first(samples, samples["verdict"] == kind, 1).index}
            read = run.samples(step, benchmark, samples.index.isin(needed))
            errors = {index: false_equations(str(text)) for index, text in read.loc[wrong, "completion"].items()}
            rows.append(
                {
                    "run": run.name, "step": step, "benchmark": benchmark, "completions": len(samples),
                    **{verdict: int(verdicts.get(verdict, 0)) for verdict in VERDICTS},
                    **({"truncated": None} if samples["finish_reason"].isna().any() else {}),
                    "searched": len(wrong), "arithmetic_error": sum(map(bool, errors.values())),
                }
            )  # fmt: skip
            if step == run.last:
                examples += _examples(read, errors)
    return pd.DataFrame(rows).astype({"truncated": "Int64"}), examples


def _examples(samples: pd.DataFrame, errors: dict[object, list[FalseEquation]]) -> list[BadCase]:
    """The first sample of each kind in the order of a hash. `errors` has those of the searched samples, by index."""
    chosen = []
    for kind in KINDS:
        if kind in ("arithmetic_error", "wrong"):
            inside = [index for index, equations in errors.items() if bool(equations) == (kind != "wrong")]
            of_kind = pd.Series(samples.index.isin(inside), samples.index)
        else:
            of_kind = samples["verdict"] == kind
        if not of_kind.any():
            continue
        row = _first(samples, of_kind, 1).iloc[0]
        text, index = str(row["completion"] or ""), row.name
        error = errors[index][0] if kind == "arithmetic_error" else None
        middle = error.start if error else len(text)
        chosen.append(
            BadCase(
                kind, str(row["benchmark"]), int(row["step"]), str(row["problem_id"]), str(row["gold"]),
                "none" if pd.isna(row["answer"]) else str(row["answer"]), error.text if error else "",
                text[max(0, middle - EXCERPT) : middle + EXCERPT],
            )
        )  # fmt: skip
    return chosen
