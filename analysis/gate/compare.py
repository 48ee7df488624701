"""The comparison: per benchmark and over all, scores, difference, p-value, what could have been seen, verdict."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy import stats

from analysis.gate import inputs, regressions
from analysis.gate.baselines import Published
from analysis.gate.inputs import Side
from analysis.report.checkpoint_comparison import Interval, mean_of
from analysis.results import in_order
from contracts.errors import UserError
from eval import significance, statistics

ALL = "mean of all"
NOT_WORSE, WORSE, NOT_COMPARABLE, USAGE = 0, 1, 2, 3  # exit status


@dataclass(frozen=True)
class Line:
    """One benchmark, or their mean; accuracies and differences are fractions, None where nothing can be said."""

    benchmark: str
    verdict: str  # better, worse, cannot tell, not comparable
    n_problems: int = 0
    repeats: tuple[int | None, int | None] = (None, None)  # baseline, checkpoint
    baseline: Interval | None = None
    checkpoint: Interval | None = None
    difference: Interval | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    detectable: float | None = None  # smallest difference that would have been seen with 80 % power
    margin_excluded: bool | None = None  # whether a loss larger than the margin is excluded, one-sided
    test: str = ""
    gained: int = 0  # problems whose accuracy rose, fell
    lost: int = 0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """A whole comparison: what the tables, the page and the exit status are made from."""

    checkpoint: str
    baseline: str
    paired: bool
    alpha: float
    margin: float
    verdict: str
    lines: tuple[Line, ...]
    regressions: tuple[regressions.Change, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def exit_status(self) -> int:
        """0 not worse, 1 worse, 2 could not be compared."""
        return {"worse": WORSE, "not comparable": NOT_COMPARABLE}.get(self.verdict, NOT_WORSE)

    def to_json(self) -> dict[str, Any]:
        """As plain data, the exit status with it."""
        return {**asdict(self), "exit_status": self.exit_status}


def _lattice(differences: np.ndarray, repeats: Sequence[int]) -> np.ndarray:
    """Differences of mean accuracies as whole numbers of the smallest step that these repeats allow."""
    return np.rint(differences * math.lcm(*repeats)).astype(np.int64)


def _against_margin(differences: np.ndarray, margin: float) -> float:
    """One-sided p-value that the loss is at least the margin."""
    p = significance.student(differences, -margin)
    return p / 2 if differences.mean() > -margin else 1 - p / 2


def _paired(first: np.ndarray, second: np.ndarray, name: str, alpha: float, margin: float) -> tuple[Line, np.ndarray]:
    differences = second.mean(axis=1) - first.mean(axis=1)
    repeats = (first.shape[1], second.shape[1])
    p = significance.permutation(_lattice(differences, repeats))
    if margin and differences.mean() < 0:  # a loss counts only beyond the margin
        p = significance.student(differences, -margin) if differences.mean() < -margin else 1.0
    return Line(
        name, "cannot tell", len(first), repeats,
        Interval(*statistics.avg_at_k(first)), Interval(*statistics.avg_at_k(second)),
        Interval(*statistics.paired_difference(first, second)), p,
        detectable=significance.smallest_detectable(differences, max(repeats), alpha),
        margin_excluded=_against_margin(differences, margin) <= alpha if margin else None,
        test="exact McNemar" if repeats == (1, 1) else "exact permutation",
        gained=int((differences > 1e-12).sum()), lost=int((differences < -1e-12).sum()),
    ), differences  # fmt: skip


def _overall(lines: Sequence[Line], parts: Sequence[np.ndarray], alpha: float, margin: float) -> Line:
    difference = mean_of([line.difference for line in lines if line.difference])
    errors = [part.std(ddof=1) / math.sqrt(len(part)) for part in parts]
    error = math.sqrt(sum(e**2 for e in errors)) / len(parts)
    p = significance.permutation_of_mean(parts)
    if margin and difference.value < 0:
        gap = difference.value + margin
        p = float(2 * stats.norm.sf(-gap / error)) if gap < 0 and error else 1.0
    factor = stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(significance.POWER)
    return Line(
        ALL, "cannot tell", sum(line.n_problems for line in lines), (None, None),
        mean_of([line.baseline for line in lines if line.baseline]),
        mean_of([line.checkpoint for line in lines if line.checkpoint]),
        difference, p, detectable=float(factor * error) if error else None,
        margin_excluded=bool((difference.value + margin) > stats.norm.ppf(1 - alpha) * error) if margin else None,
        test="permutation", gained=sum(line.gained for line in lines), lost=sum(line.lost for line in lines),
    )  # fmt: skip


def _decide(lines: Sequence[Line], alpha: float) -> list[Line]:
    """Holm's adjustment over all lines that were tested, and their verdicts."""
    adjusted = significance.holm([line.p_value for line in lines if line.p_value is not None])
    decided = []
    for line in lines:
        if line.p_value is None or line.difference is None:
            decided.append(line)
            continue
        p = adjusted.pop(0)
        direction = "better" if line.difference.value > 0 else "worse"
        decided.append(replace(line, p_adjusted=p, verdict=direction if p <= alpha else "cannot tell"))
    return decided


def _beyond_interval(line: Line) -> bool:
    gap = line.difference
    return line.benchmark == ALL and gap is not None and gap.low <= 0 <= gap.high and line.verdict != "cannot tell"


def overall_verdict(lines: Sequence[Line]) -> str:
    """Worse if any line is; else not comparable if any is; else better if any is."""
    verdicts = {line.verdict for line in lines}
    return next((v for v in ("worse", "not comparable", "better") if v in verdicts), "cannot tell")


