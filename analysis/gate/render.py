"""A comparison for reading: a table in the terminal, Markdown for a pull request, a page with what flipped."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from analysis import table_export
from analysis.gate.compare import Line, Result
from analysis.gate.inputs import Side, correct
from analysis.gate.regressions import Change
from analysis.report import page, tables
from analysis.report.checkpoint_comparison import Interval
from analysis.text_safety import visible

SHOWN_FLIPS = 40  # on the page, of each benchmark; the largest changes first
MARKS = {"better": "▲ better", "worse": "▼ worse", "cannot tell": "≈ cannot tell", "not comparable": "✕ not comparable"}
MEANING = {
    "better": "better than the baseline",
    "worse": "worse than the baseline",
    "cannot tell": "not distinguishable from the baseline",
    "not comparable": "not comparable with the baseline",
}


@dataclass(frozen=True)
class Flip:
    """A problem whose accuracy changed: right answers of repeats on both sides, and one completion of each."""

    benchmark: str
    problem_id: str
    prompt: str
    gold: str
    before: str  # "1 of 4"
    after: str
    first: pd.Series
    second: pd.Series
    change: float


def _interval(value: Interval | None, points: bool = False) -> str:
    if value is None:
        return "–"
    form = table_export.points if points else table_export.percent
    return f"{form(value.value)} [{form(value.low)}, {form(value.high)}]"


def p_text(p: float | None) -> str:
    """A p-value to read."""
    return "–" if p is None else "<0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.01 else f"{p:.2f}"


def _size(line: Line) -> str:
    if not line.n_problems:
        return "–"
    if line.repeats == (None, None):
        return f"{line.n_problems:,}"
    one, two = ("?" if k is None else str(k) for k in line.repeats)
    return f"{line.n_problems:,} × {one}" if one == two else f"{line.n_problems:,} × {one} / {two}"


def score_frame(result: Result) -> pd.DataFrame:
    """The lines of a comparison as texts."""
    rows = []
    for line in result.lines:
        row = {
            "benchmark": line.benchmark,
            "problems × repeats": _size(line),
            "baseline (%)": _interval(line.baseline),
            "checkpoint (%)": _interval(line.checkpoint),
            "difference (points)": _interval(line.difference, points=True),
            "p": p_text(line.p_value),
            "p (Holm)": p_text(line.p_adjusted),
            "detectable": "–" if line.detectable is None else f"±{100 * line.detectable:.1f}",
            "verdict": MARKS[line.verdict],
        }
        if result.margin:
            excluded = {None: "–", True: "yes", False: "no"}[line.margin_excluded]
            row[f"loss > {100 * result.margin:g} excluded"] = excluded
        rows.append(row)
    return pd.DataFrame(rows)


def change_frame(changes: tuple[Change, ...]) -> pd.DataFrame:
    """What changed besides the score, as texts."""
    rows = []
    for change in changes:
        share = change.unit == "share"

        def form(value: float, share: bool = share) -> str:
            return f"{table_export.percent(value)} %" if share else f"{value:,.1f}"

        gap = change.difference
        between = (
            _interval(gap, points=True)
            if share
            else f"{gap.value:+,.1f} [{gap.low:+,.1f}, {gap.high:+,.1f}]".replace("-", "−")
        )
        rows.append(
            {
                "benchmark": change.benchmark,
                "measure": change.measure,
                "baseline": form(change.baseline),
                "checkpoint": form(change.checkpoint),
                "difference": between,
                "p (Holm)": p_text(change.p_adjusted),
                "change": tables.MARKS[change.change] + " " + change.change,
            }
        )
    return pd.DataFrame(rows)


def headline(result: Result) -> str:
    """The verdict in a sentence."""
    return f"{result.checkpoint} is {MEANING[result.verdict]} {result.baseline}"


def notes(result: Result) -> list[str]:
    """Everything that has to be said with the table: reasons, how it was tested, what was not checked."""
    said = [f"{line.benchmark}: {reason}" for line in result.lines for reason in line.reasons]
    tests = dict.fromkeys(line.test for line in result.lines if line.test)
    if tests:
        said.append(
            f"test: {'; '.join(tests)}; {'paired and clustered by problem, ' if result.paired else ''}two-sided; "
            f"better or worse where Holm's p is at most {result.alpha:g} over all lines; "
            "intervals are 95 % each, not adjusted"
        )
        said.append("detectable: the true difference, in points, that this test would have found with 80 % power")
    if result.margin:
        said.append(f"a loss of up to {100 * result.margin:g} points is not called worse")
    return [*said, *result.notes]


def _aligned(frame: pd.DataFrame) -> str:
    cells = [[str(name) for name in frame.columns], *[[str(cell) for cell in row] for row in frame.to_numpy()]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([lines[0], "─" * max(map(len, lines)), *lines[1:]])


def terminal(result: Result) -> str:
    """The comparison for a terminal; of the other measures only those that changed."""
    parts = [visible(headline(result)), "", _aligned(score_frame(result))]
    changed = tuple(change for change in result.regressions if change.change != "cannot tell")
    if changed:
        parts += ["", "besides the score:", "", _aligned(change_frame(changed))]
    return "\n".join([*parts, "", *(f"· {visible(note)}" for note in notes(result))])


def markdown(result: Result) -> str:
    """The comparison for a pull request."""
    parts = [f"### {visible(headline(result))}", "", table_export.markdown(score_frame(result))]
    if result.regressions:
        parts += ["Besides the score:", "", table_export.markdown(change_frame(result.regressions))]
    return "\n".join([*parts, *(f"- {visible(note)}" for note in notes(result))]) + "\n"


def flips(checkpoint: Side, baseline: Side, benchmark: str) -> list[Flip]:
    """The problems of a benchmark whose accuracy changed, the largest changes first, losses before gains."""
    first, second = baseline.tables[benchmark], checkpoint.tables[benchmark]
    right = [correct(first), correct(second)]
    change = right[1].mean(axis=1) - right[0].mean(axis=1)
    found = []
    for row in sorted(
        (i for i in range(len(change)) if abs(change[i]) > 1e-12), key=lambda i: (-abs(change[i]), change[i])
    ):
        fell = change[row] < 0
        # A right completion on the side that was more often right, a wrong one on the other.
        at = [int(right[0][row].argmax() if fell else right[0][row].argmin())]
        at.append(int(right[1][row].argmin() if fell else right[1][row].argmax()))
        one = first.iloc[row * right[0].shape[1] + at[0]]
        two = second.iloc[row * right[1].shape[1] + at[1]]
        counts = [f"{int(side[row].sum())} of {side.shape[1]}" for side in right]
        prompt = next((str(side["prompt"]) for side in (one, two) if not pd.isna(side["prompt"])), "")
        found.append(
            Flip(
                benchmark, str(one["problem_id"]), prompt, str(one["gold"]), counts[0], counts[1], one, two, change[row]
            )
        )
    return found


def html(result: Result, found: dict[str, list[Flip]]) -> str:
    """The self-contained page."""
    environment = page.environment()
    environment.filters["interval"] = _interval
    css = Markup((page.TEMPLATES / "report.css").read_text(encoding="utf-8"))
    return environment.get_template("check.html.j2").render(
        css=css, result=result, headline=headline(result), notes=notes(result), scores=score_frame(result),
        changes=change_frame(result.regressions), flips=found, most=SHOWN_FLIPS,
    )  # fmt: skip


def write(result: Result, found: dict[str, list[Flip]], folder: Path) -> None:
    """Write check.json, check.md, check.txt and index.html."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("check.json", json.dumps(result.to_json(), indent=2, ensure_ascii=False) + "\n"),
        ("check.md", markdown(result)),
        ("check.txt", terminal(result) + "\n"),
        ("index.html", html(result, found)),
    ):
        (folder / name).write_text(text, encoding="utf-8", errors="backslashreplace")
