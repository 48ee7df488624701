r"""Each formula in float64: its value, the gradient by the logits, and one step of AdamW, written out by hand.

A loss is a sum over tokens, Σ w_t ℓ_t, whose weights w make the mean. With p = softmax(logits) and log π the
log-probability of the sampled token, the gradient by the logits is ∂L/∂log π · (onehot − p), and that of an entropy H,
−p (log p + H).

`variant` holds what a release computes otherwise (conformance/differences.yaml):

    std_epsilon          added to a group's std
    over_tokens          GDPO's sum is whitened over tokens, not over completions
    ddof                 whitening divides by n − ddof
    whiten_epsilon       added to the variance
    kl_after             a KL term in the reward is added to the normalised reward, per token, and discounted to go
    log_ratio_bound      of the log-ratio to the old policy
    kl_bound             of each value of a KL estimator
    kl_value_weighted    the value of the unbiased form is multiplied by the ratio, too
    kl_unweighted        the gradient of the unbiased form is not
    kl_over              how the KL term is averaged, whatever the loss
    entropy_over         how the entropy is
    empty_rows           completions without a token count in the mean over completions
    passes_added         the means over completions of each micro-batch are added, not averaged
    cispo_low            CISPO's ratio is at least 1 less this
    dropped_uncounted    tokens of weight zero do not count in the mean
    judged_inverse       completions are judged by the sampler's probabilities over the old policy's
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from conformance import named_losses
from conformance.cases import Batch, Numbers
from frameworks.conformance import LEARNING_RATE, LONGEST, WEIGHT_DECAY

EPSILON = 1e-8  # of AdamW
Settings = Mapping[str, Any]


class Result(NamedTuple):
    """Of one case."""

    value: Numbers  # of the loss, shape (1,); for formulas of advantages these, shape (B, T), zero in padding
    gradient: Numbers  # by the logits, shape (B, T, V)
    step: Numbers  # change of the logits after one AdamW step, same shape


def evaluate_formula(settings: Settings, batch: Batch, variant: Settings) -> Result:
    """A formula on a batch.

    Args:
        settings: of the formula, as in formulas.yaml.
        batch: see conformance.cases.
        variant: see above; {} for what was published.
    """
    mask = batch["mask"] * (1 - batch["truncated"][:, None]) if _drops_completions(settings, batch) else batch["mask"]
    are_given = settings["advantage"] == "given"
    per_token = (
        np.broadcast_to(batch["advantages"][:, None], mask.shape) if are_given else advantages(settings, batch, variant)
    )
    value, gradient = loss_and_gradient(settings, batch, mask, per_token, variant)
    moved = -LEARNING_RATE * (adam_direction(gradient) + WEIGHT_DECAY * batch["logits"])
    return Result(np.array([value]) if are_given else per_token * mask, gradient, moved)


def adam_direction(gradient: Numbers) -> Numbers:
    """AdamW's first step over the learning rate, without weight decay."""
    unit_step: Numbers = gradient / (np.abs(gradient) + EPSILON)
    return unit_step


def _drops_completions(settings: Settings, batch: Batch) -> bool:
    return bool(settings["mask_truncated"]) or batch["kind"] == "masked"


def advantages(settings: Settings, batch: Batch, variant: Settings) -> Numbers:
    """Advantages of all tokens, shape (B, T)."""
    mask, rewards = batch["mask"], batch["rewards"] + _overlong(settings, batch["mask"])
    penalty = np.zeros(mask.shape)
    if settings["kl"] and settings["kl_in"] == "reward":
        terms, _ = kl_and_slope(settings["kl"], batch["old"] - batch["reference"], variant)
        penalty = settings["kl_coefficient"] * terms * mask
    if settings["advantage"] == "gae":
        last = np.eye(mask.shape[1])[mask.sum(1).astype(int) - 1]
        return _whiten(_gae(settings, last * rewards[:, None] - penalty, batch), mask, variant)
    if settings["advantage"] == "reinforce":
        returns = np.zeros((len(mask), mask.shape[1] + 1))
        last = np.eye(mask.shape[1])[mask.sum(1).astype(int) - 1]
        for t in reversed(range(mask.shape[1])):
            returns[:, t] = (last * rewards[:, None] - penalty)[:, t] + settings["gamma"] * returns[:, t + 1]
        return _whiten(returns[:, :-1], mask, variant)
    after = variant.get("kl_after", False)
    totals = (rewards if after else rewards - penalty.sum(1)).reshape(-1, batch["samples"])
    if settings["advantage"] in named_losses.TOKEN_BASELINES:
        return named_losses.optimal_token_baseline(settings["advantage"], batch)
    if settings["advantage"] in named_losses.ESTIMATORS:
        by_name = named_losses.completion_advantages(
            settings["advantage"], totals, batch, variant.get("std_epsilon", 0.0)
        )
        if settings["advantage"] == "gdpo" and not variant.get("over_tokens"):
            by_name = (by_name - by_name.mean()) / (by_name.std(ddof=1) + variant.get("std_epsilon", 0.0))
        named: Numbers = by_name.reshape(-1, 1) * mask
        over_tokens = settings["advantage"] == "reinforce_baseline" or variant.get("over_tokens")
        return _whiten(named, mask, variant) if over_tokens else named
    centred = totals - totals.mean(1, keepdims=True)
    if settings["advantage"] != "none":
        axis = {"group": 1, "batch": None}[settings["advantage"]]
        centred = named_losses.divide_or_zero(
            centred, totals.std(axis, ddof=1, keepdims=True) + variant.get("std_epsilon", 0.0)
        )
    to_go = penalty[:, ::-1].cumsum(1)[:, ::-1] if after else 0.0
    token_advantages: Numbers = (centred.reshape(-1, 1) - to_go) * mask
    return token_advantages


