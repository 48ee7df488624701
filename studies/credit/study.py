"""Does a critic make reasoning right? PPO, GRPO and GRPO with a reward for steps, over seeds: `snakemake study_credit`.

    crosszero study credit study --results results/demo --output FOLDER      # from stored results; seconds

KotoHanon's maze notes (results/reference/claims.yaml) see right answers with wrong reasoning under GRPO, right
reasoning under PPO, and explain it: without a critic no credit is assigned to steps. Here four runs differ in that
alone, and a program checks every step. FOLDER gets the tables `credit` (each run) and `credit_pairs` (run against
run), and credit.md, which is what is printed.

The verdict, by a rule that was fixed before any of these trainings. Measured is the share of right answers, among those
with a step to check, whose reasoning is all right, at the last checkpoints:

    supported       PPO is above GRPO and above GRPO without std, each beyond noise (both tests of `snakemake
                    compare_recipes`, with Holm's correction over all pairs)
    contradicted    GRPO is above PPO beyond noise, or the interval of PPO less GRPO ends below SAME
    cannot be told  otherwise
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis import comparability
from analysis.claims.verdicts import CONTRADICTED, SUPPORTED
from analysis.load_results import load_results
from analysis.measures import reasoning
from analysis.pages import table_texts
from analysis.pages.table_texts import Table, interval_columns, interval_text, markdown, percent, points
from analysis.results import RunResults
from analysis.statistics import recipe_difference
from contracts import seeds
from eval.statistics import Estimate, significance
from studies.credit.runs import CRITIC, FEWEST, GRPO, NO_STD, PROCESS, RUNS
from system import durable
from system.command_line import argument_parser
from system.errors import UserError, run_command

PAIRS = ((GRPO, CRITIC), (NO_STD, CRITIC), (GRPO, NO_STD), (GRPO, PROCESS))  # the second less the first
SAME = 0.03  # a smaller gain counts as none, as in results/reference/claims.yaml
CANNOT_BE_TOLD = "cannot be told"
ACCURACY, RIGHT_REASONS = "accuracy", "right_reasons"
MEASURES = {ACCURACY: "right answers", RIGHT_REASONS: "right reasoning among right answers"}
BASE = "base model"
Floats = npt.NDArray[np.float64]
Values = dict[str, list[Floats]]  # per benchmark, the values of each training, of shape (problems, 1)


class Pair(NamedTuple):
    """One run less another in one measure; `verdict` is about training seeds and problems like these."""

    measure: str
    first: str
    second: str
    difference: Estimate
    detectable: float
    p_adjusted: float
    verdict: str


@dataclass(frozen=True)
class Variant:
    """One of the compared runs at one checkpoint: its values per measure, and the share of lines that were checked."""

    name: str
    trainings: int
    values: dict[str, Values]
    checkable: float

    def mean(self, measure: str) -> Estimate:
        """The mean over trainings and benchmarks, as a fraction, with its interval for new seeds and new problems."""
        by_benchmark = self.values[measure].values()
        value, low, high = recipe_difference.mean_over_seeds([np.concatenate(runs, axis=1).T for runs in by_benchmark])
        return Estimate(value, max(0.0, low), min(1.0, high))


def right_reasons(step_counts: pd.DataFrame, problems: Sequence[str]) -> Floats:
    """The share of right answers whose reasoning is right, as one value per problem with that share as their mean.

    The values are those of a ratio, linearised (Cochran 1977, Sampling Techniques, equation 6.13): their spread over
    problems gives its variance, as in eval.statistics.ratio. Single values may lie below 0 or above 1.

    Args:
        step_counts: as analysis.measures.reasoning.checked returns.
        problems: of the benchmark, in their order.

    Returns:
        Values of shape (problems, 1).

    Raises:
        UserError: no right answer has a step that can be checked.
    """
    by_problem = step_counts.assign(
        right=step_counts["kind"].eq("right_right"), answers=step_counts["kind"].isin(["right_right", "right_wrong"])
    ).groupby("problem_id")[["right", "answers"]]
    counts = by_problem.sum().reindex(list(problems), fill_value=0).astype(float)
    answers = counts["answers"].to_numpy()
    if not answers.sum():
        raise UserError(
            "no right answer has a step that can be checked, so nothing can be said of its reasoning",
            code="no-checkable-step",
        )
    share = counts["right"].sum() / answers.sum()
    linear: Floats = share + (counts["right"].to_numpy() - share * answers) / answers.mean()
    return linear[:, None]


def variant(name: str, runs: Sequence[RunResults], base: bool = False) -> Variant:
    """What is measured of one run's trainings.

    Args:
        name: what the table calls it.
        runs: its trainings, one per seed.
        base: at the first checkpoint, else at the last.

    Raises:
        UserError: a benchmark's reasoning cannot be checked.
    """
    values: dict[str, Values] = {measure: {} for measure in MEASURES}
    checked_lines = np.zeros(2)
    for benchmark in runs[0].benchmarks:
        for run in runs:
            step = run.steps[0] if base else run.last
            samples = run.samples(step, benchmark)
            step_counts = reasoning.checked(samples, run.problem_rows.get(benchmark, {}), most=len(samples))
            if step_counts is None:
                raise UserError(
                    f"{run.name}: the reasoning on {benchmark} cannot be checked: its task checks no steps, or the "
                    "problems that were graded are not stored beside the results",
                    code="no-checkable-step",
                )
            try:
                reasons = right_reasons(step_counts, run.problems(benchmark))
            except UserError as error:
                raise error.within(f"{run.name}, step {step} on {benchmark}") from None
            correct = run.correct(step, benchmark).mean(axis=1, keepdims=True)
            values[ACCURACY].setdefault(benchmark, []).append(correct)
            values[RIGHT_REASONS].setdefault(benchmark, []).append(reasons)
            checked_lines += step_counts[["checkable", "lines"]].sum().to_numpy()
    return Variant(name, len(runs), values, float(checked_lines[0] / max(checked_lines[1], 1)))


def pairs(variants: Mapping[str, Variant]) -> list[Pair]:
    """Each of PAIRS in each measure, with Holm's correction over the pairs of a measure."""
    compared = []
    for measure in MEASURES:
        sides = [[variants[name].values[measure] for name in pair] for pair in PAIRS]
        lines = [recipe_difference.compare(first, second)[-1] for first, second in sides]
        adjusted = significance.holm([line.p_value for line in lines])
        for (first, second), line, p in zip(PAIRS, lines, adjusted, strict=True):
            wider = max((line.welch.difference, line.crossed.difference), key=lambda one: one.high - one.low)
            above = wider.value > 0
            verdict = CANNOT_BE_TOLD if p > significance.ALPHA else f"{second if above else first} is above"
            compared.append(Pair(measure, first, second, wider, line.detectable, p, verdict))
    return compared


