"""Scores of all and of completed answers, and the number of completions with each verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd

from analysis.pages.table_texts import Table, interval_text, percent
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults, checkpoint_labels
from contracts.tables import VERDICTS
from eval.statistics import Estimate


def _scores(runs: Sequence[RunResults], columns: Sequence[str]) -> pd.DataFrame:
    """The SCORE rows of all runs, in the order of the runs, then by benchmark and step."""
    keys = ["run", "benchmark", "step"]
    return pd.concat([run.scores.sort_values(keys)[[*keys, *columns]] for run in runs], ignore_index=True)


def _names(runs: Sequence[RunResults], data: pd.DataFrame) -> dict[str, object]:
    return {"run": data["run"], "benchmark": data["benchmark"], "checkpoint": checkpoint_labels(runs, data)}


def _tokens(digits: int) -> Callable[[float], str]:
    return lambda value: "–" if math.isnan(value) else f"{value:,.{digits}f}"


def _with_interval(data: pd.DataFrame, measure: str) -> list[str]:
    """pass@k or maj@k with its interval, which scores of earlier releases lack."""
    values = data[[f"{measure}_at_k", f"{measure}_low", f"{measure}_high"]].to_numpy(dtype=float)
    return [percent(row[0]) if math.isnan(row[1]) else interval_text(Estimate(*row), percent) for row in values]


def completed_table(runs: Sequence[RunResults]) -> Table:
    """Accuracy over all completions and over those not truncated, pass@k and maj@k, truncation and lengths.

    `completed` is the number not truncated: an accuracy over few of them means little. Ties of maj@k: see
    eval.statistics.maj_by_problem.
    """
    data = _scores(
        runs,
        ["n_problems", "k_repeats", "subset", "protocol", "avg_at_k", "avg_at_k_completed", "truncated_rate",
         "pass_at_k", "pass_low", "pass_high", "maj_at_k", "maj_low", "maj_high", "maj_ties",
         "completion_tokens_mean", "completion_tokens_max"],
    )  # fmt: skip
    completed = (1 - data["truncated_rate"]) * data["n_problems"] * data["k_repeats"]
    texts = {
        "problems × repeats": [
            f"{n} × {k}" + ("" if pd.isna(part) else f" ({part})")
            for n, k, part in data[["n_problems", "k_repeats", "subset"]].itertuples(index=False, name=None)
        ],
        "all completions (%)": data["avg_at_k"].map(percent),
        "completed": completed.map(lambda count: "–" if math.isnan(count) else f"{count:,.0f}"),
        "completed only (%)": data["avg_at_k_completed"].map(percent),
        "truncated (%)": data["truncated_rate"].map(percent),
        "pass@k (%)": _with_interval(data, "pass"),
        "maj@k (%)": _with_interval(data, "maj"),
        "ties of maj@k": data["maj_ties"].fillna("chance"),  # earlier releases knew no other rule
        "mean tokens": data["completion_tokens_mean"].map(_tokens(1)),
        "most tokens": data["completion_tokens_max"].map(_tokens(0)),
    }
    return Table("completed", data, pd.DataFrame(_names(runs, data) | texts))


def _number(count: object) -> str:
    return "–" if pd.isna(count) else f"{count:,}"  # type: ignore[call-overload]


def verdicts_table(runs: Sequence[RunResults]) -> Table:
    """The number of completions with each verdict, which add up to all completions.

    The number truncated is null where finish reasons were not recorded.
    """
    counts = [f"n_{verdict}" for verdict in VERDICTS]
    data = _scores(runs, [*counts, "truncated_rate"])
    known, of_all = data.pop("truncated_rate").notna(), data[counts].sum(axis=1)
    data["n_truncated"] = data["n_truncated"].astype("Int64").where(known)
    texts = {verdict.replace("_", " "): data[f"n_{verdict}"].map(_number) for verdict in VERDICTS}
    texts["all"] = of_all.map(_number)
    return Table("verdicts", data, pd.DataFrame(_names(runs, data) | texts))


def content(report: ReportData) -> Content:
    """Both tables."""
    return Content([completed_table(report.runs), verdicts_table(report.runs)])


SECTION = Section(
    order=530,
    content=content,
    tables={
        "completed": (
            "Accuracy over all completions and over those not truncated, pass@k and maj@k with 95 % intervals, "
            "truncation and lengths."
        ),
        "verdicts": "Number of completions with each verdict; they add up to all completions.",
    },
    text="""\
{% for run in report.runs %}
<h3>{{ title_of(run.name) }}</h3>
{{ table("completed", run=run.name,
   caption="Accuracy over all completions and over completed ones only, share truncated, pass@k
   (any of the k repeats is correct), maj@k (the most frequent answer is correct), and tokens
   per completion.", text_columns=2) }}
{{ table("verdicts", run=run.name, caption="Number of completions with each verdict.", text_columns=2) }}
{% endfor %}
""",
)