def _overlong(settings: Settings, mask: Numbers) -> Numbers:
    """What completions near the limit lose, shape (B,)."""
    if not (chosen := settings["overlong"]):
        return np.zeros(len(mask))
    beyond = np.clip(mask.sum(1) - (LONGEST - chosen["buffer"]), 0, chosen["buffer"])
    return np.asarray(-chosen["penalty"] * beyond / chosen["buffer"])


def _gae(settings: Settings, rewards: Numbers, batch: Batch) -> Numbers:
    values, estimates = batch["values"], np.zeros(rewards.shape)
    carried, following = np.zeros(len(rewards)), np.zeros(len(rewards))
    for t in reversed(range(rewards.shape[1])):
        delta = rewards[:, t] + settings["gamma"] * following - values[:, t]
        estimates[:, t] = carried = delta + settings["gamma"] * settings["gae_lambda"] * carried
        following = values[:, t]
    return estimates


def _whiten(values: Numbers, mask: Numbers, variant: Settings) -> Numbers:
    count = mask.sum()
    centred = values - (values * mask).sum() / count
    variance = (centred**2 * mask).sum() / (count - variant.get("ddof", 1))
    whitened: Numbers = centred / np.sqrt(variance + variant.get("whiten_epsilon", 0.0)) * mask
    return whitened


def kl_and_slope(estimator: str, difference: Numbers, variant: Settings) -> tuple[Numbers, Numbers]:
    """An estimator of the KL and its derivative by log π, for log π − log π_ref."""
    value, slope = {
        "k1": (difference, np.ones_like(difference)),
        "k2": (difference**2 / 2, difference),
        "k3": (np.expm1(-difference) + difference, -np.expm1(-difference)),
    }[estimator]
    bound = variant.get("kl_bound", np.inf)
    return np.clip(value, -bound, bound), np.where(np.abs(value) <= bound, slope, 0.0)


def loss_and_gradient(
    settings: Settings, batch: Batch, mask: Numbers, advantage: Numbers, variant: Settings
) -> tuple[float, Numbers]:
    """The loss and its gradient by the logits.

    Args:
        settings: of the formula.
        batch: see conformance.cases.
        mask: tokens that are trained on.
        advantage: of each token.
        variant: see above.
    """
    log_p = batch["logits"] - np.log(np.exp(batch["logits"]).sum(-1, keepdims=True))
    sampled = np.eye(log_p.shape[-1])[batch["tokens"]]
    own = (log_p * sampled).sum(-1)
    terms, slopes = _policy_terms(settings, own, batch, mask, advantage, variant)
    correction = _sampler_weights(settings, batch, mask, variant)
    weights = _token_weights(
        "completion_sum" if settings["policy"] == "luspo" else settings["loss_aggregation"],
        settings,
        mask * (correction > 0 if variant.get("dropped_uncounted") else 1),
        variant,
    )
    value = (weights * correction * terms).sum()
    by_log_p = weights * correction * slopes
    if settings["kl"] and settings["kl_in"] == "loss":
        over = _token_weights(variant.get("kl_over", settings["loss_aggregation"]), settings, mask, variant)
        terms, slopes = _kl_in_loss(settings, own, batch, variant)
        value += settings["kl_coefficient"] * (over * terms).sum()
        by_log_p = by_log_p + settings["kl_coefficient"] * over * slopes
    p = np.exp(log_p)
    gradient = by_log_p[..., None] * (sampled - p)
    if settings["entropy"]:
        over = settings["entropy"] * _token_weights(
            variant.get("entropy_over", settings["loss_aggregation"]), settings, mask, variant
        )
        entropy = -(p * log_p).sum(-1)
        value -= (over * entropy).sum()
        gradient = gradient + over[..., None] * p * (log_p + entropy[..., None])
    return float(value), gradient