def verdict(pair_list: Sequence[Pair]) -> str:
    """The verdict on the explanation, by the rule at the head of this file."""
    by_names = {(pair.first, pair.second): pair for pair in pair_list if pair.measure == RIGHT_REASONS}
    against, without_std = by_names[GRPO, CRITIC], by_names[NO_STD, CRITIC]
    if against.verdict == without_std.verdict == f"{CRITIC} is above":
        return SUPPORTED
    return CONTRADICTED if against.verdict == f"{GRPO} is above" or against.difference.high < SAME else CANNOT_BE_TOLD


def sentences(variants: Mapping[str, Variant], pair_list: Sequence[Pair]) -> list[str]:
    """What the study shows: the verdict with the numbers that decide it, and whether the measure can move at all."""
    by_names = {(pair.first, pair.second): pair for pair in pair_list if pair.measure == RIGHT_REASONS}
    grpo = variants[GRPO].mean(RIGHT_REASONS)
    wrong = Estimate(1 - grpo.value, 1 - grpo.high, 1 - grpo.low)
    against, process = by_names[GRPO, CRITIC], by_names[GRPO, PROCESS]
    decided = verdict(pair_list)
    said = decided if decided == CANNOT_BE_TOLD else f"is {decided}"
    control = {
        f"{PROCESS} is above": "A reward for right steps raises this share, so credit for steps matters here",
        f"{GRPO} is above": "A reward for right steps lowers this share",
    }.get(process.verdict, "Not even a reward for right steps is seen to raise this share")
    return [
        f"That PPO's critic makes the reasoning right, where GRPO rewards wrong reasoning, {said} by these trainings: "
        f"of the right answers, PPO less GRPO has {interval_text(against.difference, points)} points more with right "
        f"reasoning; a difference of {100 * against.detectable:.1f} points would be found in 80 % of such studies.",
        f"Of GRPO's right answers, {interval_text(wrong, percent)} % follow from wrong reasoning.",
        f"{control}: {interval_text(process.difference, points)} points against GRPO alone.",
    ]


