"""The report's tables as data frames, and their three written forms: Markdown, CSV and HTML.

The CSV holds plain numbers (fractions, not percent), one column per number; Markdown and HTML are for reading.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis import comparison, patterns
from analysis.comparison import Interval
from analysis.results import BASE, Run
from contracts.tables import VERDICTS

AVERAGE = "average"
MARKS = {"rose": "▲", "fell": "▼", "cannot tell": "≈"}


@dataclass(frozen=True)
class Cell:
    """An accuracy and, but for the base model, its paired difference to the base model's."""

    accuracy: Interval
    difference: Interval | None


@dataclass(frozen=True)
class Row:
    """One checkpoint of one run: a cell for each benchmark, and for their average if there are several."""

    run: str
    step: int
    cells: dict[str, Cell]

    @property
    def label(self) -> str:
        """What the row is called."""
        return "base model" if self.step == BASE else f"step {self.step}"


@dataclass(frozen=True)
class Table:
    """A table in its two readings: `data` for machines, `shown` for people (text, same number of rows)."""

    name: str
    data: pd.DataFrame
    shown: pd.DataFrame


def percent(value: float, digits: int = 1) -> str:
    """A fraction in percent, or a dash if there is none."""
    return "–" if math.isnan(value) else f"{100 * value:.{digits}f}"


def points(value: float) -> str:
    """A difference of fractions in percentage points, with its sign (a minus, not a hyphen; no sign on zero)."""
    text = f"{100 * value:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def accuracy_rows(run: Run) -> list[Row]:
    """One row per checkpoint of a run."""
    rows = []
    for step in run.steps:
        cells = {}
        for name in run.benchmarks:
            gap = None if step == BASE else comparison.difference(run, step, name)
            cells[name] = Cell(comparison.accuracy(run, step, name), gap)
        if len(run.benchmarks) > 1:
            gap = None if step == BASE else comparison.average_difference(run, step)
            cells[AVERAGE] = Cell(comparison.average_accuracy(run, step), gap)
        rows.append(Row(run.name, step, cells))
    return rows


def _interval_text(interval: Interval, form: Callable[[float], str]) -> str:
    return f"{form(interval.value)} [{form(interval.low)}, {form(interval.high)}]"


def accuracy_table(rows: Sequence[Row]) -> Table:
    """Accuracy with its interval, and the paired difference to the base model with its own."""
    data, shown = [], []
    for row in rows:
        numbers: dict[str, object] = {"run": row.run, "step": row.step}
        words = {"run": row.run, "checkpoint": row.label}
        for name, cell in row.cells.items():
            parts = {"": cell.accuracy} | ({"_difference": cell.difference} if cell.difference else {})
            for suffix, part in parts.items():
                numbers |= {
                    name + suffix: part.value,
                    f"{name}{suffix}_low": part.low,
                    f"{name}{suffix}_high": part.high,
                }
            words[f"{name} (%)"] = _interval_text(cell.accuracy, percent)
            words[f"{name}: difference to base (points)"] = (
                f"{_interval_text(cell.difference, points)} {MARKS[cell.difference.change]}" if cell.difference else "–"
            )
        data.append(numbers)
        shown.append(words)
    return Table("accuracy", pd.DataFrame(data), pd.DataFrame(shown).fillna("–"))


def _label(step: int) -> str:
    return "base model" if step == BASE else f"step {step}"


def _scores(runs: Sequence[Run], columns: Sequence[str]) -> pd.DataFrame:
    """The SCORE rows of all runs, in the order of the runs, then by benchmark and step."""
    keys = ["run", "benchmark", "step"]
    return pd.concat([run.scores.sort_values(keys)[[*keys, *columns]] for run in runs], ignore_index=True)


def _names(data: pd.DataFrame) -> dict[str, object]:
    return {"run": data["run"], "benchmark": data["benchmark"], "checkpoint": [_label(step) for step in data["step"]]}


def _tokens(digits: int) -> Callable[[float], str]:
    return lambda value: "–" if math.isnan(value) else f"{value:,.{digits}f}"