def _policy_terms(
    settings: Settings, own: Numbers, batch: Batch, mask: Numbers, advantage: Numbers, variant: Settings
) -> tuple[Numbers, Numbers]:
    """The token losses and their derivatives by log π."""
    if settings["policy"] in named_losses.LOSSES:
        return named_losses.LOSSES[settings["policy"]](settings, own, batch["old"], mask, advantage)
    log_ratio, bound = own - batch["old"], variant.get("log_ratio_bound", np.inf)
    inside = np.abs(log_ratio) <= bound
    log_ratio = np.clip(log_ratio, -bound, bound)
    low, high = settings["clip"]
    if settings["policy"] in ("gspo", "luspo"):
        tokens = np.maximum(mask.sum(1, keepdims=True), 1)
        log_ratio = np.broadcast_to((log_ratio * mask).sum(1, keepdims=True) / tokens, mask.shape)
    ratio = np.exp(log_ratio)
    if settings["policy"] == "cispo":
        weight = np.clip(ratio, 1 - variant.get("cispo_low", low), 1 + high) * advantage
        return -weight * own, -weight
    plain, clipped = ratio * advantage, np.clip(ratio, 1 - low, 1 + high) * advantage
    terms, moves = -np.minimum(plain, clipped), (plain <= clipped) & inside
    if settings["policy"] == "clip_cov":
        kept = (clipped < plain) | ~named_losses.in_clip_cov_band(own, mask, advantage)
        terms, moves = terms * kept, moves & kept
    if settings["dual_clip"]:
        most = -settings["dual_clip"] * advantage
        bounded = (advantage < 0) & (terms > most)
        terms, moves = np.where(bounded, most, terms), moves & ~bounded
    return terms, np.where(moves, -plain, 0.0)


def _kl_in_loss(settings: Settings, own: Numbers, batch: Batch, variant: Settings) -> tuple[Numbers, Numbers]:
    terms, slopes = kl_and_slope(settings["kl"], own - batch["reference"], variant)
    if settings["unbiased_kl"]:
        ratio = np.exp(own - batch["old"])
        slopes = (1.0 if variant.get("kl_unweighted") else ratio) * (own - batch["reference"])
        terms = terms * ratio if variant.get("kl_value_weighted") else terms
    return terms, slopes


def _sampler_weights(settings: Settings, batch: Batch, mask: Numbers, variant: Settings) -> Numbers:
    """Weights by the old policy's probability over the sampler's."""
    chosen = settings["correction"]
    if not chosen:
        return np.ones(mask.shape)
    difference = (batch["old"] - batch["rollout"]) * mask
    total = difference.sum(1, keepdims=True)
    ratio = np.broadcast_to(np.exp(total if chosen["level"] == "sequence" else difference), mask.shape)
    if chosen["form"] == "truncate":
        return np.asarray(np.clip(ratio, chosen["low"], chosen["high"]))
    total = -total if variant.get("judged_inverse") else total
    judged = np.exp(total / np.maximum(mask.sum(1, keepdims=True), 1)) if chosen["level"] == "mean" else ratio
    return np.where((judged >= chosen["low"]) & (judged <= chosen["high"]), ratio, 0.0)


def _token_weights(kind: str, settings: Settings, mask: Numbers, variant: Settings) -> Numbers:
    """What each token's loss is multiplied by, before all are added."""
    lengths = mask.sum(1, keepdims=True)
    if kind == "completion_mean":
        rows = len(mask) if variant.get("empty_rows") else (lengths > 0).sum()
        passes = settings["micro_batches"] if variant.get("passes_added") else 1
        return np.asarray(mask / np.maximum(lengths, 1) / rows * passes)
    if kind == "completion_sum":
        return mask / len(mask)
    if kind == "max_length_mean":
        return mask / (len(mask) * LONGEST)
    if kind == "forward_pass_mean":
        parts = np.split(mask, settings["micro_batches"] * settings["processes"])
        return np.concatenate([part / part.sum() for part in parts]) / len(parts)
    weights: Numbers = mask / mask.sum()
    return weights
