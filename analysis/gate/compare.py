"""Compare a checkpoint with a baseline: per benchmark the difference, its p-value, what was detectable, the verdict."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from analysis.gate import inputs, regressions
from analysis.gate.baselines import PublishedBaseline, PublishedScore
from analysis.gate.inputs import GradedCheckpoint
from analysis.reference import in_order
from analysis.report.checkpoint_comparison import mean_of
from contracts.errors import UserError
from eval import significance, statistics
from eval.statistics import Correct, Estimate

ALL = "mean of all"
NOT_WORSE, WORSE, NOT_COMPARABLE, USAGE = 0, 1, 2, 3  # exit status
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class BenchmarkResult:
    """One benchmark, or their mean. Accuracies and differences are fractions, None if unknown."""

    benchmark: str
    verdict: str  # better, worse, cannot tell, not comparable
    n_problems: int = 0
    repeats: tuple[int | None, int | None] = (None, None)  # baseline, checkpoint
    baseline: Estimate | None = None
    checkpoint: Estimate | None = None
    difference: Estimate | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    detectable: float | None = None  # smallest difference that the test would have found with 80 % power
    margin_excluded: bool | None = None  # whether a loss larger than the margin is excluded, one-sided
    test: str = ""
    gained: int = 0  # problems whose accuracy rose, fell
    lost: int = 0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class GateResult:
    """A whole comparison, from which the tables, the page and the exit status are made."""

    checkpoint: str
    baseline: str
    paired: bool
    alpha: float
    margin: float
    verdict: str
    lines: tuple[BenchmarkResult, ...]
    regressions: tuple[regressions.MeasureChange, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def exit_status(self) -> int:
        """0: not worse, 1: worse, 2: could not be compared."""
        return {"worse": WORSE, "not comparable": NOT_COMPARABLE}.get(self.verdict, NOT_WORSE)

    def to_json(self) -> dict[str, Any]:
        """As plain data, with the exit status."""
        return {**asdict(self, dict_factory=_plain), "exit_status": self.exit_status}


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value._asdict() if isinstance(value, Estimate) else value for key, value in items}


def _as_integers(differences: Floats, repeats: Sequence[int]) -> npt.NDArray[np.int64]:
    """Differences of mean accuracies as multiples of the smallest difference that these repeats allow."""
    return np.rint(differences * math.lcm(*repeats)).astype(np.int64)


def _against_margin(differences: Floats, margin: float) -> float:
    """One-sided p-value of the hypothesis that the loss is at least the margin."""
    p = significance.student(differences, -margin)
    return p / 2 if differences.mean() > -margin else 1 - p / 2


def _paired(first: Correct, second: Correct, name: str, alpha: float, margin: float) -> tuple[BenchmarkResult, Floats]:
    """The result on one benchmark, not yet decided, and the difference of each problem."""
    differences = second.mean(axis=1) - first.mean(axis=1)
    repeats = (first.shape[1], second.shape[1])
    p = significance.permutation(_as_integers(differences, repeats))
    if margin and differences.mean() < 0:  # a loss counts only beyond the margin
        p = significance.student(differences, -margin) if differences.mean() < -margin else 1.0
    return BenchmarkResult(
        name, "cannot tell", len(first), repeats, statistics.avg_at_k(first), statistics.avg_at_k(second),
        statistics.paired_difference(first, second), p,
        detectable=significance.smallest_detectable(differences, max(repeats), alpha),
        margin_excluded=_against_margin(differences, margin) <= alpha if margin else None,
        test="exact McNemar" if repeats == (1, 1) else "exact permutation",
        gained=int((differences > 1e-12).sum()), lost=int((differences < -1e-12).sum()),
    ), differences  # fmt: skip


def _mean_result(
    lines: Sequence[BenchmarkResult], parts: Sequence[Floats], alpha: float, margin: float
) -> BenchmarkResult:
    """The result on the mean of several benchmarks, not yet decided. `parts` has the differences of each problem."""
    difference = mean_of([line.difference for line in lines if line.difference])
    errors = [part.std(ddof=1) / math.sqrt(len(part)) for part in parts]
    error = math.sqrt(sum(e**2 for e in errors)) / len(parts)
    p = significance.permutation_of_mean(parts)
    if margin and difference.value < 0:
        gap = difference.value + margin
        p = float(2 * stats.norm.sf(-gap / error)) if gap < 0 and error else 1.0
    factor = stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(significance.POWER)
    return BenchmarkResult(
        ALL, "cannot tell", sum(line.n_problems for line in lines), (None, None),
        mean_of([line.baseline for line in lines if line.baseline]),
        mean_of([line.checkpoint for line in lines if line.checkpoint]),
        difference, p, detectable=float(factor * error) if error else None,
        margin_excluded=bool((difference.value + margin) > stats.norm.ppf(1 - alpha) * error) if margin else None,
        test="permutation", gained=sum(line.gained for line in lines), lost=sum(line.lost for line in lines),
    )  # fmt: skip


def _decide(lines: Sequence[BenchmarkResult], alpha: float) -> list[BenchmarkResult]:
    """Holm's adjustment over all tested lines, and their verdicts."""
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


