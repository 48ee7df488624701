"""Is recipe B better than recipe A? Several training runs a side, each with a seed of its own.

    crosszero compare-recipes --a A/seed-*/graded --b B/seed-*/graded

Prints the comparison, and how many runs and samples a difference needs. See analysis.statistics.recipe_difference.
Exit status: 0: B is not worse, 1: worse, 2: not comparable, 3: an error.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.compare_checkpoints import exit_status
from analysis.compare_recipes import cheapest_design, pass_at_k_difference, training_cost, training_runs
from analysis.compare_recipes.training_runs import CHOSEN, LAST
from analysis.pages.table_texts import interval_text, markdown, percent, points
from analysis.statistics import recipe_difference
from analysis.statistics.recipe_difference import RecipeResult
from eval.statistics import TIES, Estimate
from eval.statistics.significance import ALPHA
from system import durable
from system.command_line import program_name
from system.errors import UserError

WELCH, CROSSED = "B less A, Welch (points)", "crossed effects (points)"
RULE_TEXTS = {
    LAST: "the last checkpoint of each run ({steps})",
    CHOSEN: "on each half of the problems, the checkpoint that is best on the other half",
}


def parse_arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, or this one in its place."""
    parser = exit_status.Parser(
        prog=program_name(), description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for side in "ab":
        parser.add_argument(
            f"--{side}", nargs="+", type=Path, required=True, metavar="GRADED",
            help="graded samples of its training runs, one folder per seed: …/seed-0/graded …/seed-1/graded",
        )  # fmt: skip
    parser.add_argument("--benchmark", nargs="+", help="default: all")
    parser.add_argument(
        "--rule", choices=training_runs.RULES, default=LAST,
        help="which checkpoint: the last, or for each half of the problems the best on the other half",
    )  # fmt: skip
    parser.add_argument(
        "--paired-seeds", action="store_true",
        help="compare the runs of each seed that both sides share with each other; decide this before looking",
    )  # fmt: skip
    parser.add_argument("--ties", choices=TIES, help="of maj@k (default: as the samples' source has them)")
    parser.add_argument("--accept", nargs="+", choices=training_runs.ACCEPTABLE, default=[], help="what may differ")
    parser.add_argument("--alpha", type=float, default=ALPHA)
    parser.add_argument("--difference", type=float, default=2.0, metavar="POINTS", help="to plan for (default: 2)")
    parser.add_argument(
        "--training-cost", type=float, help="of one training, in any unit (default: the recorded GPU-hours, else 1)"
    )
    parser.add_argument(
        "--sample-cost", type=float, help="of one completion in that unit (default: 0.00001 of a training)"
    )
    parser.add_argument("--output", type=Path, help="folder for recipes.json and recipes.md")
    arguments = parser.parse_args(command_line)
    if not (0 < arguments.alpha < 1 and 0 < arguments.difference <= 100):
        raise UserError(
            "--alpha has to be between 0 and 1, --difference above 0 points, up to 100", code="argument-out-of-range"
        )
    if min(arguments.training_cost or 0, arguments.sample_cost or 0) < 0:
        raise UserError("--training-cost and --sample-cost should not be negative", code="argument-out-of-range")
    return arguments


def difference_frame(results: Sequence[RecipeResult], paired: bool = False) -> pd.DataFrame:
    """The table of the comparison, as texts; with paired seeds there is one test."""
    frame = pd.DataFrame(
        {
            "benchmark": line.benchmark,
            "runs": f"{line.seeds[0]} / {line.seeds[1]}",
            "A (%)": percent(line.means[0]),
            "B (%)": percent(line.means[1]),
            WELCH: interval_text(line.welch.difference, points),
            CROSSED: interval_text(line.crossed.difference, points),
            "df": f"{line.welch.df:.1f} / {line.crossed.df:.1f}",
            "p (Holm)": f"{line.p_adjusted:.4f}",
            "detectable": line.detectable_text,
            "verdict": line.verdict,
        }
        for line in results
    )
    return frame.drop(columns=CROSSED).rename(columns={WELCH: "B less A, paired (points)"}) if paired else frame


def pass_at_k_frame(by_measure: Mapping[str, Sequence[RecipeResult]], paired: bool = False) -> pd.DataFrame:
    """The table of pass@k and maj@k, as texts: each recipe's mean over its runs, and their difference.

    Args:
        by_measure: a line per benchmark, by measure.
        paired: whether seeds are.
    """
    whole = pd.concat(
        [difference_frame(lines, paired).assign(measure=measure) for measure, lines in by_measure.items()]
    )
    columns = [name for name in map(str, whole.columns) if name.endswith(("(%)", "(points)"))]
    return whole[["benchmark", "measure", *columns]].sort_values("benchmark", kind="stable")


def components_frame(results: Sequence[RecipeResult]) -> pd.DataFrame:
    """Standard deviations in points of the parts of which the accuracy on one problem is made, as texts."""
    return pd.DataFrame(
        {"benchmark": line.benchmark}
        | {part.replace("_", " × "): f"{100 * value**0.5:.1f}" for part, value in line.components._asdict().items()}
        for line in results
        if line.components
    )


def report_text(
    arguments: argparse.Namespace,
    results: Sequence[RecipeResult],
    by_measure: Mapping[str, Sequence[RecipeResult]],
    problem_counts: Mapping[str, int],
    steps: str,
    pairing: str,
) -> str:
    """The whole comparison in Markdown.

    Args:
        arguments: of the command line.
        results: a line per benchmark, and of their mean.
        by_measure: likewise for pass@k and maj@k.
        problem_counts: number of problems by benchmark.
        steps: of the runs' last checkpoints, in words.
        pairing: of the seeds, in words.
    """
    parts = [
        markdown(difference_frame(results, arguments.paired_seeds)),
        f"Rule: {RULE_TEXTS[arguments.rule].format(steps=steps)}. "
        "A verdict holds for new seeds and new problems: "
        f"{'the test has' if arguments.paired_seeds else 'both tests have'} to find it, and so has that for these very "
        f"seeds, after Holm's correction at {arguments.alpha:g}. detectable: the true difference found with 80 % power "
        "(none: no possible one is), which counts that few seeds say little of their spread.",
        pairing,
    ]
    if min(seeds for line in results for seeds in line.seeds) == 2:
        parts += ["Two seeds on a side: p-values are tripled, as the spread of two says little; train a third."]
    if by_measure:
        parts += ["\nSeveral samples per problem (95 % intervals, not adjusted, no verdict):\n"]
        parts += [markdown(pass_at_k_frame(by_measure, arguments.paired_seeds))]
    if len(components := components_frame(results)):
        cost = training_cost.recorded([*arguments.a, *arguments.b])
        if arguments.training_cost is not None:
            cost = training_cost.Cost(arguments.training_cost, "as --training-cost counts")
        of_sample = 1e-5 * cost.amount if arguments.sample_cost is None else arguments.sample_cost
        parts += ["\nStandard deviations on one problem, in points:\n", markdown(components)]
        parts += [
            f"Runs and samples that find a difference of {arguments.difference:g} points if these are the true ones, "
            f"{'seeds not paired, ' if arguments.paired_seeds else ''}the cheapest for both sides "
            f"(a training costs {cost.amount:.3g}, a completion {of_sample:.2g}; in {cost.unit}):\n"
        ]
        parts += [
            cheapest_design.design_lines(
                results, problem_counts, arguments.difference / 100, (cost.amount, of_sample), arguments.alpha
            )
        ]
    return "\n".join(filter(None, parts)) + "\n"


def verdict_on_b(results: Sequence[RecipeResult]) -> str:
    """Worse if any line is, else better if any is, else cannot tell."""
    verdicts = {line.verdict for line in results}
    return "worse" if "A is better" in verdicts else "better" if "B is better" in verdicts else "cannot tell"


def write(folder: Path | None, arguments: argparse.Namespace, text: str, **content: Any) -> None:
    """Write recipes.json and recipes.md, if a folder is named."""
    if folder:
        sides = {"a": list(map(str, arguments.a)), "b": list(map(str, arguments.b)), "rule": arguments.rule}
        sides |= {"paired_seeds": arguments.paired_seeds}
        durable.write_text(folder / "recipes.json", json.dumps(sides | content, indent=2) + "\n")
        durable.write_text(folder / "recipes.md", text)
        print((folder / "recipes.md").resolve())


def steps_text(recipes: Sequence[training_runs.GradedRecipe]) -> str:
    """The steps of the last checkpoints of both sides, in words."""
    sides = []
    for title, recipe in zip("AB", recipes, strict=True):
        ends = [str(step) for step in training_runs.last_steps(recipe) if step is not None]
        sides.append(f"{title}: step {', '.join(ends if len(set(ends)) > 1 else ends[:1]) or 'not recorded'}")
    return "; ".join(sides)


def pairing_text(recipes: Sequence[training_runs.GradedRecipe], paired: bool) -> str:
    """Whether seeds are paired, which question that answers, and how alike runs of one seed are; empty if none is.

    Args:
        recipes: both.
        paired: whether runs of one seed are compared with each other.
    """
    numbers = [training_runs.training_seeds(recipe) for recipe in recipes]
    if not all(numbers[0]) or sorted(numbers[0]) != sorted(numbers[1]):
        return ""
    a, b = training_runs.clustered_answers(training_runs.paired_by_seed(recipes))
    alike = recipe_difference.seed_correlation(a, b)
    correlation = "not known" if math.isnan(alike) else f"{alike:+.2f}"
    text = f"correlation of the accuracies of one seed: {correlation} over {len(numbers[0])} seeds"
    if paired:
        return (
            "Seeds are paired: the test is of the differences between trainings of one seed, so luck that a seed gives "
            f"both sides does not count ({text}). It answers the same question, how large the mean difference is over "
            "new seeds, and is valid if pairing was decided before looking at the results."
        )
    return (
        "Seeds are not paired: the test supposes that trainings of one seed are as independent as of two, though both "
        f"sides have the same seeds ({text}). Where they are alike, --paired-seeds finds smaller differences; decide "
        "that before looking."
    )


def run_compare(arguments: argparse.Namespace) -> int:
    """Compare, print and write; returns the exit status."""
    recipes = training_runs.comparable_recipes(
        [arguments.a, arguments.b], arguments.rule, arguments.benchmark, arguments.accept
    )
    paired = arguments.paired_seeds
    if paired:
        recipes = training_runs.paired_by_seed(recipes)
    a, b = training_runs.clustered_answers(recipes)
    by_measure = pass_at_k_difference.compare(recipes[0], recipes[1], arguments.ties, paired)
    results = recipe_difference.compare(a, b, arguments.alpha, paired)
    verdict = verdict_on_b(results)
    status = exit_status.WORSE if verdict == "worse" else exit_status.NOT_WORSE
    problem_counts = {name: len(runs[0]) for name, runs in a.items()}
    text = report_text(
        arguments, results, by_measure, problem_counts, steps_text(recipes), pairing_text(recipes, paired)
    )
    text += f"\nB is compared with A: {verdict}\n"
    print(text, end="")
    passes = {measure: _as_plain_data(lines) for measure, lines in by_measure.items()}
    write(
        arguments.output, arguments, text,
        verdict=verdict, exit_status=status, lines=_as_plain_data(results), passes=passes,
    )  # fmt: skip
    return status


def main(command_line: Sequence[str] | None = None) -> int:
    """Compare, print and write; returns the exit status, also of what cannot be compared."""

    def run() -> int:
        arguments = parse_arguments(command_line)
        try:
            return run_compare(arguments)
        except UserError as error:
            if error.code in exit_status.WITHOUT_VERDICT:
                text = f"B is compared with A: not comparable\n\n{error}\n"
                status = exit_status.NOT_COMPARABLE
                write(arguments.output, arguments, text, verdict="not comparable", exit_status=status, lines=[])
            raise

    return exit_status.of_command(run)


def _as_plain_data(lines: Sequence[RecipeResult]) -> list[dict[str, Any]]:
    return [
        asdict(line, dict_factory=lambda items: {key: _named_fields(value) for key, value in items}) for line in lines
    ]


def _named_fields(value: Any) -> Any:
    if isinstance(value, recipe_difference.Test):
        return {**value._asdict(), "difference": value.difference._asdict()}
    return value._asdict() if isinstance(value, recipe_difference.Components | Estimate) else value


if __name__ == "__main__":
    sys.exit(main())
