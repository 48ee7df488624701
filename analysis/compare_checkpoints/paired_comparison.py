"""Compare a checkpoint with a baseline on the same problems, problem by problem."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from analysis.compare_checkpoints import graded_checkpoint, other_measures, paired_answers, pass_at_k_difference
from analysis.compare_checkpoints.comparison import (
    ALL,
    LIKE,
    MARGIN_POINTS,
    SAME,
    BenchmarkResult,
    Comparison,
    PooledResult,
    benchmarks_to_compare,
    overall_verdict,
    verdict_of,
    with_verdicts,
)
from analysis.compare_checkpoints.graded_checkpoint import GradedCheckpoint, same_repeats
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from analysis.statistics.checkpoint_difference import mean_of
from eval import statistics
from eval.statistics import same_problems, significance, skewed_changes, smallest_difference
from eval.statistics.posterior import posterior


def compare(
    checkpoint: GradedCheckpoint,
    baseline: GradedCheckpoint,
    benchmarks: Collection[str] | None = None,
    *,
    alpha: float = significance.ALPHA,
    margin: float = MARGIN_POINTS / 100,
    accepted: Collection[str] = (),
    ungradable: float = graded_checkpoint.UNGRADABLE,
    ties: str | None = None,
    problems: str = LIKE,
    with_posterior: bool = False,
) -> Comparison:
    """Compare two checkpoints on the same problems.

    Args:
        checkpoint: the new one.
        baseline: the one to compare it with.
        benchmarks: by default all that either side has. A benchmark of only one side is not comparable.
        alpha: chance of any false "better" or "worse" over all benchmarks and their mean.
        margin: a loss up to this fraction is not called worse.
        accepted: differences that do not prevent the comparison, of graded_checkpoint.ACCEPTABLE.
        ungradable: largest share of ungradable completions on either side that is compared.
        ties: of maj@k, see `pass_at_k_difference.differences`.
        problems: the question of the verdict: these SAME problems, or problems LIKE these.
        with_posterior: whether the posterior is wanted, too (eval.statistics.posterior).

    Raises:
        UserError: no side has samples of one of the benchmarks.
    """
    names = benchmarks_to_compare(checkpoint.tables.keys() | baseline.tables.keys(), benchmarks)
    checkpoint, baseline = graded_checkpoint.on_shared_problems((checkpoint, baseline), accepted)
    obstacles = {name: graded_checkpoint.obstacles(checkpoint, baseline, name, accepted, ungradable) for name in names}
    comparable = [name for name in names if not obstacles[name]]
    tables = {name: same_repeats(baseline.tables[name], checkpoint.tables[name]) for name in comparable}
    answers = {name: PairedAnswers.read(pair) for name, pair in tables.items()}
    line_alpha = alpha / max(1, len(tables) + (len(tables) > 1))  # of the first step of Holm's correction
    lines = []
    for name in names:
        if name not in answers:
            lines.append(BenchmarkResult(name, "not comparable", reasons=tuple(obstacles[name])))
            continue
        passes = pass_at_k_difference.differences(tables[name], ties)
        line = replace(_benchmark_result(name, answers[name], line_alpha, margin, problems), passes=passes)
        first, second = (graded_checkpoint.repeats(side.tables[name]) for side in (baseline, checkpoint))
        lines.append(line if first == second else replace(line, available=(first, second)))
    if len(answers) > 1:
        lines.append(_mean_result(lines, list(answers.values()), line_alpha, margin, problems))
    lines = with_verdicts(lines, alpha)
    return Comparison(
        checkpoint.name, baseline.name, True, alpha, margin, overall_verdict(lines), tuple(lines),
        other_measures.compare(tables, alpha),
        tuple(_notes(checkpoint, baseline, lines, answers, accepted, alpha, margin, problems)),
        pooled=_pooled_result(list(answers.values()), alpha, margin, problems) if len(answers) > 1 else None,
        posteriors=tuple(posterior(name, pair.first, pair.second) for name, pair in answers.items() if with_posterior),
    )  # fmt: skip


def _notes(
    checkpoint: GradedCheckpoint,
    baseline: GradedCheckpoint,
    lines: Sequence[BenchmarkResult],
    answers: Mapping[str, PairedAnswers],
    accepted: Collection[str],
    alpha: float,
    margin: float,
    problems: str,
) -> list[str]:
    """What a reader has to know beside the verdicts."""
    if not checkpoint.tables.keys() & baseline.tables.keys():
        return ["the sides have no benchmark in common: sample both on one (of models with --benchmark NAME)"]
    notes = graded_checkpoint.conditions(checkpoint, answers)
    notes += [*baseline.note_of_quantisation(), *checkpoint.note_of_quantisation()]
    notes += graded_checkpoint.unrecorded(checkpoint, baseline, answers)
    if any(_disagrees_with_interval(line) for line in lines):
        notes.append(
            f"{ALL}: unlike the test, the interval allows for changes on benchmarks where none was observed, so it can "
            "include 0 although the test finds a difference"
        )
    notes += graded_checkpoint.notes_of_accepted(checkpoint, baseline, answers, accepted)
    if answers and all(np.all(pair.counts == 0) for pair in answers.values()):
        notes.append("every problem has the same accuracy on both sides")
    if same := graded_checkpoint.with_same_completions(checkpoint, baseline, answers):
        notes.append(f"both sides have the same completions on {', '.join(same)}: the same samples, or a copy of them")
    if copies := [name for name, pair in answers.items() if pair.has_copies]:
        notes.append(
            f"the repeats of each problem have one verdict on {', '.join(copies)}, as greedy ones do: they count as one"
        )
    notes += [note for line in lines if (note := _settling_note(line, answers, alpha, problems))]
    notes += [
        f"{_unseen_note(line, margin)}{_on_same_problems(answers.get(line.benchmark))}"
        for line in lines
        if line.verdict == "cannot tell" and _is_unseen(line, alpha)
    ]
    notes += [_ungradable_note(line) for line in lines if any(line.ungradable) and line.benchmark != ALL]
    notes += [
        f"{line.benchmark}: {line.available[0]} repeats of the baseline and {line.available[1]} of the checkpoint; of "
        f"each problem {line.repeats[0]} are compared on both sides, drawn by a hash of problem and repeat"
        for line in lines
        if line.available != (None, None)
    ]
    return notes


def _benchmark_result(name: str, pair: PairedAnswers, alpha: float, margin: float, problems: str) -> BenchmarkResult:
    """The result on one benchmark, not yet decided."""
    counts, k = pair.counts, pair.repeats
    (once,) = _without_copies([pair])
    gap = (
        same_problems.difference((once.first, once.second))
        if problems == SAME
        else statistics.paired_difference(pair.first, pair.second, clusters=pair.clusters)
    )
    return replace(
        _tested([pair], alpha, margin, problems), benchmark=name, n_problems=len(counts), repeats=(k, k),
        baseline=statistics.avg_at_k(pair.first, clusters=pair.clusters),
        checkpoint=statistics.avg_at_k(pair.second, clusters=pair.clusters),
        difference=gap,
        gained=int((counts > 0).sum()), lost=int((counts < 0).sum()), ungradable=pair.ungradable, bounds=pair.bounds,
    )  # fmt: skip


def _tested(pairs: Sequence[PairedAnswers], alpha: float, margin: float, problems: str) -> BenchmarkResult:
    """What the test of one benchmark, or of the mean of several, says. Copies of an answer count as one."""
    pairs = _without_copies(pairs)
    used, answers = paired_answers.test(pairs, margin, problems), [(pair.first, pair.second) for pair in pairs]
    detectable: list[float | None]
    if problems == SAME:
        detectable = [same_problems.smallest_detectable(answers, alpha) + beyond for beyond in (0.0, margin)]
    else:
        detectable = [
            smallest_difference.smallest_detectable(answers, alpha, margin=beyond)
            for beyond in ((0.0, margin) if margin else (0.0,))
        ]
    return BenchmarkResult(
        ALL, "cannot tell", p_value=used.p_value, unseen=used.unseen, hidden=used.hidden, test=used.name,
        detectable=detectable[0], detectable_loss=detectable[1] if margin else None,
        margin_excluded=paired_answers.margin_excluded(pairs, margin, alpha, problems),
    )  # fmt: skip


def _without_copies(pairs: Sequence[PairedAnswers]) -> list[PairedAnswers]:
    return [pair.first_repeats(1) if pair.has_copies else pair for pair in pairs]


def _pooled_result(pairs: Sequence[PairedAnswers], alpha: float, margin: float, problems: str) -> PooledResult:
    """All problems as one set."""
    pairs = _without_copies(pairs)
    p = paired_answers.test(pairs, margin, problems, pooled=True).p_value
    gap = paired_answers.pooled_difference(pairs, problems)
    return PooledResult(sum(len(pair.counts) for pair in pairs), gap, p, verdict_of(gap, p, alpha))


def _mean_result(
    lines: Sequence[BenchmarkResult], pairs: Sequence[PairedAnswers], alpha: float, margin: float, problems: str
) -> BenchmarkResult:
    """The result on the mean of several benchmarks, not yet decided.

    Args:
        lines: their results.
        pairs: their answers.
        alpha: level of Holm's first step.
        margin: a loss up to this is not called worse.
        problems: SAME or LIKE.
    """
    bounds = np.mean([line.bounds for line in lines if line.bounds], axis=0)
    return replace(
        _tested(pairs, alpha, margin, problems), n_problems=sum(line.n_problems for line in lines),
        baseline=mean_of([line.baseline for line in lines if line.baseline]),
        checkpoint=mean_of([line.checkpoint for line in lines if line.checkpoint]),
        difference=mean_of([line.difference for line in lines if line.difference]),
        gained=sum(line.gained for line in lines), lost=sum(line.lost for line in lines),
        ungradable=(sum(line.ungradable[0] for line in lines), sum(line.ungradable[1] for line in lines)),
        bounds=(float(bounds[0]), float(bounds[1])),
    )  # fmt: skip


def _disagrees_with_interval(line: BenchmarkResult) -> bool:
    gap = line.difference
    return line.benchmark == ALL and gap is not None and gap.low <= 0 <= gap.high and line.verdict != "cannot tell"


def _settling_note(line: BenchmarkResult, answers: Mapping[str, PairedAnswers], alpha: float, problems: str) -> str:
    """What the test could have seen, and how many samples would settle a difference as large as the observed one.

    The number of samples is that for new problems, so it is not said where these same problems are asked about.
    """
    pair = answers.get(line.benchmark)
    if line.verdict != "cannot tell" or pair is None or line.detectable is None:
        return ""
    could_see = f"a true difference of {100 * line.detectable:.1f} points would have been seen in 80 % of such tests"
    text = f"{line.benchmark}: {could_see}"
    parts, gap = significance.spread(pair.first, pair.second), line.difference
    if problems == SAME or parts is None or gap is None or gap.value == 0 or pair.has_copies:
        return text
    hidden = line.hidden or skewed_changes.MOST
    need = significance.needed(line.n_problems, abs(gap.value), parts, alpha, hidden=hidden)
    more = (
        f"{need.repeats:,} repeats ({line.n_problems * max(0, need.repeats - pair.repeats):,} completions more a side)"
        if need.repeats
        else f"about {need.problems:,} problems with one repeat each; no number of repeats does"
    )
    return f"{text}; one of {100 * abs(gap.value):.1f}, as observed, takes {more}"


def _is_unseen(line: BenchmarkResult, alpha: float) -> bool:
    """Whether the changes are beyond chance and only too few problems prevent a verdict."""
    gap = line.difference
    return gap is not None and line.unseen > alpha and not gap.low <= 0 <= gap.high


def _unseen_note(line: BenchmarkResult, margin: float) -> str:
    assert line.difference is not None
    hidden, lost = line.hidden, line.difference.value < 0
    gap = abs(line.difference.value) - (margin if lost else 0.0)
    share = gap / (hidden + gap)
    return (
        f"{line.benchmark}: too few problems for so small a difference; if {100 * share:.0f} % of the problems like "
        f"these {'gain' if lost else 'lose'} {100 * hidden:.0f} points, there is none on average, and "
        f"{line.n_problems:,} problems have none of them with a chance of {100 * (1 - share) ** line.n_problems:.0f} %"
    )


def _on_same_problems(pair: PairedAnswers | None) -> str:
    """The difference by the question that has no such limit, as the end of a note."""
    if pair is None or pair.repeats < 2 or pair.has_copies:
        return ""
    gap = same_problems.difference((pair.first, pair.second))
    return (
        f"; on these same problems the difference is {100 * gap.value:+.1f} [{100 * gap.low:+.1f}, "
        f"{100 * gap.high:+.1f}] points (--problems same)"
    )


def _ungradable_note(line: BenchmarkResult) -> str:
    assert line.bounds is not None
    return (
        f"{line.benchmark}: {line.ungradable[0]} completions of the baseline and {line.ungradable[1]} of the "
        "checkpoint are ungradable and count as wrong; whatever they are, the difference is from "
        f"{100 * line.bounds[0]:+.1f} to {100 * line.bounds[1]:+.1f} points; the verdict holds for all of that"
    )