def _disagrees_with_interval(line: BenchmarkResult) -> bool:
    gap = line.difference
    return line.benchmark == ALL and gap is not None and gap.low <= 0 <= gap.high and line.verdict != "cannot tell"


def overall_verdict(lines: Sequence[BenchmarkResult]) -> str:
    """Worse if any line is, else not comparable if any is, else better if any is, else cannot tell."""
    verdicts = {line.verdict for line in lines}
    return next((v for v in ("worse", "not comparable", "better") if v in verdicts), "cannot tell")


def _chosen(found: Collection[str], benchmarks: Collection[str] | None) -> list[str]:
    if not benchmarks:
        return in_order(found)
    if absent := [name for name in benchmarks if name not in found]:
        raise UserError(f"no side has samples of {', '.join(absent)}; there are: {', '.join(in_order(found))}")
    return in_order(benchmarks)


def paired(
    checkpoint: GradedCheckpoint,
    baseline: GradedCheckpoint,
    benchmarks: Collection[str] | None = None,
    *,
    alpha: float = significance.ALPHA,
    margin: float = 0.0,
    accepted: Collection[str] = (),
) -> GateResult:
    """Compare two checkpoints on the same problems.

    Args:
        checkpoint: the new one.
        baseline: the one to compare it with.
        benchmarks: by default all that either side has. A benchmark of only one side is not comparable.
        alpha: chance of any false "better" or "worse" over all benchmarks and their mean.
        margin: a loss up to this fraction is not called worse.
        accepted: differences that do not prevent the comparison, of comparability.ACCEPTABLE.

    Raises:
        UserError: no side has samples of one of the benchmarks.
    """
    names = _chosen({**checkpoint.tables, **baseline.tables}, benchmarks)
    obstacles = {name: inputs.obstacles(checkpoint, baseline, name, accepted) for name in names}
    able = [name for name in names if not obstacles[name]]
    family = len(able) + (len(able) > 1)
    lines, parts = [], []
    for name in names:
        if obstacles[name]:
            lines.append(BenchmarkResult(name, "not comparable", reasons=tuple(obstacles[name])))
            continue
        first, second = (inputs.correct(side.tables[name]) for side in (baseline, checkpoint))
        line, differences = _paired(first, second, name, alpha / family, margin)
        lines.append(line)
        parts.append(differences)
    if len(able) > 1:
        lines.append(_mean_result([line for line in lines if line.difference], parts, alpha / family, margin))
    lines = _decide(lines, alpha)
    notes = inputs.unknown(checkpoint, baseline, able)
    if any(_disagrees_with_interval(line) for line in lines):
        notes.append(
            f"{ALL}: unlike the test, the interval allows for changes on benchmarks where none was observed, so it can "
            "include 0 although the test finds a difference"
        )
    if accepted:
        notes.append(f"differences in {', '.join(accepted)} were accepted and may explain the difference of the scores")
    if able and all(np.all(part == 0) for part in parts):
        notes.append("every problem has the same accuracy on both sides")
    changes = regressions.compare({name: (baseline.tables[name], checkpoint.tables[name]) for name in able}, alpha)
    return GateResult(
        checkpoint.name, baseline.name, True, alpha, margin, overall_verdict(lines), tuple(lines), changes, tuple(notes)
    )


