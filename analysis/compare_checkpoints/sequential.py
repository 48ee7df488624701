"""`crosszero compare-checkpoints sequential`: sample both models in rounds until the verdict is clear.

Each round doubles the completions per problem on the benchmarks whose verdict is still open. Generation and grading are
those of every evaluation, so an interrupted check continues with what is missing. Verdicts are always valid
(eval.statistics.e_process): the chance of any false one is at most alpha, however many rounds there were.
"""

from __future__ import annotations

import argparse
import math
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from analysis.compare_checkpoints import comparison, comparison_output, graded_checkpoint
from analysis.compare_checkpoints.comparison import MARGIN_POINTS, BenchmarkResult, Comparison
from analysis.compare_checkpoints.graded_checkpoint import GradedCheckpoint
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from analysis.reference import in_order
from contracts import paths, provenance, steps
from eval import commands, statistics
from eval.statistics import e_process, significance
from system import durable
from system.errors import UserError

SIDES = ("baseline", "checkpoint")
TEST = "betting e-process over rounds of sampling"


@dataclass(frozen=True)
class Rules:
    """How rounds are judged.

    Attributes:
        most: completions per problem after which no more are sampled.
        alpha: chance of any false verdict, whenever one stops.
        margin: a loss up to this fraction is not called worse.
        stored: whether samples that there are were looked at, instead of sampled for this.
    """

    most: int
    alpha: float = significance.ALPHA
    margin: float = MARGIN_POINTS / 100
    stored: bool = False

    @property
    def rounds(self) -> list[int]:
        """Completions per problem after each round."""
        return e_process.rounds_up_to(self.most)


def judge_benchmark(name: str, answers: PairedAnswers, rules: Rules) -> BenchmarkResult:
    """One benchmark after the rounds that its answers hold, not yet corrected.

    Args:
        name: of the benchmark.
        answers: its answers, their repeats in the order in which they were sampled.
        rules: of the rounds.
    """
    looks = [answers.first_repeats(count) for count in rules.rounds if count <= answers.repeats]
    lowest = [look.lowest_counts / look.repeats for look in looks]
    highest = [look.highest_counts / look.repeats for look in looks]
    observed = [look.counts / look.repeats for look in looks]
    planned, (n, k) = len(rules.rounds), answers.first.shape
    return BenchmarkResult(
        name, "cannot tell", n, (k, k), statistics.avg_at_k(answers.first), statistics.avg_at_k(answers.second),
        e_process.interval(observed, planned),
        e_process.p_value(lowest, highest, planned, rules.margin, float(answers.first.mean())),
        test=TEST, gained=int((answers.counts > 0).sum()), lost=int((answers.counts < 0).sum()),
        ungradable=answers.ungradable, bounds=answers.bounds,
        margin_excluded=_excludes_loss(lowest, planned, rules) if rules.margin else None,
    )  # fmt: skip


def _excludes_loss(lowest: Sequence[e_process.Floats], planned: int, rules: Rules) -> bool:
    bets = [e_process.bounded(differences, -rules.margin, above=True) for differences in lowest]
    return e_process.over_rounds(bets, planned) >= math.log(1 / rules.alpha)


def compare(
    checkpoint: GradedCheckpoint,
    baseline: GradedCheckpoint,
    names: Collection[str],
    rules: Rules,
    accepted: Collection[str] = (),
    ungradable: float = graded_checkpoint.UNGRADABLE,
) -> Comparison:
    """The comparison after the rounds so far; Holm's correction is over the benchmarks.

    Args:
        checkpoint: the new one.
        baseline: the one to compare it with.
        names: the benchmarks.
        rules: of the rounds.
        accepted: what may differ, of graded_checkpoint.ACCEPTABLE.
        ungradable: largest share of ungradable completions on a side.
    """
    checkpoint, baseline = graded_checkpoint.on_shared_problems((checkpoint, baseline), accepted)
    lines = []
    for name in in_order(names):
        if reasons := graded_checkpoint.obstacles(checkpoint, baseline, name, accepted, ungradable):
            lines.append(BenchmarkResult(name, "not comparable", reasons=tuple(reasons)))
        else:
            answers = PairedAnswers.read(_first_repeats((baseline.tables[name], checkpoint.tables[name]), rules))
            lines.append(judge_benchmark(name, answers, rules))
    lines = comparison.with_verdicts(lines, rules.alpha)
    compared = [line.benchmark for line in lines if line.difference]
    notes = graded_checkpoint.conditions(checkpoint, compared)
    notes += [*baseline.note_of_quantisation(), *checkpoint.note_of_quantisation()]
    notes += graded_checkpoint.unrecorded(checkpoint, baseline, compared)
    notes += graded_checkpoint.notes_of_accepted(checkpoint, baseline, compared, accepted)
    used = sum(line.n_problems * (line.repeats[0] or 0) for line in lines)
    planned = sum(line.n_problems * rules.most for line in lines)
    if rules.stored:
        rounds = ", ".join(map(str, rules.rounds))
        notes.append(
            f"looks after {rounds} completions per problem, as far as they are stored: intervals and p-values hold "
            "whenever one stops, if these numbers were fixed before the first look"
        )
    elif planned:
        notes.append(
            f"sampled in rounds until clear: {used:,} completions a side, of {planned:,} with {rules.most} per problem "
            f"({100 * (1 - used / planned):.0f} % saved); intervals and p-values hold whenever one stops"
        )
    if same := graded_checkpoint.with_same_completions(checkpoint, baseline, compared):
        notes.append(f"both sides have the same completions on {', '.join(same)}: the same model, or a copy of it")
    verdict = comparison.overall_verdict(lines)
    return Comparison(
        checkpoint.name, baseline.name, True, rules.alpha, rules.margin, verdict, tuple(lines), notes=tuple(notes),
        always_valid=True,
    )  # fmt: skip


