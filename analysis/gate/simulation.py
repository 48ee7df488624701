"""Does the gate keep its promises? Simulated pairs of checkpoints with known true differences, as a page of tables.

    python -m analysis.gate.simulation --output docs/gate_simulation.md      about 4 minutes on one core

Each problem has a chance p of being solved, drawn from Beta(1/2, 1/2): half of the variance of a sample is between
problems. A better checkpoint solves it with p + 2d(1 - p), on average d more. Two nulls: the same p, and p changed
problem by problem (4/5 p + 1/5 of another draw) with no change on average.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from analysis.table_export import markdown
from contracts.errors import run_command
from eval import significance

FAMILY = (30, 40, 272, 500, 675, 1319)  # AIME24, AMC23, Minerva, MATH500, OlympiadBench, GSM8K
SIZES = (30, 40, 272, 500, 1319)
REPEATS = (1, 4, 16)
DIFFERENCES = (0.03, 0.10)
LEVEL = significance.ALPHA / (len(FAMILY) + 1)  # Holm's first step, with the mean as a seventh line
Floats = npt.NDArray[np.float64]


def chances(n: int, difference: float, mixed: bool, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Chances of solving n problems, of the baseline and of the checkpoint."""
    first = random.beta(0.5, 0.5, n)
    if mixed:
        return first, 0.8 * first + 0.2 * random.beta(0.5, 0.5, n)
    return first, first + 2 * difference * (1 - first)


def counts(n: int, k: int, difference: float, mixed: bool, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Right answers of k repeats of the checkpoint less those of the baseline, for each of n problems."""
    first, second = chances(n, difference, mixed, random)
    return random.binomial(k, second) - random.binomial(k, first)


def false_verdicts(k: int, mixed: bool, times: int, random: np.random.Generator) -> tuple[float, float]:
    """Share of families without a true difference in which any line is called better or worse; and its mean alone."""
    hits = np.zeros(2)
    for _ in range(times):
        parts = [counts(n, k, 0.0, mixed, random) for n in FAMILY]
        p_values = [significance.permutation(part) for part in parts]
        p_values.append(
            significance.permutation_of_mean([part / k for part in parts], 4000, int(random.integers(2**31)))
        )
        adjusted = significance.holm(p_values)
        hits += [min(adjusted) <= significance.ALPHA, adjusted[-1] <= significance.ALPHA]
    return float(hits[0] / times), float(hits[1] / times)


def predicted_power(n: int, k: int, difference: float) -> float:
    """The power that the formulas give for these chances."""
    first, second = chances(400_000, difference, False, np.random.default_rng(0))
    if k == 1:
        discordant = float(np.mean(first * (1 - second) + second * (1 - first)))
        return significance.mcnemar_power(n, discordant, difference, LEVEL)
    within = float(np.mean(first * (1 - first) + second * (1 - second)))
    return significance.student_power(n, float(np.sqrt(np.var(second - first) + within / k)), difference, LEVEL)


def rows_of_power(times: int, random: np.random.Generator) -> Iterator[dict[str, object]]:
    """Power as simulated and as predicted, for every size, number of repeats and difference."""
    for n in SIZES:
        for k in REPEATS:
            row: dict[str, object] = {"problems": n, "repeats": k}
            for difference in DIFFERENCES:
                found = np.mean(
                    [significance.permutation(counts(n, k, difference, False, random)) <= LEVEL for _ in range(times)]
                )
                row[f"+{100 * difference:g} points: simulated (%)"] = f"{100 * found:.1f}"
                row[f"+{100 * difference:g}: predicted (%)"] = f"{100 * predicted_power(n, k, difference):.1f}"
            yield row


def page(times: int, seed: int) -> str:
    """The tables as Markdown."""
    import pandas as pd

    random, falses = np.random.default_rng(seed), []
    for k in REPEATS:
        for mixed in (False, True):
            family, mean = false_verdicts(k, mixed, times, random)
            change = "problem by problem, none on average" if mixed else "none"
            falses.append(
                {
                    "repeats": k,
                    "true change": change,
                    "any false verdict (%)": f"{100 * family:.1f}",
                    "of them, on the mean (%)": f"{100 * mean:.1f}",
                }
            )
    powers = pd.DataFrame(rows_of_power(times, random))
    error = 100 * 1.96 * np.sqrt(0.05 * 0.95 / times)
    return "\n".join(
        [
            "# The gate on simulated checkpoints",
            "",
            "Made by `python -m analysis.gate.simulation`; how the pairs are drawn stands at the head of that file.",
            "",
            f"False verdicts over the family of six benchmarks ({', '.join(map(str, FAMILY))} problems) and their "
            f"mean: at most 5 % are promised. {times:,} families per row; at 5 %, ±{error:.1f} is chance.",
            "",
            markdown(pd.DataFrame(falses)),
            f"Power on one benchmark at the level of Holm's first step ({LEVEL:.4f}, two-sided), {times:,} pairs per "
            "cell. Predicted: exactly for one repeat, else by the noncentral t distribution.",
            "",
            markdown(powers),
        ]
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.output.write_text(page(arguments.times, arguments.seed), encoding="utf-8")


if __name__ == "__main__":
    run_command(main)
