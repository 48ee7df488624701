"""The result of a comparison: a line per benchmark, Holm's correction over them, and the verdict."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from analysis.compare_checkpoints.exit_status import NOT_COMPARABLE, NOT_WORSE, WORSE
from analysis.compare_checkpoints.other_measures import MeasureChange
from analysis.compare_checkpoints.pass_at_k_difference import PassDifference
from analysis.reference import in_order
from eval.statistics import Estimate, significance
from eval.statistics.posterior import Posterior
from system.errors import UserError

ALL = "mean of all"
SAME, LIKE = QUESTIONS = ("same", "like")  # on these same problems, on problems like these
MARGIN_POINTS = 0.0  # the default margin: every loss that is beyond chance counts as worse


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
    detectable_loss: float | None = None  # with a margin, the smallest loss that its test would have found
    unseen: float = 0.0  # bound of p by the chance that problems that change the other way exist and none is here
    hidden: float = 0.0  # how much such a problem could change
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
class PooledResult:
    """All problems of all benchmarks as one set: one question with a level of its own, in no other verdict.

    Attributes:
        n_problems: of all benchmarks, each with the same weight.
        difference: as a fraction.
        p_value: two-sided, not adjusted.
        verdict: better, worse or cannot tell.
    """

    n_problems: int
    difference: Estimate
    p_value: float
    verdict: str


@dataclass(frozen=True)
class Comparison:
    """A whole comparison, from which the tables, the page and the exit status are made."""

    checkpoint: str
    baseline: str
    paired: bool
    alpha: float
    margin: float  # a fraction; a loss up to it is not called worse
    verdict: str
    lines: tuple[BenchmarkResult, ...]
    regressions: tuple[MeasureChange, ...] = ()
    notes: tuple[str, ...] = field(default=())
    always_valid: bool = False  # whether the verdicts hold whenever one looks and stops
    pooled: PooledResult | None = None
    posteriors: tuple[Posterior, ...] = ()  # for those who asked; no verdict depends on them
    looks: tuple[dict[str, int], ...] = ()  # repeats by benchmark, each time that this pair was compared

    @property
    def exit_status(self) -> int:
        """0: not worse, 1: worse, 2: could not be compared."""
        return {"worse": WORSE, "not comparable": NOT_COMPARABLE}.get(self.verdict, NOT_WORSE)

    def to_json(self) -> dict[str, Any]:
        """As plain data, with the exit status."""
        return {**asdict(self, dict_factory=_named_estimates), "exit_status": self.exit_status}


def _named_estimates(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value._asdict() if isinstance(value, Estimate) else value for key, value in items}


def verdict_of(gap: Estimate, p: float, alpha: float) -> str:
    """Of one line with this p-value."""
    return "cannot tell" if p > alpha else "better" if gap.value > 0 else "worse"


def with_verdicts(lines: Sequence[BenchmarkResult], alpha: float) -> list[BenchmarkResult]:
    """Holm's adjustment over all tested lines, and their verdicts."""
    adjusted = significance.holm([line.p_value for line in lines if line.p_value is not None])
    decided = []
    for line in lines:
        if line.p_value is None or line.difference is None:
            decided.append(line)
            continue
        p = adjusted.pop(0)
        decided.append(replace(line, p_adjusted=p, verdict=verdict_of(line.difference, p, alpha)))
    return decided


def overall_verdict(lines: Sequence[BenchmarkResult]) -> str:
    """Worse if any line is, else not comparable if any is, else better if any is, else cannot tell."""
    verdicts = {line.verdict for line in lines}
    return next((v for v in ("worse", "not comparable", "better") if v in verdicts), "cannot tell")


def benchmarks_to_compare(available: Collection[str], wanted: Collection[str] | None) -> list[str]:
    """The benchmarks to compare, in order: the wanted ones, or all that there are."""
    if not wanted:
        return in_order(available)
    if absent := [name for name in wanted if name not in available]:
        raise UserError(
            f"no side has samples of {', '.join(absent)}; there are: {', '.join(in_order(available))}",
            code="missing-samples", missing=absent,
        )  # fmt: skip
    return in_order(wanted)


def add_level_options(parser: argparse.ArgumentParser) -> None:
    """The options that say how large a difference has to be: `alpha`, and `margin_points`."""
    parser.add_argument(
        "--alpha", type=float, default=significance.ALPHA, help="chance of any false verdict (default: %(default)s)"
    )
    parser.add_argument(
        "--margin", type=float, default=MARGIN_POINTS, dest="margin_points", metavar="POINTS",
        help="a loss of up to this many points is not called worse (default: %(default)g)",
    )  # fmt: skip


def check_level_options(arguments: argparse.Namespace) -> None:
    """Raise UserError unless the options of `add_level_options` are in range."""
    if getattr(arguments, "candidates", 1) < 1:
        raise UserError("--candidates has to be 1 or more", code="argument-out-of-range")
    if not (0 < arguments.alpha < 1 and 0 <= arguments.margin_points <= 100):
        raise UserError(
            "--alpha has to be between 0 and 1, --margin from 0 to 100 points", code="argument-out-of-range"
        )
