"""Figures of the training log: reward, response length, rates and divergence over steps."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis.pages.figure_curves import SHARES, Panel, curves, on_one_axis
from analysis.results import RunResults
from analysis.statistics.training_seeds import Recipe


def _logged(column: str, title: str, ylabel: str, limits: float | tuple[float, float] | None = None) -> Panel:
    """A panel of a column of the log; a share in percent."""
    scale = 100 if "(%)" in ylabel else 1

    def values(run: RunResults) -> pd.Series:
        values = run.log[column] if column in run.log else pd.Series(float("nan"), run.log.index)
        return scale * values.set_axis(on_one_axis(run.log)[0])

    return Panel(title, ylabel, values, limits)


REWARD = (
    _logged("reward_mean", "Mean reward", "reward per completion"),
    _logged("reward_std", "Spread of rewards", "standard deviation"),
)
RESPONSE_LENGTH = (
    _logged("response_length_mean", "Mean response", "length (tokens)", 1.0),
    _logged("response_length_max", "Longest response", "length (tokens)", 1.0),
    _logged("truncated_rate", "Truncated", "share of responses (%)", 10.0),
)
RATES = (
    _logged("accuracy", "Correct", "share of completions (%)", SHARES),
    _logged("wrong_answer_rate", "Wrong answer", "share of completions (%)", SHARES),
    _logged("format_error_rate", "Format error", "share of completions (%)", SHARES),
)
DIVERGENCE = (
    _logged("kl", "KL to the reference", "nats per token"),
    _logged("entropy", "Entropy", "nats per token"),
    _logged("zero_signal_rate", "No signal", "share of groups (%)", SHARES),
    _logged("sampler_mismatch", "Sampler and trainer", "mean difference"),
)
CAPTIONS = {
    "reward": (
        "Reward in training. The mean rises in a run that learns. A standard deviation of zero means that all "
        "completions earn the same, so that nothing can be learned. Faint points are steps; lines are centred running "
        "means. The scale depends on the recipe's reward, so compare heights only between runs of one recipe. Where a "
        "recipe has several training seeds, here and in the other curves, each is a thin line, and the band is the 95 "
        "% interval of their mean."
    ),
    "response_length": (
        "Length of responses in training, in tokens: the mean and the longest of each step, and the share truncated "
        "at the limit. Look for length running into the limit while the truncated share rises: that is how a collapse "
        "begins."
    ),
    "rates": (
        "Training completions that are correct, well formatted but wrong, and badly formatted, as shares of each "
        "step. Format is usually learned first. Look at whether correct answers keep rising once format errors are "
        "gone."
    ),
    "divergence": (
        "KL to the reference model and entropy, where the framework reports them, and the share of groups whose "
        "completions all earn the same, and how far the sampler's probabilities are from the trainer's, where the "
        "framework logs it. Look for KL or entropy that leaves the range of the steps before: the policy may be "
        "collapsing."
    ),
}


def plot_reward(recipes: Sequence[Recipe]) -> Figure:
    """Mean and standard deviation of the reward over steps."""
    return curves(recipes, REWARD, training=True)


def plot_response_length(recipes: Sequence[Recipe]) -> Figure:
    """Mean and longest response of each step, and the share truncated."""
    return curves(recipes, RESPONSE_LENGTH, training=True)


def plot_rates(recipes: Sequence[Recipe]) -> Figure:
    """Shares of correct, wrong and badly formatted completions over steps, which add up to all completions."""
    return curves(recipes, RATES, training=True, sharey=True)


def plot_divergence(recipes: Sequence[Recipe]) -> Figure:
    """KL to the reference, entropy, share of groups that teach nothing, mismatch of sampler and trainer, over steps."""
    return curves(recipes, DIVERGENCE, training=True, columns=2)
