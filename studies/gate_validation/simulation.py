"""Test the gate on simulated pairs of checkpoints with known true differences, and write the results as tables.

    crosszero study gate_validation simulation --output FILE.md      about 8 minutes on one core

Each problem is solved with probability p, drawn from Beta(1/2, 1/2), so that half of the variance of a sample is
between problems. A better checkpoint solves it with probability p + 2d(1 - p), on average d more. There are two null
hypotheses: the same p, and p changed on each problem (4/5 p + 1/5 of another draw) but not on average.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.compare_checkpoints import paired_answers
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from analysis.pages.table_texts import markdown
from analysis.reference import published_benchmarks
from eval import benchmark
from eval.statistics import significance
from system import durable
from system.command_line import argument_parser
from system.errors import run_command

FAMILY = tuple(sorted(benchmark.size(name) for name in published_benchmarks()))
SIZES = (30, 40, 272, 500, 1319)  # problems
REPEATS = (1, 4, 16)
DIFFERENCES = (0.03, 0.10)
LEVEL = significance.ALPHA / (len(FAMILY) + 1)  # of Holm's first step; the mean is a line of its own
Floats = npt.NDArray[np.float64]


def probabilities(n: int, difference: float, mixed: bool, random: np.random.Generator) -> tuple[Floats, Floats]:
    """The probabilities that baseline and checkpoint solve each problem.

    Args:
        n: number of problems.
        difference: average gain of the checkpoint, a fraction.
        mixed: instead, change each problem but not the average.
        random: generator.
    """
    first = random.beta(0.5, 0.5, n)
    if mixed:
        return first, 0.8 * first + 0.2 * random.beta(0.5, 0.5, n)
    return first, first + 2 * difference * (1 - first)


def answers(n: int, k: int, difference: float, mixed: bool, random: np.random.Generator) -> PairedAnswers:
    """Answers of both checkpoints, each of shape (n, k).

    Args:
        n: number of problems.
        k: repeats of each.
        difference: see `probabilities`.
        mixed: likewise.
        random: generator.
    """
    first, second = (random.random((n, k)) < p[:, None] for p in probabilities(n, difference, mixed, random))
    return PairedAnswers(first, second, np.zeros_like(first), np.zeros_like(first))


def false_verdicts(k: int, mixed: bool, times: int, random: np.random.Generator) -> tuple[float, float]:
    """Shares of comparisons without a true difference where any line, and where the mean, is called better or worse.

    Args:
        k: repeats.
        mixed: see `probabilities`.
        times: comparisons to simulate.
        random: generator.
    """
    hits = np.zeros(2)
    for _ in range(times):
        adjusted = paired_answers.adjusted_p_values([answers(n, k, 0.0, mixed, random) for n in FAMILY])
        hits += [min(adjusted) <= significance.ALPHA, adjusted[-1] <= significance.ALPHA]
    return float(hits[0] / times), float(hits[1] / times)


def predicted_power(n: int, k: int, difference: float) -> float:
    """The power that the formulas of eval.statistics.significance give.

    Args:
        n: number of problems.
        k: repeats of each.
        difference: average gain, a fraction.
    """
    first, second = probabilities(400_000, difference, False, np.random.default_rng(0))
    if k == 1:
        discordant = float(np.mean(first * (1 - second) + second * (1 - first)))
        return significance.mcnemar_power(n, discordant, difference, LEVEL)
    within = float(np.mean(first * (1 - first) + second * (1 - second)))
    return significance.student_power(n, float(np.sqrt(np.var(second - first) + within / k)), difference, LEVEL)


def rows_of_power(times: int, random: np.random.Generator) -> Iterator[dict[str, object]]:
    """Simulated and predicted power for every number of problems and repeats and every difference."""
    for n in SIZES:
        for k in REPEATS:
            row: dict[str, object] = {"problems": n, "repeats": k}
            for difference in DIFFERENCES:
                rates = np.mean(
                    [
                        paired_answers.p_value([answers(n, k, difference, False, random)], 0.0) <= LEVEL
                        for _ in range(times)
                    ]
                )
                row[f"+{100 * difference:g} points: simulated (%)"] = f"{100 * rates:.1f}"
                row[f"+{100 * difference:g}: predicted (%)"] = f"{100 * predicted_power(n, k, difference):.1f}"
            yield row


def page(times: int, seed: int) -> str:
    """The tables as Markdown."""
    random, falses = np.random.default_rng(seed), []
    for k in REPEATS:
        for mixed in (False, True):
            family, mean = false_verdicts(k, mixed, times, random)
            change = "on each problem, none on average" if mixed else "none"
            falses.append(
                {
                    "repeats": k,
                    "true change": change,
                    "any false verdict (%)": f"{100 * family:.1f}",
                    "on the mean (%)": f"{100 * mean:.1f}",
                }
            )
    powers = pd.DataFrame(rows_of_power(times, random))
    error = 100 * 1.96 * np.sqrt(0.05 * 0.95 / times)
    return "\n".join(
        [
            "# The gate on simulated checkpoints",
            "",
            "Made by `crosszero study gate_validation simulation`. Its docstring says how the pairs are drawn.",
            "",
            f"Comparisons with a false verdict on any of six benchmarks ({', '.join(map(str, FAMILY))} problems) or "
            f"their mean. At most 5 % are allowed. {times:,} comparisons per row, so at 5 % the margin of error is "
            f"±{error:.1f}.",
            "",
            markdown(pd.DataFrame(falses)),
            f"Power on one benchmark at the level of Holm's first step ({LEVEL:.4f}, two-sided), with {times:,} pairs "
            "per cell. The prediction is that of McNemar's test for one repeat, of a t test for more: the bounds for"
            " skewed changes cost the difference on few problems.",
            "",
            markdown(powers),
        ]
    )


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    durable.write_text(arguments.output, page(arguments.times, arguments.seed))


if __name__ == "__main__":
    run_command(main)
