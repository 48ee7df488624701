"""Sampling in rounds until the verdict is clear, beside a fixed number of completions, on simulated checkpoints.

    crosszero study sequential_sampling [--times 200] [--most 16]     about a minute on one core

The pairs are those of studies.gate_validation.simulation, on its family of benchmarks. Fixed: the exact permutation
test on all completions, with Holm's correction. Rounds: those of `check`, with the same level for the family. Both have
no line for the mean of the benchmarks here.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.pages.table_texts import markdown
from eval.statistics import e_process, significance
from studies.gate_validation.simulation import FAMILY, probabilities
from system import durable
from system.command_line import argument_parser
from system.errors import run_command

CASES = (("none", 0.0, False), ("on each problem, none on average", 0.0, True),
         ("+3 points", 0.03, False), ("+10 points", 0.10, False), ("+20 points", 0.20, False))  # fmt: skip


class Outcome(NamedTuple):
    """Of one simulated comparison: verdicts of the benchmarks (as signs), and the share of completions drawn."""

    fixed: list[int]
    rounds: list[int]
    used: float


def compare(difference: float, mixed: bool, most: int, random: np.random.Generator) -> Outcome:
    """One comparison of two simulated checkpoints on all benchmarks.

    Args:
        difference: average gain, a fraction.
        mixed: instead, change each problem but not the average.
        most: completions per problem.
        random: generator.
    """
    gaps = []
    for n in FAMILY:
        chances = probabilities(n, difference, mixed, random)
        first, second = (random.random((n, most)) < chance[:, None] for chance in chances)
        gaps.append(second.astype(int) - first.astype(int))
    fixed = _verdicts([significance.permutation(gap.sum(axis=1)) for gap in gaps], gaps)
    planned, verdicts, drawn = e_process.rounds_up_to(most), [0] * len(gaps), [0] * len(gaps)
    for index in range(len(planned)):
        for i, decided in enumerate(verdicts):
            drawn[i] = drawn[i] if decided else planned[index]
        seen = [
            [gap[:, :k].mean(axis=1) for k in planned if k <= count] for gap, count in zip(gaps, drawn, strict=True)
        ]
        p_values = [e_process.p_value(looks, looks, len(planned)) for looks in seen]
        verdicts = _verdicts(p_values, [gap[:, :count] for gap, count in zip(gaps, drawn, strict=True)])
        if -1 in verdicts or 0 not in verdicts:
            break
    used = sum(n * count for n, count in zip(FAMILY, drawn, strict=True)) / (most * sum(FAMILY))
    return Outcome(fixed, verdicts, used)


def _verdicts(p_values: list[float], gaps: list[np.ndarray]) -> list[int]:
    adjusted = significance.holm(p_values)
    return [int(np.sign(gap.mean())) if p <= significance.ALPHA else 0 for p, gap in zip(adjusted, gaps, strict=True)]


def table(times: int, most: int, seed: int) -> pd.DataFrame:
    """A row per true difference: false verdicts, benchmarks called better, and completions drawn.

    Args:
        times: comparisons per row.
        most: completions per problem of the fixed number, and the most of the rounds.
        seed: of the simulation.
    """
    random, rows = np.random.default_rng(seed), []
    for name, difference, mixed in CASES:
        simulated = [compare(difference, mixed, most, random) for _ in range(times)]
        row = {"true difference": name}
        for design, sides in (
            ("fixed", [one.fixed for one in simulated]),
            ("rounds", [one.rounds for one in simulated]),
        ):
            wrong = np.mean([any(v < 0 or (v > 0 and not difference) for v in side) for side in sides])
            row[f"any false verdict, {design} (%)"] = f"{100 * wrong:.1f}"
        for design, sides in (
            ("fixed", [one.fixed for one in simulated]),
            ("rounds", [one.rounds for one in simulated]),
        ):
            right = np.mean([v > 0 for side in sides for v in side]) if difference else np.nan
            row[f"benchmarks called better, {design} (%)"] = f"{100 * right:.0f}" if difference else "–"
        row["completions drawn in rounds (% of fixed)"] = f"{100 * np.mean([one.used for one in simulated]):.0f}"
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--most", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="also write the table there, as Markdown")
    arguments = parser.parse_args()
    text = markdown(table(arguments.times, arguments.most, arguments.seed))
    print(text, end="")
    if arguments.output:
        durable.write_text(arguments.output, text)


if __name__ == "__main__":
    run_command(main)
