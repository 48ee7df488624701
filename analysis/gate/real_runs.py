"""Does the gate keep its promise on real trainings? Seeds of one recipe against each other, then against another.

    python -m analysis.gate.real_runs --a A/seed-*/graded --b B/seed-*/graded

Nothing differs between the seeds of A but luck, so every verdict between them is false as a verdict about recipes. The
seeds are split into two halves in every way and compared like recipes; every two of them are compared like checkpoints
(one may really be better than another, so that share shows what two single trainings say about a recipe: nothing).
Between A and B, the share of verdicts over subsets of their seeds stands beside the power predicted from the components
of variance.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from analysis.gate import recipe_plan, recipe_runs, recipes
from analysis.gate.compare import paired
from analysis.table_export import markdown, percent, points
from contracts.errors import UserError, run_command
from eval import significance

MOST = 500  # subsets that are tried; more are drawn from


class Counts(NamedTuple):
    """Comparisons, and those with a verdict on any line."""

    tried: int
    verdicts: int

    def __str__(self) -> str:
        """Such as "3 of 66 (4.5 %)"."""
        return f"{self.verdicts} of {self.tried} ({percent(self.verdicts / self.tried)} %)"


def _some(seeds: int, size: int, random: np.random.Generator) -> list[tuple[int, ...]]:
    """All subsets of this size, or MOST of them."""
    found = list(itertools.combinations(range(seeds), size))
    chosen = random.choice(len(found), MOST, replace=False) if len(found) > MOST else range(len(found))
    return [found[i] for i in chosen]


def _of(runs: recipe_runs.Runs, seeds: Sequence[int]) -> recipe_runs.Runs:
    return {name: [each[i] for i in seeds] for name, each in runs.items()}


def _halves(seeds: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every split into two equal halves, once."""
    for rest in itertools.combinations(range(1, seeds), seeds // 2 - 1):
        first = (0, *rest)
        yield first, tuple(i for i in range(seeds) if i not in first)


def _decides(a: recipe_runs.Runs, b: recipe_runs.Runs) -> bool:
    return any(line.verdict != "cannot tell" for line in recipes.compare(a, b))


def splits(runs: recipe_runs.Runs) -> Counts:
    """All splits of an even number of seeds into halves, compared as recipes.

    Raises:
        UserError: there are fewer than four seeds, or an odd number.
    """
    seeds = len(next(iter(runs.values())))
    if seeds < 4 or seeds % 2:
        raise UserError(f"splitting into halves needs an even number of seeds, at least 4, but --a has {seeds}")
    found = [_decides(_of(runs, one), _of(runs, two)) for one, two in _halves(seeds)]
    return Counts(len(found), sum(found))


def pairs(places: Sequence[Path]) -> Counts:
    """Every two last checkpoints, compared like checkpoints."""
    last = [recipe_runs.checkpoints(place, recipe_runs.LAST)[0] for place in places]
    results = [paired(two, one) for one, two in itertools.combinations(last, 2)]
    return Counts(len(results), sum(any(line.verdict in ("better", "worse") for line in one.lines) for one in results))


def power(a: recipe_runs.Runs, b: recipe_runs.Runs, seed: int) -> pd.DataFrame:
    """Per benchmark and number of seeds a side, the predicted power and the share of subsets with a verdict.

    Args:
        a: per benchmark the correct answers of each run.
        b: likewise.
        seed: of the draw of subsets.
    """
    random, rows = np.random.default_rng(seed), []
    for name in a:
        (line,) = recipes.compare({name: a[name]}, {name: b[name]})
        if line.components is None:
            raise UserError(f"a prediction needs two completions per problem or more, but {name} has one")
        gap = line.means[1] - line.means[0]
        for size in range(2, min(len(a[name]), len(b[name])) + 1):
            test = recipe_plan.test_of(line.components, size, *a[name][0].shape)
            edge = float(stats.t.ppf(1 - significance.ALPHA / 2, test.df))
            predicted = float(stats.nct.sf(edge, test.df, abs(gap) / test.error))
            subsets = zip(_some(len(a[name]), size, random), itertools.cycle(_some(len(b[name]), size, random)))
            found = [_decides(_of({name: a[name]}, one), _of({name: b[name]}, two)) for one, two in subsets]
            rows.append((name, points(gap), size, percent(predicted), percent(float(np.mean(found))), len(found)))
    columns = ["benchmark", "B less A (points)", "seeds a side", "predicted power (%)", "verdicts (%)", "subsets"]
    return pd.DataFrame(rows, columns=columns)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--a", nargs="+", type=Path, required=True, metavar="GRADED", help="an even number of seeds")
    parser.add_argument("--b", nargs="+", type=Path, required=True, metavar="GRADED", help="of another recipe")
    parser.add_argument("--seed", type=int, default=0, help="of the draw of subsets (default: 0)")
    arguments = parser.parse_args()
    a, b = recipe_runs.read([arguments.a, arguments.b], recipe_runs.LAST, None, [])
    rows = [
        (name, f"{side}, {len(runs)} seeds", ", ".join(percent(float(run.mean())) for run in runs))
        for side, found in (("A", a), ("B", b))
        for name, runs in found.items()
    ]
    print(markdown(pd.DataFrame(rows, columns=["benchmark", "runs", "accuracies (%)"])))
    print(f"- Seeds of A split into halves, compared as recipes: {splits(a)} with a false verdict.")
    print(f"- Two seeds of A compared as checkpoints: {pairs(arguments.a)} with a verdict.\n")
    print(markdown(power(a, b, arguments.seed)), end="")


if __name__ == "__main__":
    run_command(main)
