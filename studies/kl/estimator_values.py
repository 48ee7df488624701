"""Values of the estimators k1, k2 and k3 of KL(q, p) for normal distributions (Schulman 2020).

For x drawn from q and log r = log p(x) - log q(x): k1 = -log r, k2 = (log r)²/2, k3 = r - 1 - log r.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analysis.statistics.mean_intervals import Numbers, mean
from eval.statistics import Estimate

ESTIMATORS = ("k1", "k2", "k3")
BLOCKS, DRAWS = 100, 100_000  # 10⁷ draws, as the GSM8K notes have them


class Values(NamedTuple):
    """One estimator for one pair of distributions; both numbers are in units of the true KL."""

    estimator: str
    shift: float
    bias: Estimate  # of the mean, with an interval of 95 %
    exact_bias: float  # log r is normal with mean -shift²/2 and variance shift²
    spread: float  # standard deviation of one draw


def estimates(log_ratio: Numbers) -> dict[str, Numbers]:
    """The three estimators for each log r."""
    return {"k1": -log_ratio, "k2": log_ratio**2 / 2, "k3": np.expm1(log_ratio) - log_ratio}


def of_normals(shift: float, blocks: int = BLOCKS, draws: int = DRAWS, seed: int = 0) -> list[Values]:
    """The estimators for q = N(shift, 1) and p = N(0, 1), whose KL is shift²/2.

    Args:
        shift: distance of the means, in standard deviations.
        blocks: whose means give the interval.
        draws: of a block.
        seed: of the draws.
    """
    rng, true = np.random.default_rng([seed, round(1e6 * shift)]), shift**2 / 2
    means: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    squares = dict.fromkeys(ESTIMATORS, 0.0)
    for _ in range(blocks):
        x = rng.normal(shift, 1.0, draws)
        for name, values in estimates(((x - shift) ** 2 - x**2) / 2).items():
            means[name].append(float(values.mean()))
            squares[name] += float((values**2).mean()) / blocks
    rows = []
    for name in ESTIMATORS:
        blockwise = np.asarray(means[name])
        spread = float(np.sqrt(squares[name] - blockwise.mean() ** 2)) / true
        exact = shift**2 / 4 if name == "k2" else 0.0
        rows.append(Values(name, shift, mean((blockwise - true) / true), exact, spread))
    return rows
