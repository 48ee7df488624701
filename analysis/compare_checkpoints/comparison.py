"""Compare a checkpoint with a baseline: per benchmark the difference, its p-value, what was detectable, the verdict."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from analysis.compare_checkpoints import graded_checkpoint, other_measures, paired_answers, pass_at_k_difference
from analysis.compare_checkpoints.graded_checkpoint import GradedCheckpoint
from analysis.compare_checkpoints.paired_answers import Answers
from analysis.compare_checkpoints.pass_at_k_difference import PassDifference
from analysis.reference import in_order
from analysis.statistics.checkpoint_difference import mean_of
from eval import statistics
from eval.statistics import Estimate, significance, smallest_difference
from system.errors import UserError

ALL = "mean of all"
NOT_WORSE, WORSE, NOT_COMPARABLE, USAGE = 0, 1, 2, 3  # exit status


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
    available: tuple[int | None, int | None] = (None, None)  # repeats that there are, if not all are compared
    ungradable: tuple[int, int] = (0, 0)  # completions of baseline, checkpoint
    bounds: tuple[float, float] | None = None  # of the difference, whatever the ungradable completions are
    passes: tuple[PassDifference, ...] = ()
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
    regressions: tuple[other_measures.MeasureChange, ...] = ()
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


def _paired(part: Answers, name: str, alpha: float, margin: float) -> BenchmarkResult:
    """The result on one benchmark, not yet decided."""
    counts, k = part.counts, part.repeats
    return BenchmarkResult(
        name, "cannot tell", len(counts), (k, k), statistics.avg_at_k(part.first), statistics.avg_at_k(part.second),
        statistics.paired_difference(part.first, part.second), paired_answers.p_value([part], margin),
        detectable=smallest_difference.smallest_detectable([(part.first, part.second)], alpha),
        margin_excluded=paired_answers.margin_excluded([part], margin, alpha),
        test="exact McNemar" if k == 1 else "exact permutation",
        gained=int((counts > 0).sum()), lost=int((counts < 0).sum()), ungradable=part.ungradable,
        bounds=(float(part.least.mean()) / k, float(part.most.mean()) / k),
    )  # fmt: skip


def _mean_result(
    lines: Sequence[BenchmarkResult], parts: Sequence[Answers], alpha: float, margin: float
) -> BenchmarkResult:
    """The result on the mean of several benchmarks, not yet decided.

    Args:
        lines: their results.
        parts: their answers.
        alpha: level of Holm's first step.
        margin: a loss up to this is not called worse.
    """
    bounds = np.mean([line.bounds for line in lines if line.bounds], axis=0)
    return BenchmarkResult(
        ALL, "cannot tell", sum(line.n_problems for line in lines), (None, None),
        mean_of([line.baseline for line in lines if line.baseline]),
        mean_of([line.checkpoint for line in lines if line.checkpoint]),
        mean_of([line.difference for line in lines if line.difference]), paired_answers.p_value(parts, margin),
        detectable=smallest_difference.smallest_detectable([(part.first, part.second) for part in parts], alpha),
        margin_excluded=paired_answers.margin_excluded(parts, margin, alpha),
        test="permutation", gained=sum(line.gained for line in lines), lost=sum(line.lost for line in lines),
        ungradable=(sum(line.ungradable[0] for line in lines), sum(line.ungradable[1] for line in lines)),
        bounds=(float(bounds[0]), float(bounds[1])),
    )  # fmt: skip


def decide(lines: Sequence[BenchmarkResult], alpha: float) -> list[BenchmarkResult]:
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


def _ungradable_note(line: BenchmarkResult) -> str:
    assert line.bounds is not None
    return (
        f"{line.benchmark}: {line.ungradable[0]} completions of the baseline and {line.ungradable[1]} of the "
        "checkpoint are ungradable and count as wrong; whatever they are, the difference is from "
        f"{100 * line.bounds[0]:+.1f} to {100 * line.bounds[1]:+.1f} points; the verdict holds for all of that"
    )


def overall_verdict(lines: Sequence[BenchmarkResult]) -> str:
    """Worse if any line is, else not comparable if any is, else better if any is, else cannot tell."""
    verdicts = {line.verdict for line in lines}
    return next((v for v in ("worse", "not comparable", "better") if v in verdicts), "cannot tell")


def chosen(found: Collection[str], benchmarks: Collection[str] | None) -> list[str]:
    """The benchmarks to compare, in order: those asked for, or all found."""
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
    ungradable: float = graded_checkpoint.UNGRADABLE,
    ties: str | None = None,
) -> GateResult:
    """Compare two checkpoints on the same problems.

    Args:
        checkpoint: the new one.
        baseline: the one to compare it with.
        benchmarks: by default all that either side has. A benchmark of only one side is not comparable.
        alpha: chance of any false "better" or "worse" over all benchmarks and their mean.
        margin: a loss up to this fraction is not called worse.
        accepted: differences that do not prevent the comparison, of inputs.ACCEPTABLE.
        ungradable: largest share of ungradable completions on either side that is compared.
        ties: of maj@k, see `pass_at_k.differences`.

    Raises:
        UserError: no side has samples of one of the benchmarks.
    """
    names = chosen({**checkpoint.tables, **baseline.tables}, benchmarks)
    obstacles = {name: graded_checkpoint.obstacles(checkpoint, baseline, name, accepted, ungradable) for name in names}
    able = [name for name in names if not obstacles[name]]
    family = len(able) + (len(able) > 1)
    tables = {name: graded_checkpoint.same_repeats(baseline.tables[name], checkpoint.tables[name]) for name in able}
    lines: list[BenchmarkResult] = []
    parts: list[Answers] = []
    for name in names:
        if obstacles[name]:
            lines.append(BenchmarkResult(name, "not comparable", reasons=tuple(obstacles[name])))
            continue
        part = Answers.read(tables[name])
        passes = pass_at_k_difference.differences(tables[name], ties)
        line = replace(_paired(part, name, alpha / family, margin), passes=passes)
        available = (
            graded_checkpoint.repeats(baseline.tables[name]),
            graded_checkpoint.repeats(checkpoint.tables[name]),
        )
        lines.append(line if available == line.repeats else replace(line, available=available))
        parts.append(part)
    if len(able) > 1:
        lines.append(_mean_result([line for line in lines if line.difference], parts, alpha / family, margin))
    lines = decide(lines, alpha)
    notes = graded_checkpoint.unknown(checkpoint, baseline, able)
    if any(_disagrees_with_interval(line) for line in lines):
        notes.append(
            f"{ALL}: unlike the test, the interval allows for changes on benchmarks where none was observed, so it can "
            "include 0 although the test finds a difference"
        )
    if accepted:
        notes.append(f"differences in {', '.join(accepted)} were accepted and may explain the difference of the scores")
    if able and all(np.all(part.counts == 0) for part in parts):
        notes.append("every problem has the same accuracy on both sides")
    if same := [
        name for name in able if graded_checkpoint.same_completions(checkpoint.tables[name], baseline.tables[name])
    ]:
        notes.append(f"both sides have the same completions on {', '.join(same)}: the same samples, or a copy of them")
    notes += [_ungradable_note(line) for line in lines if any(line.ungradable) and line.benchmark != ALL]
    for line in lines:
        if line.available != (None, None):
            notes.append(
                f"{line.benchmark}: {line.available[0]} repeats of the baseline and {line.available[1]} of the "
                f"checkpoint; of each problem {line.repeats[0]} are compared on both sides, drawn by a hash of problem "
                "and repeat"
            )
    changes = other_measures.compare(tables, alpha)
    return GateResult(
        checkpoint.name, baseline.name, True, alpha, margin, overall_verdict(lines), tuple(lines), changes, tuple(notes)
    )