def _unpaired(
    name: str, correct: Correct, score: PublishedScore, alphas: tuple[float, float], margin: float
) -> BenchmarkResult:
    """The result on one benchmark against a published percentage, not yet decided.

    `alphas` are the level of the margin's test, and that of Holm's first step.
    """
    mean = float(correct.mean())
    # At least one problem more or less: at 0 and 100 % the sample says nothing about its error.
    own = max(float(correct.mean(axis=1).std(ddof=1)) / math.sqrt(len(correct)), 1 / len(correct))
    error, gap = math.hypot(own, score.error), mean - score.accuracy
    z, z_power = stats.norm.ppf(1 - alphas[1] / 2), stats.norm.ppf(significance.POWER)
    null = -margin if gap < 0 else 0.0
    p = float(2 * stats.norm.sf(abs(gap - null) / error)) if not (margin and -margin <= gap < 0) else 1.0
    half, theirs = stats.norm.ppf(0.975) * error, stats.norm.ppf(0.975) * score.error
    return BenchmarkResult(
        name, "cannot tell", len(correct), (score.repeats, correct.shape[1]),
        Estimate(score.accuracy, max(0.0, score.accuracy - theirs), min(1.0, score.accuracy + theirs)),
        statistics.avg_at_k(correct), Estimate(gap, gap - half, gap + half), p,
        detectable=float((z + z_power) * error),
        margin_excluded=bool(gap + margin > stats.norm.ppf(1 - alphas[0]) * error) if margin else None,
        test="unpaired, tolerance from n and k",
    )  # fmt: skip


def published(
    checkpoint: GradedCheckpoint,
    row: PublishedBaseline,
    benchmarks: Collection[str] | None = None,
    *,
    alpha: float = significance.ALPHA,
    margin: float = 0.0,
) -> GateResult:
    """Compare samples with published percentages: unpaired, each side with the error that n and k allow.

    Both errors treat the problems as a random sample although both sides have the same ones: without the samples of the
    baseline the common part is unknown. So small differences are missed, but chance is never called a difference.

    Args:
        checkpoint: the new one.
        row: the published baseline.
        benchmarks: by default all that both sides have.
        alpha: chance of any false "better" or "worse" over all benchmarks.
        margin: a loss up to this fraction is not called worse.

    Raises:
        UserError: the row has no score on one of the benchmarks.
    """
    names = _chosen(checkpoint.tables.keys() & row.scores.keys() or row.scores.keys(), benchmarks)
    tested = [name for name in names if name in checkpoint.tables and name not in checkpoint.refused]
    lines: list[BenchmarkResult] = []
    for name in names:
        if name not in tested:
            reason = checkpoint.refused.get(name, f"no samples of {checkpoint.name}")
            lines.append(BenchmarkResult(name, "not comparable", reasons=(reason,)))
            continue
        score, correct = row.scores[name], inputs.correct(checkpoint.tables[name])
        if len(correct) != score.problems:
            reason = f"different problems: {len(correct)} here, {score.problems} at the source"
            lines.append(BenchmarkResult(name, "not comparable", reasons=(reason,)))
            continue
        lines.append(_unpaired(name, correct, score, (alpha, alpha / len(tested)), margin))
    lines = _decide(lines, alpha)
    notes = [
        f"published figures, without samples: {row.title}, {row.source}; protocol there: {row.protocol}",
        "unpaired: prompts, grader and decoding are not compared and may explain the difference of the scores",
    ]
    if any(line.difference and line.repeats[0] is None for line in lines):
        notes.append("the source does not state its repeats: its error is taken as that of one sample per problem")
    return GateResult(
        checkpoint.name, row.name, False, alpha, margin, overall_verdict(lines), tuple(lines), (), tuple(notes)
    )
