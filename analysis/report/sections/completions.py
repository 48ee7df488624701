"""Completions of the base model and the last checkpoint on the same problem, chosen by a fixed rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from analysis import hash_order
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults

KINDS: tuple[tuple[str, str, Callable[[bool, bool], bool]], ...] = (
    ("became correct", "not correct before training, correct after", lambda before, after: after and not before),
    ("became wrong", "correct before training, not correct after", lambda before, after: before and not after),
    ("still not correct", "correct neither before nor after", lambda before, after: not before and not after),
    ("still correct", "correct before and after", lambda before, after: before and after),
)


@dataclass(frozen=True)
class ShownCompletion:
    """One completion. `length` is in tokens, or None if unknown."""

    label: str
    text: str
    verdict: str
    answer: str | None
    finish_reason: str | None
    length: int | None


@dataclass(frozen=True)
class SamplePair:
    """One problem before and after training, and how many problems changed in the same way."""

    benchmark: str
    problem_id: str
    prompt: str
    gold: str | None
    kind: str
    meaning: str
    alike: int
    compared: int
    base: ShownCompletion
    last: ShownCompletion


def _text(value: object) -> str | None:
    return None if value is None or pd.isna(value) else str(value)  # type: ignore[call-overload]


def _completion(row: pd.Series, label: str) -> ShownCompletion:
    length = None if pd.isna(row["completion_tokens"]) else int(row["completion_tokens"])
    text, answer, finish_reason = (_text(row[name]) for name in ("completion", "answer", "finish_reason"))
    return ShownCompletion(label, text or "", str(row["verdict"]), answer, finish_reason, length)


def choose_pairs(run: RunResults, benchmark: str) -> list[SamplePair]:
    """For each way in which a problem can change, one problem: the first in the order of the hash of its id.

    Only the first repeat is used. Completions that could not be graded are left out.
    """
    sides = []
    for step in (run.steps[0], run.last):
        repeats = run.rows(step, benchmark)[["problem_id", "repeat"]]
        first = repeats.index.isin(repeats.sort_values("repeat").drop_duplicates("problem_id").index)
        rows = run.samples(step, benchmark, first).set_index("problem_id")
        sides.append(rows[rows["verdict"] != "ungradable"])
    before, after = sides
    shared = sorted(set(before.index.tolist()) & set(after.index.tolist()), key=hash_order.key)
    was, now = (set(side.index[side["verdict"] == "correct"].tolist()) for side in sides)
    right = {problem: (problem in was, problem in now) for problem in shared}
    pairs = []
    for kind, meaning, belongs in KINDS:
        alike = [problem for problem in shared if belongs(*right[problem])]
        if not alike:
            continue
        first, last = before.loc[alike[0]], after.loc[alike[0]]
        pairs.append(
            SamplePair(
                benchmark, alike[0], _text(first["prompt"]) or "", _text(first["gold"]), kind, meaning, len(alike),
                len(shared), _completion(first, run.label(run.steps[0])), _completion(last, run.label(run.last)),
            )
        )  # fmt: skip
    return pairs


def content(report: ReportData) -> Content:
    """The pairs of each run."""
    pairs = [(run.name, [pair for name in run.benchmarks for pair in choose_pairs(run, name)]) for run in report.runs]
    return Content(values={"pairs": pairs})


SECTION = Section(
    order=1000,
    title="Completions before and after",
    anchor="samples",
    link="Completions",
    content=content,
    text="""\
<p><a href="samples/index.html">All completions, with filters</a>: by run, checkpoint, benchmark, verdict, length and
text, with the same problem across checkpoints side by side.</p>
<p>The base model and the last checkpoint on the same problem, one problem for each way in which a verdict can change.
Problems are chosen by a hash of their names, not by hand; only the first repeat is used. Each states how many problems
changed in the same way.</p>
{% for run, of_run in pairs %}
<details{% if loop.first %} open{% endif %}>
<summary>{{ title_of(run) }}</summary>
{% for pair in of_run %}
{{ sample_pair(pair) }}
{% endfor %}
</details>
{% endfor %}
""",
)
