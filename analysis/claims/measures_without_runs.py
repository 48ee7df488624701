"""What a rule can measure without a training: formulas, by simulation, and what this project's own files hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from analysis.statistics.mean_intervals import NotMeasured, Numbers, mean
from eval.statistics import Estimate
from grading import verdicts
from recipes.runs import load_run
from system.errors import UserError
from tasks import dataset_specs

BLOCKS, DRAWS = 100, 10_000  # of a simulation: blocks, and draws of each
TOKENS = 16  # of a completion


def _kl_estimates(estimator: str, shift: float) -> Numbers:
    """Estimates of KL(q, p) from draws of q = N(shift, 1), for p = N(0, 1), in a hundred blocks (Schulman 2020)."""
    draws = np.random.default_rng(0).normal(shift, 1.0, (BLOCKS, DRAWS))
    log_ratio = ((draws - shift) ** 2 - draws**2) / 2  # log p(x) - log q(x)
    estimates: Numbers = {"k1": -log_ratio, "k2": log_ratio**2 / 2, "k3": np.expm1(log_ratio) - log_ratio}[estimator]
    return estimates


def kl_bias(estimator: str, shift: float) -> Estimate:
    """Relative bias of k1, k2 or k3 for two normal distributions of variance 1 whose means differ by `shift`."""
    true = shift**2 / 2
    return mean((_kl_estimates(estimator, shift).mean(axis=1) - true) / true)


def kl_spread(estimator: str, than: str, shift: float) -> Estimate:
    """Standard deviation of one estimator over that of another, for the same two distributions."""
    first, second = (_kl_estimates(name, shift).std(axis=1) for name in (than, estimator))
    return mean(second / first)


def advantage(rewards: Sequence[float], position: int) -> Estimate:
    """The group-relative advantage of one completion, between dividing by the deviation with n and with n - 1.

    Where all rewards are equal it is 0, as the constant that is added to the deviation makes it.
    """
    values = np.asarray(rewards, dtype=float)
    if not np.ptp(values):
        return Estimate(0.0, 0.0, 0.0)
    both = [float((values[position] - values.mean()) / values.std(ddof=ddof)) for ddof in (0, 1)]
    return Estimate(both[1], min(both), max(both))


@cache
def _registered_rows(name: str) -> int:
    return int(dataset_specs.find(name).spec["rows"])


def rows(sets: Sequence[str]) -> Estimate:
    """The number of rows of data sets together, as the registry pins them: exact."""
    try:
        count = float(sum(_registered_rows(name) for name in sets))
    except UserError as error:  # a copy of the project may have fewer sets and runs
        raise NotMeasured(str(error)) from None
    return Estimate(count, count, count)


def judged(task: str, completion: str, gold: str) -> Estimate:
    """1 if this project's verifier of a task takes a completion's boxed answer for right, and 0 if not: exact."""
    (grade,) = verdicts.grade([verdicts.Item(task, gold, completion)])
    right = float(grade.verdict == "correct")
    return Estimate(right, right, right)


def kl_reach(kl_in: str, gae_lambda: float) -> Estimate:
    """The share of earlier tokens whose advantage changes with the KL of the last one: exact.

    Advantages are sums of (γλ)^l δ over later tokens (arXiv:1506.02438, equation 16), here with γ = 1 and a critic of
    zeros; KL in the loss is no part of them.
    """
    penalties = np.zeros(TOKENS)
    penalties[-1] = float(kl_in == "reward")
    later = np.arange(TOKENS)[None, :] - np.arange(TOKENS)[:, None]
    changes = np.where(later >= 0, gae_lambda ** np.maximum(later, 0), 0.0) @ penalties
    share = float((changes[:-1] != 0).mean())
    return Estimate(share, share, share)


def listed_deviation(run_file: str, deviation: str) -> Estimate:
    """1 if a run file lists this deviation, read in the published release, and 0 if not: exact."""
    try:
        listed = float(any(one["what"] == deviation for one in load_run(run_file, "full").deviations))
    except UserError as error:
        raise NotMeasured(str(error)) from None
    return Estimate(listed, listed, listed)


def not_stored(needs: str) -> Estimate:
    """For what no table of this project holds yet; `needs` says what would measure it."""
    raise NotMeasured(f"needs {needs}")
