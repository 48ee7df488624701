"""The report's tables, each as data (fractions, not percent; one column per number) and as text for readers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from analysis.measures import reasoning_patterns
from analysis.pages.table_texts import Table, interval_columns, interval_text, percent, points
from analysis.reference import in_order
from analysis.results import RunResults, checkpoint_labels
from analysis.statistics.accuracy_rows import AVERAGE, BASE_MARKS, CheckpointRow
from contracts.tables import VERDICTS
from eval.statistics import Estimate
from system.errors import UserError


def accuracy_table(rows: Sequence[CheckpointRow], name: str = "accuracy") -> Table:
    """One row per checkpoint: accuracy with its interval, and marks where it changed beyond noise.

    Benchmarks are in the published order, then their average. The run is shown if there are several.
    """
    several = len({row.run for row in rows}) > 1
    data, shown = [], []
    for row in rows:
        numbers: dict[str, object] = {"run": row.run, "step": row.step, "checkpoint": row.label}
        words = {"run": row.run, "checkpoint": row.label} if several else {"checkpoint": row.label}
        for column, cell in row.cells.items():
            gaps = {f"{column}_difference": cell.difference, f"{column}_from_above": cell.from_above}
            numbers |= interval_columns({column: cell.accuracy, **gaps})
            words[f"{column} (%)"] = f"{interval_text(cell.accuracy, percent)} {cell.marks}".strip()
        data.append(numbers)
        shown.append(words)
    bold = tuple(position for position, row in enumerate(rows) if row.best)
    found = {name for row in rows for name in row.cells}
    ordered = [*in_order(found - {AVERAGE}), *(found & {AVERAGE})]
    columns = [*(["run"] if several else []), "checkpoint", *(f"{column} (%)" for column in ordered)]
    return Table(name, pd.DataFrame(data), pd.DataFrame(shown)[columns].fillna("–"), bold)


def differences_table(rows: Sequence[CheckpointRow]) -> Table:
    """The difference of each checkpoint to the base model, with its interval."""
    kept = [row for row in rows if any(cell.difference for cell in row.cells.values())]
    shown, data = [], []
    for row in kept:
        words = {"run": row.run, "checkpoint": row.label}
        numbers: dict[str, object] = {"run": row.run, "step": row.step}
        for column, cell in row.cells.items():
            gap = cell.difference
            if gap is not None:
                words[f"{column} (points)"] = f"{interval_text(gap, points)} {BASE_MARKS[gap.change]}"
                numbers |= interval_columns({column: gap})
        data.append(numbers)
        shown.append(words)
    columns = ["run", "checkpoint"]
    return Table("differences", pd.DataFrame(data), pd.DataFrame(shown, columns=None if shown else columns).fillna("–"))


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
    found = data[[f"{measure}_at_k", f"{measure}_low", f"{measure}_high"]].to_numpy(dtype=float)
    return [percent(row[0]) if math.isnan(row[1]) else interval_text(Estimate(*row), percent) for row in found]


def completed_table(runs: Sequence[RunResults]) -> Table:
    """Accuracy over all completions and over those not truncated, pass@k and maj@k, truncation and lengths.

    `completed` is the number not truncated: an accuracy over few of them means little. Ties of maj@k: see
    eval.statistics.maj_by_problem.
    """
    data = _scores(
        runs,
        ["n_problems", "k_repeats", "avg_at_k", "avg_at_k_completed", "truncated_rate", "pass_at_k", "pass_low",
         "pass_high", "maj_at_k", "maj_low", "maj_high", "maj_ties", "completion_tokens_mean", "completion_tokens_max"],
    )  # fmt: skip
    completed = (1 - data["truncated_rate"]) * data["n_problems"] * data["k_repeats"]
    shown = {
        "problems × repeats": [f"{n} × {k}" for n, k in zip(data["n_problems"], data["k_repeats"], strict=True)],
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
    return Table("completed", data, pd.DataFrame(_names(runs, data) | shown))


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
    shown = {verdict.replace("_", " "): data[f"n_{verdict}"].map(_number) for verdict in VERDICTS}
    shown["all"] = of_all.map(_number)
    return Table("verdicts", data, pd.DataFrame(_names(runs, data) | shown))


def patterns_table(
    runs: Sequence[RunResults], counts: pd.DataFrame, lists: Sequence[reasoning_patterns.PatternList]
) -> Table:
    """Keyword counts per checkpoint and benchmark.

    Args:
        runs: for the names of checkpoints.
        counts: what patterns.table counted, of all runs.
        lists: for the titles.
    """
    titles = {item.name: item.title for item in lists}
    shown = pd.DataFrame(
        {
            "run": counts["run"],
            "keywords": counts["pattern"].map(titles),
            "benchmark": counts["benchmark"],
            "checkpoint": checkpoint_labels(runs, counts),
            "per completion": counts["per_completion"].map("{:.2f}".format),
            "completions with any (%)": counts["share"].map(percent),
            "per 1,000 tokens": counts["per_1000_tokens"].map(lambda x: "–" if math.isnan(x) else f"{x:.2f}"),
        }
    )
    return Table("patterns", counts, shown)


def overlap_table(file: Path) -> Table:
    """How many problems of each benchmark occur in each training set, from the CSV table of tasks.overlap."""
    try:
        data = pd.read_csv(file)
        return Table("overlap", data, _shown_overlap(data))
    except (KeyError, TypeError, ValueError) as error:  # among them pandas' own, for an empty or a cut file
        raise UserError(
            f"{file} should be the table that tasks.overlap writes, but is another or damaged ({error}): delete it to "
            "have it made again"
        ) from None


def _shown_overlap(data: pd.DataFrame) -> pd.DataFrame:
    def of_all(column: str) -> list[str]:
        return [f"{n} ({percent(share)} %)" for n, share in zip(data[column], data[f"{column}_share"], strict=True)]

    return pd.DataFrame(
        {
            "training set": data["train"],
            "benchmark": data["benchmark"],
            "problems": data["problems"].map("{:,}".format),
            "identical text": of_all("exact"),
            "half of its 13-word windows": of_all("gram13_half"),
            "half of its 8-word windows": of_all("gram8_half"),
        }
    )