def completed_table(runs: Sequence[Run]) -> Table:
    """Accuracy over all completions and over those that ended by themselves, pass@k, maj@k, truncation and lengths.

    `completed` is how many ended by themselves: an accuracy over few of them means little.
    """
    data = _scores(
        runs,
        ["n_problems", "k_repeats", "avg_at_k", "avg_at_k_completed", "truncated_rate", "pass_at_k", "maj_at_k",
         "completion_tokens_mean", "completion_tokens_max"],
    )  # fmt: skip
    completed = (1 - data["truncated_rate"]) * data["n_problems"] * data["k_repeats"]
    shown = {
        "problems × repeats": [f"{n} × {k}" for n, k in zip(data["n_problems"], data["k_repeats"], strict=True)],
        "all completions (%)": data["avg_at_k"].map(percent),
        "completed": completed.map(lambda count: "–" if math.isnan(count) else f"{count:,.0f}"),
        "completed only (%)": data["avg_at_k_completed"].map(percent),
        "truncated (%)": data["truncated_rate"].map(percent),
        "pass@k (%)": data["pass_at_k"].map(percent),
        "maj@k (%)": data["maj_at_k"].map(percent),
        "mean tokens": data["completion_tokens_mean"].map(_tokens(1)),
        "most tokens": data["completion_tokens_max"].map(_tokens(0)),
    }
    return Table("completed", data, pd.DataFrame(_names(data) | shown))


def verdicts_table(runs: Sequence[Run]) -> Table:
    """How many completions got each verdict; together they are all completions."""
    data = _scores(runs, [f"n_{verdict}" for verdict in VERDICTS])
    shown = {verdict.replace("_", " "): data[f"n_{verdict}"].map("{:,}".format) for verdict in VERDICTS}
    shown["all"] = data[[f"n_{verdict}" for verdict in VERDICTS]].sum(axis=1).map("{:,}".format)
    return Table("verdicts", data, pd.DataFrame(_names(data) | shown))


def patterns_table(counts: pd.DataFrame, lists: Sequence[patterns.PatternList]) -> Table:
    """Keyword counts per checkpoint and benchmark."""
    titles = {item.name: item.title for item in lists}
    shown = pd.DataFrame(
        {
            "run": counts["run"],
            "keywords": counts["pattern"].map(titles),
            "benchmark": counts["benchmark"],
            "checkpoint": [_label(step) for step in counts["step"]],
            "per completion": counts["per_completion"].map("{:.2f}".format),
            "completions with any (%)": counts["share"].map(percent),
            "per 1,000 tokens": counts["per_1000_tokens"].map(lambda x: "–" if math.isnan(x) else f"{x:.2f}"),
        }
    )
    return Table("patterns", counts, shown)


def overlap_table(file: Path) -> Table:
    """How many problems of each benchmark occur in each training set, from recipes.tasks.overlap's table."""
    data = pd.read_csv(file)

    def of_all(column: str) -> list[str]:
        return [f"{n} ({percent(share)} %)" for n, share in zip(data[column], data[f"{column}_share"], strict=True)]

    shown = {
        "training set": data["train"],
        "benchmark": data["benchmark"],
        "problems": data["problems"].map("{:,}".format),
        "word for word": of_all("exact"),
        "half of its 13-word windows": of_all("gram13_half"),
        "half of its 8-word windows": of_all("gram8_half"),
    }
    return Table("overlap", data, pd.DataFrame(shown))


def markdown(frame: pd.DataFrame) -> str:
    """A Markdown table; a bar or a line break in a cell is escaped."""

    def line(cells: Sequence[object]) -> str:
        return "| " + " | ".join(" ".join(str(cell).replace("|", "\\|").split()) for cell in cells) + " |\n"

    rule = "| " + " | ".join("---" for _ in frame.columns) + " |\n"
    return line(list(frame.columns)) + rule + "".join(line(row) for row in frame.itertuples(index=False))


def html_table(frame: pd.DataFrame) -> str:
    """A plain HTML table, everything in it escaped."""
    head = "".join(f"<th scope=col>{html.escape(str(name))}</th>" for name in frame.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>\n"
        for row in frame.itertuples(index=False)
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"


def write(table: Table, folder: Path) -> None:
    """Write `<name>.csv`, `<name>.md` and `<name>.html`."""
    folder.mkdir(parents=True, exist_ok=True)
    table.data.to_csv(folder / f"{table.name}.csv", index=False, float_format="%.6g", errors="backslashreplace")
    for suffix, text in (
        (".md", markdown(table.shown)),
        (".html", f"<!doctype html>\n<meta charset=utf-8>\n{html_table(table.shown)}"),
    ):
        (folder / f"{table.name}{suffix}").write_text(text, encoding="utf-8", errors="backslashreplace")
