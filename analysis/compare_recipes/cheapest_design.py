"""How many training seeds, problems and repeats does a comparison of recipes need, and which choice is cheapest?"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.statistics import recipe_power
from analysis.statistics.recipe_difference import Components, RecipeResult
from eval.statistics.significance import POWER

SEEDS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)
REPEATS = (1, 2, 4, 8, 16, 32, 64)
FACTORS = (1, 2, 4, 8)  # times as many problems of the same kind


@dataclass(frozen=True)
class Design:
    """Runs and samples per side and benchmark, what they find with 80 % power (fraction), and what both sides cost."""

    seeds: int
    problems: int
    repeats: int
    detectable: float
    cost: float


def expected_noise(parts: Components, seeds: int, problems: int, repeats: int) -> recipe_power.Noise:
    """What hides a difference in a design, by these components.

    Args:
        parts: components of variance.
        seeds: training runs a side.
        problems: on which all are evaluated.
        repeats: completions per problem and run.
    """
    rest = parts.seed_problem + parts.sampling / repeats
    of_problems = 2 * parts.recipe_problem / problems
    of_these_seeds = of_problems + 2 * rest / (problems * seeds)
    return recipe_power.Noise((seeds, seeds), parts.seed + rest / problems, of_problems, problems - 1.0, of_these_seeds)


def cheapest(
    parts: Components, problems: int, difference: float, costs: tuple[float, float], alpha: float
) -> Design | None:
    """The cheapest design that finds a difference with 80 % power; None if none up to 64 seeds a side does.

    Args:
        parts: components of variance.
        problems: that there are; two, four and eight times as many are tried as well.
        difference: true difference, a fraction.
        costs: of one training, and of one completion.
        alpha: two-sided level.
    """
    best: Design | None = None
    for seeds, factor, repeats in itertools.product(SEEDS, FACTORS, REPEATS):
        n = factor * problems
        cost = 2 * seeds * (costs[0] + n * repeats * costs[1])
        if best and cost >= best.cost:
            continue
        noise = expected_noise(parts, seeds, n, repeats)
        if recipe_power.power(noise, difference, alpha) >= POWER:
            best = Design(seeds, n, repeats, recipe_power.detectable(noise, alpha), cost)
    return best


def design_lines(
    results: Sequence[RecipeResult],
    problem_counts: Mapping[str, int],
    difference: float,
    costs: tuple[float, float],
    alpha: float,
) -> str:
    """One line per benchmark.

    Args:
        results: of the comparison, with components.
        problem_counts: number of problems by benchmark.
        difference: to find, a fraction.
        costs: of one training, and of one completion.
        alpha: two-sided, over all lines.
    """
    lines = []
    for result in results:
        if result.components is None:
            continue
        problems = problem_counts[result.benchmark]
        design = cheapest(result.components, problems, difference, costs, alpha / len(results))
        if design is None:
            lines.append(f"- {result.benchmark}: more than 64 seeds a side")
            continue
        lines.append(
            f"- {result.benchmark}: {design.seeds} seeds a side, {design.problems:,} problems, {design.repeats} "
            f"repeats; cost {design.cost:,.2f}, finds {100 * design.detectable:.1f} points"
        )
    return "\n".join(lines)
