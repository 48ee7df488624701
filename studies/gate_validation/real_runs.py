"""Does the gate keep its promise on real trainings? Seeds of one recipe against each other, then against another.

    crosszero study gate_validation real_runs --a A/seed-*/graded --b B/seed-*/graded

Nothing differs between the seeds of A but luck, so every verdict between them is false as a verdict about recipes. The
seeds are split into two halves in every way and compared like recipes, and every two are compared like checkpoints (of
which one may really be better). Power is counted where the truth is known: wrong answers of one half are made right at
random. Against B, the power is that for a difference as large as the one found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.compare_checkpoints import paired_answers
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from analysis.compare_recipes import cheapest_design, training_runs
from analysis.pages.table_texts import markdown, percent, points
from analysis.statistics import recipe_difference, recipe_power
from eval.statistics import Correct, significance
from system.command_line import argument_parser
from system.errors import UserError, run_command

MOST = 200  # splits that a gain is planted in
GAINS = (0.01, 0.02, 0.03, 0.04, 0.06)  # fractions


class Counts(NamedTuple):
    """Comparisons, and those with a verdict on any line."""

    tried: int
    verdicts: int

    def __str__(self) -> str:
        """Such as "3 of 66 (4.5 %)"."""
        return f"{self.verdicts} of {self.tried} ({percent(self.verdicts / self.tried)} %)"


def _of_seeds(runs: training_runs.CorrectAnswers, seeds: Sequence[int]) -> training_runs.CorrectAnswers:
    return {name: [each[i] for i in seeds] for name, each in runs.items()}


def _halves(seeds: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every split into two equal halves, once."""
    for rest in itertools.combinations(range(1, seeds), seeds // 2 - 1):
        first = (0, *rest)
        yield first, tuple(i for i in range(seeds) if i not in first)


def _decides(a: training_runs.CorrectAnswers, b: training_runs.CorrectAnswers) -> bool:
    return any(line.verdict != "cannot tell" for line in recipe_difference.compare(a, b))


def splits(runs: training_runs.CorrectAnswers) -> Counts:
    """All splits of an even number of seeds into halves, compared as recipes.

    Raises:
        UserError: there are fewer than four seeds, or an odd number.
    """
    seeds = len(next(iter(runs.values())))
    if seeds < 4 or seeds % 2:
        raise UserError(
            f"splitting into halves needs an even number of seeds, at least 4, but --a has {seeds}", code="odd-seeds"
        )
    decisions = [_decides(_of_seeds(runs, one), _of_seeds(runs, two)) for one, two in _halves(seeds)]
    return Counts(len(decisions), sum(decisions))


def pairs(places: Sequence[Path]) -> Counts:
    """Every two last checkpoints, compared like checkpoints."""
    last = [training_runs.checkpoints_by_rule(folder, training_runs.LAST)[0] for folder in places]
    lowest = [
        min(
            paired_answers.adjusted_p_values(
                [PairedAnswers.read((one.tables[name], two.tables[name])) for name in one.tables]
            )
        )
        for one, two in itertools.combinations(last, 2)
    ]
    return Counts(len(lowest), sum(p <= significance.ALPHA for p in lowest))


def predicted(line: recipe_difference.RecipeResult, gap: float, seeds: int, shape: tuple[int, int]) -> float:
    """The chance of finding a difference on one benchmark, by the components of variance.

    Args:
        line: with the components.
        gap: the true difference, a fraction.
        seeds: training runs a side.
        shape: problems and completions per problem.

    Raises:
        UserError: there is one completion per problem, which gives no components.
    """
    if line.components is None:
        raise UserError(
            f"a prediction needs two completions per problem or more, but {line.benchmark} has one",
            code="too-few-repeats",
        )
    noise = cheapest_design.expected_noise(line.components, seeds, *shape)
    return recipe_power.power(noise, gap, significance.ALPHA)


def with_gain(runs: Sequence[Correct], gain: float, random: np.random.Generator) -> list[Correct]:
    """The answers of each run after so many wrong ones became right that the accuracy of all rises by `gain`."""
    wrong = 1 - float(np.mean([run.mean() for run in runs]))
    return [run | (random.random(run.shape) < gain / wrong) for run in runs]


def power(runs: training_runs.CorrectAnswers, seed: int) -> pd.DataFrame:
    """Predicted power, on average, beside the share of splits with a verdict, with a known gain planted in one half.

    Args:
        runs: per benchmark, the correct answers of each training of one recipe.
        seed: of the draw of splits, and of the answers that become right.
    """
    random, rows = np.random.default_rng(seed), []
    for name, each in runs.items():
        halves = list(_halves(len(each)))
        chosen = random.choice(len(halves), min(MOST, len(halves)), replace=False)
        for gain in GAINS:
            counts = []
            for one, two in (halves[i] for i in chosen):
                better = with_gain([each[i] for i in two], gain, random)
                (line,) = recipe_difference.compare({name: [each[i] for i in one]}, {name: better})
                counts.append((predicted(line, gain, len(each) // 2, each[0].shape), line.verdict != "cannot tell"))
            rows.append((name, points(gain), *(percent(float(share)) for share in np.mean(counts, axis=0))))
    return pd.DataFrame(rows, columns=["benchmark", "planted (points)", "predicted power (%)", "verdicts (%)"])


def against(a: training_runs.CorrectAnswers, b: training_runs.CorrectAnswers) -> pd.DataFrame:
    """The comparison with another recipe, and the power that it had for a difference as large as the one found."""
    rows = []
    for line in recipe_difference.compare(a, b):
        if line.benchmark in a:
            gap, shape = line.means[1] - line.means[0], a[line.benchmark][0].shape
            chance = percent(predicted(line, gap, min(line.seeds), shape))
            rows.append((line.benchmark, points(gap), f"{line.p_adjusted:.4f}", line.verdict, chance))
    columns = ["benchmark", "B less A (points)", "p (Holm)", "verdict", "predicted power (%)"]
    return pd.DataFrame(rows, columns=columns)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--a", nargs="+", type=Path, required=True, metavar="GRADED", help="an even number of seeds")
    parser.add_argument("--b", nargs="+", type=Path, required=True, metavar="GRADED", help="of another recipe")
    parser.add_argument("--seed", type=int, default=0, help="of the planted gains (default: 0)")
    arguments = parser.parse_args()
    a, b = training_runs.read_correct_answers([arguments.a, arguments.b])
    rows = [
        (name, f"{side}, {len(runs)} seeds", ", ".join(percent(float(run.mean())) for run in runs))
        for side, folders in (("A", a), ("B", b))
        for name, runs in folders.items()
    ]
    print(markdown(pd.DataFrame(rows, columns=["benchmark", "runs", "accuracies (%)"])))
    print(f"- Seeds of A split into halves, compared as recipes: {splits(a)} with a false verdict.")
    print(f"- Two seeds of A compared as checkpoints: {pairs(arguments.a)} with a verdict.\n")
    print(markdown(power(a, arguments.seed)))
    print(markdown(against(a, b)), end="")


if __name__ == "__main__":
    run_command(main)