def _first_repeats(tables: tuple[pd.DataFrame, pd.DataFrame], rules: Rules) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The repeats of the last round that both sides have whole, the first that were sampled."""
    stored = min(map(graded_checkpoint.repeats, tables))
    fewest = max(count for count in rules.rounds if count <= stored)  # 1 is always a round
    first, second = (table[table.groupby("problem_id").cumcount() < fewest] for table in tables)
    return first, second


def undecided_benchmarks(result: Comparison) -> list[str]:
    """The benchmarks that another round could decide; none once the whole verdict is clear."""
    if result.verdict in ("worse", "not comparable"):
        return []
    return [line.benchmark for line in result.lines if line.verdict == "cannot tell"]


def _stored_repeats(folder: Path, name: str) -> int:
    """Completions per problem that there are already, as after an interruption."""
    return int(provenance.read(paths.table(folder / "samples", 0, name)).get("repeats", 0))


def _sample_side(arguments: argparse.Namespace, side: str, repeats: Mapping[str, int]) -> GradedCheckpoint:
    """Generate and grade what is missing of one side, and read the first completions of each problem.

    Args:
        arguments: of the command line.
        side: one of SIDES.
        repeats: completions per problem of each benchmark.
    """
    folder, samples = arguments.work / side, arguments.work / side / "samples"
    counts = {name: max(count, _stored_repeats(folder, name)) for name, count in repeats.items()}
    generate = [
        commands.generate(
            arguments.python,
            run=f"comparison/{side}/seed-0",
            checkpoints={0: getattr(arguments, side)},
            benchmarks=[name for name in repeats if counts[name] == count],
            data=arguments.data,
            work=folder / "work",
            output=samples,
            sampling=[*arguments.generate, "--set", f"repeats={count}"],
        )
        for count in sorted({*counts.values()})
    ]
    grade = commands.grade(arguments.python, samples=samples, data=arguments.data, output=folder / "graded")
    for command in (*generate, grade):
        if status := subprocess.run(command, check=False).returncode:
            module = command[2]
            raise UserError(
                f"{module} ended with status {status}; the same command continues with what is missing",
                code="command-failed", command=module, status=status,
            )  # fmt: skip
    name = getattr(arguments, f"{side}_name") or str(getattr(arguments, side))
    graded = graded_checkpoint.read(folder / "graded" / steps.folder(0), name)
    first_repeats = {
        benchmark: table[table["repeat"] < repeats[benchmark]].reset_index(drop=True)
        for benchmark, table in graded.tables.items()
        if benchmark in repeats
    }
    return replace(graded, tables=first_repeats)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `sequential`."""
    for side in SIDES:
        parser.add_argument(f"--{side}", type=Path, required=True, metavar="MODEL", help="folder of the model")
        parser.add_argument(f"--{side}-name", help="its name in the output (default: the folder)")
    parser.add_argument("--benchmark", nargs="+", required=True)
    parser.add_argument(
        "--most", type=int, required=True, help="completions per problem after which no more are sampled"
    )
    comparison.add_level_options(parser)
    parser.add_argument("--data", type=Path, required=True, help="folder of the benchmarks' problem tables")
    parser.add_argument("--work", type=Path, required=True, help="folder of samples; survives a failed job")
    parser.add_argument(
        "--output", type=Path, required=True, help="folder for comparison.json, comparison.md and index.html"
    )
    parser.add_argument("--python", required=True, help="of the evaluation environment")
    parser.add_argument(
        "generate", nargs="*", help="after --: what eval.generate is given too, such as --protocol demo"
    )
    parser.set_defaults(run=sample_until_clear)


def sample_until_clear(arguments: argparse.Namespace) -> int:
    """Sample, judge, and go on until clear; write the comparison. Returns its exit status."""
    comparison.check_level_options(arguments)
    if arguments.most < 2:
        raise UserError(
            "sequential sampling needs several completions per problem: --most should be 2 or more",
            code="argument-out-of-range",
        )
    rules = Rules(arguments.most, arguments.alpha, arguments.margin_points / 100)
    undecided, repeats = list(arguments.benchmark), dict.fromkeys(arguments.benchmark, 0)
    for count in rules.rounds:
        repeats |= dict.fromkeys(undecided, count)
        baseline, checkpoint = (_sample_side(arguments, side, repeats) for side in SIDES)
        result = compare(checkpoint, baseline, arguments.benchmark, rules)
        undecided = undecided_benchmarks(result)
        print(f"{count} per problem: {result.verdict}; open: {', '.join(undecided) or 'none'}", flush=True)
        if not undecided:
            break
    durable.make_folder(arguments.output)
    comparison_output.write(
        result, comparison_output.all_changed_problems(result, checkpoint, baseline), arguments.output
    )
    print(comparison_output.terminal(result))
    return result.exit_status
