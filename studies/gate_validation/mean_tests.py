"""Which test of a mean for few problems? False verdicts where changes are skewed, and power for even gains and losses.

    crosszero study gate_validation mean_tests --output FILE.md      about 1 minute

One difference per problem. Without a true mean some problems change by much and the others by little, the other way.
Sign flips of a studentised mean order the samples as sign flips of the mean do, so that the permutation test stands for
both. Johnson's t is corrected for skewness (Johnson 1978, Journal of the American Statistical Association 73:536).
"None of 50 points" is the gate's test up to commit 9dfe0d9: empirical likelihood and the chance that no problem that
changes by 50 points is here, without the noise of the others' mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from analysis.pages.table_texts import markdown
from eval.statistics import significance, skewed_changes, smallest_difference
from system import durable
from system.command_line import argument_parser
from system.errors import run_command

Floats = npt.NDArray[np.float64]
FIRST_STEP = significance.ALPHA / 7  # of Holm's correction over six benchmarks and their mean
SKEWED = (  # problems, repeats, share of the problems, and what they lose
    (30, 64, 0.05, 0.5), (30, 64, 0.075, 0.5), (40, 64, 0.05, 0.5), (30, 64, 0.05, 0.9), (40, 64, 0.05, 0.9),
    (30, 64, 0.075, 0.9), (100, 64, 0.05, 0.9),
)  # fmt: skip
EVEN = ((30, 16, 0.1, FIRST_STEP), (30, 64, 0.05, 0.05), (40, 64, 0.05, 0.05), (100, 16, 0.03, 0.05))


def p_values(gaps: Floats, level: float, k: int) -> dict[str, Floats]:
    """Of many samples, by test.

    Args:
        gaps: differences of shape (samples, problems).
        level: accuracy of the baseline.
        k: repeats.
    """
    n, mean = gaps.shape[1], gaps.mean(axis=1)
    error = gaps.std(axis=1, ddof=1) / np.sqrt(n) + 1e-12
    third = ((gaps - mean[:, None]) ** 3).mean(axis=1) / (error**2 * n)
    johnson = (mean + third / (6 * n) + third * mean**2 / (3 * error**2 * n)) / error
    permutation = smallest_difference._permutation([gaps], 1 / k)
    likelihood = np.maximum(permutation, skewed_changes.bounds([gaps], 1.0).likelihood)
    none_of_50 = (1 + np.abs(mean) / 0.5) ** -n
    hidden = [skewed_changes.headroom([np.full(n, level)], gained) for gained in (False, True)]
    now = [np.maximum(permutation, skewed_changes.bounds([gaps], one).p_values) for one in hidden]
    return {
        "permutation": permutation,
        "Student's t": 2 * stats.t.sf(np.abs(mean) / error, n - 1),
        "Johnson's t": 2 * stats.t.sf(np.abs(johnson), n - 1),
        "and likelihood": likelihood,
        "and none of 50 points": np.maximum(likelihood, none_of_50),
        "now": np.where(mean > 0, now[1], now[0]),
    }


def samples(times: int, random: np.random.Generator) -> Iterator[tuple[str, float, Floats, float, int]]:
    """What is measured, the level of the test, the differences, the baseline's accuracy, and the repeats."""

    def drawn(before: Floats, after: Floats, k: int) -> Floats:
        return np.asarray((random.binomial(k, after.clip(0, 1)) - random.binomial(k, before)) / k, dtype=np.float64)

    for n, k, rare, loss in SKEWED:
        before = np.full((times, n), max(loss, 1 - loss))
        change = np.where(random.random((times, n)) < rare, -loss, rare * loss / (1 - rare))
        title = f"false: {n} × {k}, {100 * rare:g} % lose {100 * loss:g} points"
        yield title, significance.ALPHA, drawn(before, before + change, k), float(before.mean()), k
    before = random.beta(0.5, 0.5, (times, 30))
    change = np.where(random.random((times, 30)) < 0.1, -before, (1 - before) / 9)
    yield "false: 30 × 64, 10 % fall to 0, from any accuracy", 0.05, drawn(before, before + change, 64), 0.5, 64
    for n, k, gain, level in EVEN:
        before = random.beta(0.5, 0.5, (times, n))
        title = f"even gain of {100 * gain:g} points, {n} × {k}, level {level:.4f}"
        yield title, level, drawn(before, before + 2 * gain * (1 - before), k), 0.5, k
    for gain in (0.1, -0.1):
        before = random.beta(0.4, 1.6, (times, 30))
        after = before + gain / 0.8 * (1 - before) if gain > 0 else before * (1 + gain / 0.2)
        title = f"even {'gain' if gain > 0 else 'loss'} of 10 points from 20 %, 30 × 16, level {FIRST_STEP:.4f}"
        yield title, FIRST_STEP, drawn(before, after, 16), 0.2, 16


def table(times: int, seed: int) -> str:
    """Verdicts in percent, as Markdown."""
    rows = []
    for title, level, gaps, accuracy, k in samples(times, np.random.default_rng(seed)):
        shares = {name: f"{100 * float(np.mean(p <= level)):.1f}" for name, p in p_values(gaps, accuracy, k).items()}
        rows.append({"verdicts (%)": title, **shares})
    return markdown(pd.DataFrame(rows))


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--times", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    durable.write_text(arguments.output, table(arguments.times, arguments.seed))


if __name__ == "__main__":
    run_command(main)