def _chosen(found: Collection[str], benchmarks: Collection[str] | None) -> list[str]:
    if not benchmarks:
        return in_order(found)
    if absent := [name for name in benchmarks if name not in found]:
        raise UserError(f"no side has samples of {', '.join(absent)}; there are: {', '.join(in_order(found))}")
    return in_order(benchmarks)


def paired(
    checkpoint: Side,
    baseline: Side,
    benchmarks: Collection[str] | None = None,
    *,
    alpha: float = significance.ALPHA,
    margin: float = 0.0,
    accepted: Collection[str] = (),
) -> Result:
    """Compare two checkpoints on the same problems.

    Args:
        benchmarks: by default all that either side has; one that only one side has is not comparable.
        alpha: chance of any false "better" or "worse" over all benchmarks and their mean together.
        margin: a loss up to this (fraction) is not called worse.
        accepted: differences that do not stand in the way, of inputs.ACCEPTABLE.
    """
    names = _chosen({**checkpoint.tables, **baseline.tables}, benchmarks)
    obstacles = {name: inputs.obstacles(checkpoint, baseline, name, accepted) for name in names}
    able = [name for name in names if not obstacles[name]]
    family = len(able) + (len(able) > 1)
    lines, parts = [], []
    for name in names:
        if obstacles[name]:
            lines.append(Line(name, "not comparable", reasons=tuple(obstacles[name])))
            continue
        first, second = (inputs.correct(side.tables[name]) for side in (baseline, checkpoint))
        line, differences = _paired(first, second, name, alpha / family, margin)
        lines.append(line)
        parts.append(differences)
    if len(able) > 1:
        lines.append(_overall([line for line in lines if line.difference], parts, alpha / family, margin))
    lines = _decide(lines, alpha)
    notes = inputs.unknown(checkpoint, baseline, able)
    if any(_beyond_interval(line) for line in lines):
        notes.append(
            f"{ALL}: the interval also allows for changes on benchmarks where none was seen, which the test does not; "
            "so it may hold 0 where the test finds a difference"
        )
    if accepted:
        notes.append(f"differences in {', '.join(accepted)} were accepted, and may be what the scores differ by")
    if able and all(np.all(part == 0) for part in parts):
        notes.append("every problem has the same accuracy on both sides")
    changes = regressions.compare({name: (baseline.tables[name], checkpoint.tables[name]) for name in able}, alpha)
    return Result(
        checkpoint.name, baseline.name, True, alpha, margin, overall_verdict(lines), tuple(lines), changes, tuple(notes)
    )


def published(
    checkpoint: Side,
    row: Published,
    benchmarks: Collection[str] | None = None,
    *,
    alpha: float = significance.ALPHA,
    margin: float = 0.0,
) -> Result:
    """Compare samples with published percentages: unpaired, each side with the error that n and k allow.

    Both errors count the problems as drawn at random, though they are the same ones: without the baseline's samples the
    common part cannot be taken off, so that small differences are not seen, and none is called by chance.
    """
    names = _chosen(checkpoint.tables.keys() & row.figures.keys() or row.figures.keys(), benchmarks)
    lines: list[Line] = []
    tested = [name for name in names if name in checkpoint.tables and name not in checkpoint.refused]
    for name in names:
        if name not in tested:
            lines.append(
                Line(
                    name, "not comparable", reasons=(checkpoint.refused.get(name, f"no samples of {checkpoint.name}"),)
                )
            )
            continue
        figure, correct = row.figures[name], inputs.correct(checkpoint.tables[name])
        if len(correct) != figure.problems:
            reason = f"different problems: {len(correct)} here, {figure.problems} at the source"
            lines.append(Line(name, "not comparable", reasons=(reason,)))
            continue
        mean = float(correct.mean())
        # Never below what one problem more or less would be: at 0 and 100 % the sample says nothing of its error.
        own = max(float(correct.mean(axis=1).std(ddof=1)) / math.sqrt(len(correct)), 1 / len(correct))
        error, gap = math.hypot(own, figure.error), mean - figure.accuracy
        z, z_power = stats.norm.ppf(1 - alpha / 2 / len(tested)), stats.norm.ppf(significance.POWER)
        null = -margin if gap < 0 else 0.0
        p = float(2 * stats.norm.sf(abs(gap - null) / error)) if not (margin and -margin <= gap < 0) else 1.0
        half, theirs = stats.norm.ppf(0.975) * error, stats.norm.ppf(0.975) * figure.error
        lines.append(Line(
            name, "cannot tell", len(correct), (figure.repeats, correct.shape[1]),
            Interval(figure.accuracy, max(0.0, figure.accuracy - theirs), min(1.0, figure.accuracy + theirs)),
            Interval(*statistics.avg_at_k(correct)), Interval(gap, gap - half, gap + half), p,
            detectable=float((z + z_power) * error),
            margin_excluded=bool(gap + margin > stats.norm.ppf(1 - alpha) * error) if margin else None,
            test="unpaired, tolerance from n and k",
        ))  # fmt: skip
    lines = _decide(lines, alpha)
    notes = [
        f"published figures, without samples: {row.title}, {row.source}; protocol there: {row.protocol}",
        "unpaired: prompts, grader and decoding are not compared, and may be what the scores differ by",
    ]
    if any(line.difference and line.repeats[0] is None for line in lines):
        notes.append("repeats of the source not stated: its error is taken as that of one sample per problem")
    return Result(
        checkpoint.name, row.name, False, alpha, margin, overall_verdict(lines), tuple(lines), (), tuple(notes)
    )