def runs_table(variants: Mapping[str, Variant]) -> Table:
    """A row for each run: its trainings, right answers, and right reasoning among them."""
    data, display_rows = [], []
    for name, one in variants.items():
        means = {measure: one.mean(measure) for measure in MEASURES}
        data.append(
            {
                "variant": name, "run": RUNS.get(name, RUNS[GRPO]), "trainings": one.trainings,
                **interval_columns(means), "checkable": one.checkable,
            }
        )  # fmt: skip
        display_rows.append(
            {
                "trained with": name,
                "trainings": str(one.trainings),
                **{f"{label} (%)": interval_text(means[measure], percent) for measure, label in MEASURES.items()},
                "lines checkable (%)": percent(one.checkable),
            }
        )
    return Table("credit", pd.DataFrame(data), pd.DataFrame(display_rows))


def pairs_table(pair_list: Sequence[Pair]) -> Table:
    """A row for each pair and measure."""
    data = [{**pair._asdict(), **interval_columns({"difference": pair.difference})} for pair in pair_list]
    display = [
        {
            "measure": MEASURES[pair.measure],
            "compared": f"{pair.second} less {pair.first}",
            "points": interval_text(pair.difference, points),
            "detectable": f"±{100 * pair.detectable:.1f}",
            "p (Holm)": f"{pair.p_adjusted:.4f}",
            "verdict": pair.verdict,
        }
        for pair in pair_list
    ]
    return Table("credit_pairs", pd.DataFrame(data), pd.DataFrame(display))


def stored(results: Path, chosen: Sequence[int] = ()) -> dict[str, list[RunResults]]:
    """The stored trainings of each run.

    Args:
        results: the results of one scale.
        chosen: training seeds; by default all that are stored.

    Raises:
        UserError: a run has fewer than two, or was not measured like the others.
    """
    stored_runs: dict[str, list[RunResults]] = {}
    for name, run in RUNS.items():
        ids = [seeds.run_id(run, seed) for seed in chosen] or [
            f"{run}/{file.parent.name}" for file in sorted((results / "runs" / run).glob("seed-*/scores.parquet"))
        ]
        if len(ids) < FEWEST:
            raise UserError(
                f"the study needs {FEWEST} trainings or more of {run}, and found {len(ids)} in {results}: train it "
                "with `snakemake study_credit --config seeds='[0,1,2,3,4]'`",
                code="too-few-seeds",
            )
        stored_runs[name] = [load_results(results, run_id) for run_id in ids]
    first, *others = [run for runs in stored_runs.values() for run in runs]
    for other in others:
        if other.benchmarks != first.benchmarks:
            raise UserError(
                f"{other.name} and {first.name} need the same benchmarks, and have {', '.join(other.benchmarks)} and "
                f"{', '.join(first.benchmarks)}; evaluate both again",
                code="other-benchmarks",
            )
        for benchmark in other.benchmarks:
            if reasons := comparability.differences(
                first.result(first.last, benchmark), other.result(other.last, benchmark)
            ):
                raise UserError(
                    f"{other.name} and {first.name} cannot be compared on {benchmark}: {'; '.join(reasons)}; evaluate "
                    "both again",
                    code="not-comparable",
                )
    return stored_runs


def study(trained: Mapping[str, Sequence[RunResults]]) -> tuple[list[Table], str]:
    """The two tables, and the text of credit.md.

    Args:
        trained: the trainings of each of RUNS, by its name there.
    """
    variants = {name: variant(name, runs) for name, runs in trained.items()}
    pair_list = pairs(variants)
    with_base = {BASE: variant(BASE, trained[GRPO], base=True), **variants}
    result_tables = [runs_table(with_base), pairs_table(pair_list)]
    notes = (
        "Last checkpoints; 95 % intervals for new seeds and new problems. Right reasoning: every step that a program "
        "can check is right. Pairs have the wider interval of two tests; a verdict needs both, after Holm's correction."
    )
    text = "\n\n".join(
        [*sentences(variants, pair_list), *(markdown(table.display).rstrip("\n") for table in result_tables), notes]
    )
    return result_tables, f"{text}\n"


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--results", type=Path, required=True, help="the results of one scale, such as results/demo")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--seeds", nargs="+", type=int, default=(), help="default: all that are stored")
    arguments = parser.parse_args()
    result_tables, text = study(stored(arguments.results, arguments.seeds))
    for table in result_tables:
        table_texts.write(table, arguments.output)
    durable.write_text(arguments.output / "credit.md", text)
    print(text, end="")


if __name__ == "__main__":
    run_command(main)
