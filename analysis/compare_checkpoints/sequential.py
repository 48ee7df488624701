"""`python -m analysis.compare_checkpoints sequential`: sample both models in rounds until the verdict is clear.

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

from analysis.compare_checkpoints import comparison, comparison_output, graded_checkpoint
from analysis.compare_checkpoints.comparison import BenchmarkResult, GateResult
from analysis.compare_checkpoints.graded_checkpoint import GradedCheckpoint
from analysis.compare_checkpoints.paired_answers import Answers
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
    """How rounds are judged: most completions per problem, level of the family, and the margin of a loss."""

    most: int
    alpha: float = significance.ALPHA
    margin: float = 0.0

    @property
    def rounds(self) -> list[int]:
        """Completions per problem after each round."""
        return e_process.rounds_up_to(self.most)


def _up_to(part: Answers, repeats: int) -> Answers:
    """The answers of the first repeats."""
    return Answers(
        *(side[:, :repeats] for side in (part.first, part.second, part.first_ungradable, part.second_ungradable))
    )


def judge(name: str, part: Answers, rules: Rules) -> BenchmarkResult:
    """One benchmark after the rounds that its answers hold, not yet corrected.

    Args:
        name: of the benchmark.
        part: its answers, their repeats in the order in which they were drawn.
        rules: of the rounds.
    """
    looks = [_up_to(part, count) for count in rules.rounds if count <= part.repeats]
    planned = len(rules.rounds)
    least, most, shown = (
        [counts / look.repeats for look, counts in zip(looks, of, strict=True)]
        for of in ([look.least for look in looks], [look.most for look in looks], [look.counts for look in looks])
    )
    n, k = part.first.shape
    return BenchmarkResult(
        name, "cannot tell", n, (k, k), statistics.avg_at_k(part.first), statistics.avg_at_k(part.second),
        e_process.interval(shown, planned), e_process.p_value(least, most, planned, rules.margin),
        test=TEST, gained=int((part.counts > 0).sum()), lost=int((part.counts < 0).sum()),
        ungradable=part.ungradable, bounds=(float(part.least.mean()) / k, float(part.most.mean()) / k),
        margin_excluded=_excludes_loss(least, planned, rules) if rules.margin else None,
    )  # fmt: skip


def _excludes_loss(least: Sequence[e_process.Floats], planned: int, rules: Rules) -> bool:
    won = [e_process.bounded(one, -rules.margin, above=True) for one in least]
    return e_process.over_rounds(won, planned) >= math.log(1 / rules.alpha)


def result(
    checkpoint: GradedCheckpoint, baseline: GradedCheckpoint, names: Collection[str], rules: Rules,
    accepted: Collection[str] = (),
) -> GateResult:  # fmt: skip
    """The comparison after the rounds so far; Holm's correction is over the benchmarks.

    Args:
        checkpoint: the new one.
        baseline: the one to compare it with.
        names: the benchmarks.
        rules: of the rounds.
        accepted: what may differ, of inputs.ACCEPTABLE.
    """
    lines = []
    for name in in_order(names):
        if reasons := graded_checkpoint.obstacles(checkpoint, baseline, name, accepted):
            lines.append(BenchmarkResult(name, "not comparable", reasons=tuple(reasons)))
        else:
            lines.append(judge(name, Answers.read((baseline.tables[name], checkpoint.tables[name])), rules))
    lines = comparison.decide(lines, rules.alpha)
    used = sum(line.n_problems * (line.repeats[0] or 0) for line in lines)
    fixed = sum(line.n_problems * rules.most for line in lines)
    notes = graded_checkpoint.unknown(checkpoint, baseline, [line.benchmark for line in lines if line.difference])
    if fixed:
        notes.append(
            f"sampled in rounds until clear: {used:,} completions a side, of {fixed:,} with {rules.most} per problem "
            f"({100 * (1 - used / fixed):.0f} % saved); intervals and p-values hold whenever one stops"
        )
    able = [line.benchmark for line in lines if line.difference]
    if same := [
        name for name in able if graded_checkpoint.same_completions(checkpoint.tables[name], baseline.tables[name])
    ]:
        notes.append(f"both sides have the same completions on {', '.join(same)}: the same model, or a copy of it")
    verdict = comparison.overall_verdict(lines)
    return GateResult(
        checkpoint.name, baseline.name, True, rules.alpha, rules.margin, verdict, tuple(lines), notes=tuple(notes)
    )


def still_open(found: GateResult) -> list[str]:
    """The benchmarks that another round could decide; none once the whole verdict is clear."""
    if found.verdict in ("worse", "not comparable"):
        return []
    return [line.benchmark for line in found.lines if line.verdict == "cannot tell"]


def _stored(folder: Path, name: str) -> int:
    """Completions per problem that there are already, as after an interruption."""
    return int(provenance.read(paths.table(folder / "samples", 0, name)).get("repeats", 0))


def _sample(arguments: argparse.Namespace, side: str, drawn: Mapping[str, int]) -> GradedCheckpoint:
    """Generate and grade what is missing of one side, and read the first completions of each problem.

    Args:
        arguments: of the command line.
        side: one of SIDES.
        drawn: completions per problem of each benchmark.
    """
    folder, samples = arguments.work / side, arguments.work / side / "samples"
    counts = {name: max(count, _stored(folder, name)) for name, count in drawn.items()}
    generate = [
        commands.generate(
            arguments.python,
            run=f"check/{side}/seed-0",
            checkpoints={0: getattr(arguments, side)},
            benchmarks=[name for name in drawn if counts[name] == count],
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
            raise UserError(f"{module} ended with status {status}; the same command continues with what is missing")
    name = getattr(arguments, f"{side}_name") or str(getattr(arguments, side))
    found = graded_checkpoint.read(folder / "graded" / steps.folder(0), name)
    first = {
        benchmark: table[table["repeat"] < drawn[benchmark]].reset_index(drop=True)
        for benchmark, table in found.tables.items()
        if benchmark in drawn
    }
    return replace(found, tables=first)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `sequential`."""
    for side in SIDES:
        parser.add_argument(f"--{side}", type=Path, required=True, metavar="MODEL", help="folder of the model")
        parser.add_argument(f"--{side}-name", help="its name in the output (default: the folder)")
    parser.add_argument("--benchmark", nargs="+", required=True)
    parser.add_argument("--most", type=int, required=True, help="completions per problem after which no more are drawn")
    parser.add_argument("--alpha", type=float, default=significance.ALPHA, help="chance of any false verdict")
    parser.add_argument(
        "--margin", type=float, default=0.0, help="a loss of up to this many points is not called worse"
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the benchmarks' problem tables")
    parser.add_argument("--work", type=Path, required=True, help="folder of samples; survives a failed job")
    parser.add_argument("--output", type=Path, required=True, help="folder for check.json, check.md and index.html")
    parser.add_argument("--python", required=True, help="of the evaluation environment")
    parser.add_argument(
        "generate", nargs="*", help="after --: what eval.generate is given too, such as --protocol demo"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Sample, judge, and go on until clear; write the comparison. Returns its exit status."""
    if arguments.most < 2:
        raise UserError("sequential sampling draws several completions per problem: --most should be 2 or more")
    rules = Rules(arguments.most, arguments.alpha, arguments.margin / 100)
    open_ones, drawn = list(arguments.benchmark), dict.fromkeys(arguments.benchmark, 0)
    for repeats in rules.rounds:
        drawn |= dict.fromkeys(open_ones, repeats)
        baseline, checkpoint = (_sample(arguments, side, drawn) for side in SIDES)
        found = result(checkpoint, baseline, arguments.benchmark, rules)
        open_ones = still_open(found)
        print(f"{repeats} per problem: {found.verdict}; open: {', '.join(open_ones) or 'none'}", flush=True)
        if not open_ones:
            break
    compared: Mapping[str, list[comparison_output.ChangedProblem]] = {
        line.benchmark: comparison_output.changed_problems(checkpoint, baseline, line.benchmark)
        for line in found.lines if line.difference
    }  # fmt: skip
    durable.make_folder(arguments.output)
    comparison_output.write(found, dict(compared), arguments.output)
    print(comparison_output.terminal(found))
    return found.exit_status
