"""Write a comparison: a table for the terminal, Markdown for a pull request, a page with the changed problems."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.compare_checkpoints import graded_checkpoint
from analysis.compare_checkpoints.comparison import ALL, BenchmarkResult, Comparison, PooledResult
from analysis.compare_checkpoints.graded_checkpoint import GradedCheckpoint, correct
from analysis.compare_checkpoints.other_measures import MeasureChange
from analysis.pages import page, table_texts
from analysis.pages.table_texts import interval_text, percent, points
from analysis.statistics.accuracy_rows import BASE_MARKS
from contracts import provenance
from eval.statistics import Estimate
from eval.statistics.posterior import Posterior
from system import durable
from system.text_safety import markdown_text, one_line
from system.text_table import aligned

MAX_PROBLEMS = 40  # shown on the page per benchmark, the largest changes first
MARKS = {"better": "▲ better", "worse": "▼ worse", "cannot tell": "≈ cannot tell", "not comparable": "✕ not comparable"}
MEANING = {
    "better": "better than the baseline",
    "worse": "worse than the baseline",
    "cannot tell": "not distinguishable from the baseline",
    "not comparable": "not comparable with the baseline",
}


@dataclass(frozen=True)
class ChangedProblem:
    """A problem whose accuracy changed: correct repeats on both sides, and one completion of each."""

    benchmark: str
    problem_id: str
    prompt: str
    question: str  # of imported files, whose prompts are not known
    gold: str
    before: str  # "1 of 4"
    after: str
    first: pd.Series
    second: pd.Series
    change: float


def _interval_or_dash(value: Estimate | None, form: Callable[[float], str] = percent) -> str:
    return "–" if value is None else interval_text(value, form)


def p_text(p: float | None) -> str:
    """A p-value for readers."""
    return "–" if p is None else "<0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.01 else f"{p:.2f}"


def _size_text(line: BenchmarkResult) -> str:
    if not line.n_problems:
        return "–"
    if line.repeats == (None, None):
        return f"{line.n_problems:,}"
    one, two = ("?" if k is None else str(k) for k in line.repeats)
    return f"{line.n_problems:,} × {one}" if one == two else f"{line.n_problems:,} × {one} / {two}"


def _detectable_text(line: BenchmarkResult) -> str:
    """One number, or gain and loss where a margin makes them two."""
    gain, loss = ("–" if value is None else f"{100 * value:.1f}" for value in (line.detectable, line.detectable_loss))
    if line.detectable_loss is not None:
        return f"+{gain} / −{loss}"
    return gain if line.detectable is None else f"±{gain}"


def score_frame(result: Comparison) -> pd.DataFrame:
    """The table of scores, as texts."""
    rows = []
    for line in result.lines:
        row = {
            "benchmark": line.benchmark,
            "problems × repeats": _size_text(line),
            "baseline (%)": _interval_or_dash(line.baseline),
            "checkpoint (%)": _interval_or_dash(line.checkpoint),
            "difference (points)": _interval_or_dash(line.difference, points),
            "p": p_text(line.p_value),
            "p (Holm)": p_text(line.p_adjusted),
            "detectable": _detectable_text(line),
            "verdict": MARKS[line.verdict],
        }
        if result.margin:
            excluded = {None: "–", True: "yes", False: "no"}[line.margin_excluded]
            row[f"loss > {100 * result.margin:g} excluded"] = excluded
        rows.append(row)
    return pd.DataFrame(rows)


def _token_difference(value: float) -> str:
    return f"{value:+,.1f}".replace("-", "−")


def change_frame(changes: tuple[MeasureChange, ...]) -> pd.DataFrame:
    """The table of other measures, as texts."""
    rows = []
    for change in changes:
        share = change.unit == "share"
        means = [f"{percent(v)} %" if share else f"{v:,.1f}" for v in (change.baseline, change.checkpoint)]
        rows.append(
            {
                "benchmark": change.benchmark,
                "measure": change.measure,
                "baseline": means[0],
                "checkpoint": means[1],
                "difference": interval_text(change.difference, points if share else _token_difference),
                "p (Holm)": p_text(change.p_adjusted),
                "change": BASE_MARKS[change.change] + " " + change.change,
            }
        )
    return pd.DataFrame(rows)


def pass_frame(result: Comparison) -> pd.DataFrame:
    """The table of pass@k and maj@k, as texts."""
    return pd.DataFrame(
        {
            "benchmark": line.benchmark,
            "measure": measure.measure,
            "baseline (%)": _interval_or_dash(measure.baseline),
            "checkpoint (%)": _interval_or_dash(measure.checkpoint),
            "difference (points)": _interval_or_dash(measure.difference, points),
        }
        for line in result.lines
        for measure in line.passes
    )


def verdict_sentence(result: Comparison) -> str:
    """The verdict in a sentence, with the margin if there is one."""
    margin = f"; a loss of up to {100 * result.margin:g} points is not called worse" if result.margin else ""
    return f"{result.checkpoint} is {MEANING[result.verdict]} {result.baseline}{margin}"


def notes(result: Comparison) -> list[str]:
    """The notes below the table: reasons, how it was tested, what was not checked."""
    lines = [f"{line.benchmark}: {reason}" for line in result.lines for reason in line.reasons]
    tests = dict.fromkeys(line.test for line in result.lines if line.test)
    if tests:
        lines.append(
            f"test: {'; '.join(tests)}; {'paired and clustered by problem, ' if result.paired else ''}two-sided; "
            f"better or worse if Holm's p over all lines is at most {result.alpha:g}; "
            "each interval is 95 %, not adjusted"
        )
    if any(line.detectable is not None for line in result.lines):
        lines.append("detectable: the true difference, in points, that this test would have found with 80 % power")
    return [*lines, *([_pooled_note(result.pooled, result.alpha)] if result.pooled else []), *result.notes,
            *map(_posterior_note, result.posteriors)]  # fmt: skip


def _pooled_note(pooled: PooledResult, alpha: float) -> str:
    return (
        f"pooled over all {pooled.n_problems:,} problems: {interval_text(pooled.difference, points)} points, p "
        f"{p_text(pooled.p_value)}: {pooled.verdict}. One question with a level of its own ({alpha:g}), in no verdict "
        "above: it counts if it was the question before looking"
    )


def _posterior_note(posterior: Posterior) -> str:
    texts = [interval_text(side, percent) for side in (posterior.first, posterior.second)]
    return (
        f"{posterior.benchmark}: posterior (Bayes@N; prior: each model's chance on each problem is uniform, 0 to 1): "
        f"baseline {texts[0]} %, checkpoint {texts[1]} %, difference {interval_text(posterior.difference, points)} "
        f"points, better with probability {posterior.better:.3f} on these same problems; no verdict rests on it"
    )


def _aligned_text(frame: pd.DataFrame) -> str:
    return aligned(list(frame.columns), frame.to_numpy().tolist())


def terminal(result: Comparison) -> str:
    """The comparison for a terminal. Of the other measures, only those that changed."""
    parts = [one_line(verdict_sentence(result)), "", _aligned_text(score_frame(result))]
    changed = tuple(change for change in result.regressions if change.change != "cannot tell")
    if changed:
        parts += ["", "other measures:", "", _aligned_text(change_frame(changed))]
    if len(passes := pass_frame(result)):
        parts += [
            "",
            "several samples per problem (intervals 95 %, not adjusted, no verdict):",
            "",
            _aligned_text(passes),
        ]
    return "\n".join([*parts, "", *(f"· {one_line(note)}" for note in notes(result))])


def markdown(result: Comparison) -> str:
    """The comparison for a pull request."""
    parts = [f"### {markdown_text(verdict_sentence(result))}", "", table_texts.markdown(score_frame(result))]
    if result.regressions:
        parts += ["Other measures:", "", table_texts.markdown(change_frame(result.regressions))]
    if len(passes := pass_frame(result)):
        parts += ["Several samples per problem (95 % intervals, not adjusted):", "", table_texts.markdown(passes)]
    return "\n".join([*parts, *(f"- {markdown_text(note)}" for note in notes(result))]) + "\n"


def all_changed_problems(
    result: Comparison, checkpoint: GradedCheckpoint, baseline: GradedCheckpoint
) -> dict[str, list[ChangedProblem]]:
    """The changed problems of every benchmark that was compared, of those that both sides have."""
    checkpoint, baseline = graded_checkpoint.on_shared_problems((checkpoint, baseline), {graded_checkpoint.SUBSET})
    compared = [line.benchmark for line in result.lines if line.difference and line.benchmark != ALL]
    return {name: changed_problems(checkpoint, baseline, name) for name in compared}


def changed_problems(checkpoint: GradedCheckpoint, baseline: GradedCheckpoint, benchmark: str) -> list[ChangedProblem]:
    """The problems whose accuracy changed, the largest changes first, losses before gains.

    Args:
        checkpoint: one side.
        baseline: the other, with the same problems.
        benchmark: its name.
    """
    tables = [baseline.tables[benchmark], checkpoint.tables[benchmark]]
    right = [correct(table) for table in tables]
    change = right[1].mean(axis=1) - right[0].mean(axis=1)
    rows = sorted(np.flatnonzero(np.abs(change) > 1e-12), key=lambda row: (-abs(change[row]), change[row]))
    questions = {**checkpoint.questions.get(benchmark, {}), **baseline.questions.get(benchmark, {})}
    return [_changed_problem(benchmark, tables, [side[row] for side in right], int(row), questions) for row in rows]


def _changed_problem(
    benchmark: str,
    tables: Sequence[pd.DataFrame],
    right: Sequence[npt.NDArray[np.bool_]],
    row: int,
    questions: Mapping[str, str],
) -> ChangedProblem:
    """One changed problem: a correct completion from the side with the higher accuracy, a wrong one from the other.

    Args:
        benchmark: its name.
        tables: of baseline and checkpoint, sorted by problem and repeat.
        right: of baseline and checkpoint, whether each repeat of the problem is correct.
        row: position of the problem.
        questions: by problem, as far as they are known.
    """
    change = float(right[1].mean() - right[0].mean())
    repeats = (
        [int(right[0].argmax()), int(right[1].argmin())]
        if change < 0
        else [int(right[0].argmin()), int(right[1].argmax())]
    )
    first, second = (
        table.iloc[row * len(side) + repeat] for table, side, repeat in zip(tables, right, repeats, strict=True)
    )
    before, after = (f"{int(side.sum())} of {len(side)}" for side in right)
    prompt = next((str(sample["prompt"]) for sample in (first, second) if not pd.isna(sample["prompt"])), "")
    name = str(first["problem_id"])
    question = "" if prompt else questions.get(name, "")
    return ChangedProblem(benchmark, name, prompt, question, str(first["gold"]), before, after, first, second, change)


def html(result: Comparison, changed: dict[str, list[ChangedProblem]]) -> str:
    """The self-contained page."""
    return page.environment().get_template("checkpoint_comparison.html.j2").render(
        css=page.css("checkpoint_comparison.css"), script=page.script("tables.js"), verdict=verdict_sentence(result),
        notes=notes(result), scores=score_frame(result), measures=change_frame(result.regressions), changed=changed,
        passes=pass_frame(result), most=MAX_PROBLEMS,
    )  # fmt: skip


def write(result: Comparison, changed: dict[str, list[ChangedProblem]], folder: Path) -> None:
    """Write comparison.json, comparison.md, comparison.txt and index.html.

    Args:
        result: the comparison.
        changed: per benchmark, the changed problems to show on the page.
        folder: to write to.
    """
    for name, text in (
        ("comparison.json", json.dumps(result.to_json(), indent=2, ensure_ascii=False) + "\n"),
        ("comparison.md", markdown(result)),
        ("comparison.txt", terminal(result) + "\n"),
        ("index.html", html(result, changed)),
    ):
        durable.write_text(folder / name, text, errors="backslashreplace")
    provenance.write(folder, checkpoint=result.checkpoint, baseline=result.baseline)
