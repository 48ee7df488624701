"""Losses and estimators by name (frameworks/objectives.yaml) in float64, beside PPO's, GSPO's, CISPO's and the group's.

A loss gives the terms of all tokens and their derivatives by log π, an estimator the advantages of all tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from conformance.cases import Batch, Numbers
from frameworks.conformance import DRO_BETA

Settings = Mapping[str, Any]
Terms = tuple[Numbers, Numbers]
SAPO_POSITIVE, SAPO_NEGATIVE = 1.0, 1.05  # temperatures by the sign of the advantage, arXiv:2511.20347
VESPO_POSITIVE, VESPO_NEGATIVE = (2.0, 3.0), (3.0, 2.0)  # k and λ, arXiv:2602.10693
KL_COV_WEIGHT = 0.1  # of the KL term on the tokens of highest covariance, arXiv:2505.22617
CLIP_COV_BAND = (1.0, 5.0)  # covariances, of which Clip-Cov leaves some tokens out, arXiv:2505.22617
TINY = 1e-8  # added to the weights of an optimal baseline, as in verl's core_algos


def gpg(settings: Settings, own: Numbers, old: Numbers, mask: Numbers, advantage: Numbers) -> Terms:
    """−A log π, arXiv:2504.02546."""
    del settings, old, mask
    return -advantage * own, -np.asarray(advantage, float)


def dro(settings: Settings, own: Numbers, old: Numbers, mask: Numbers, advantage: Numbers) -> Terms:
    """−A log π + β/2 (log ρ)², arXiv:2405.19107."""
    del settings, mask
    moved = own - old
    return -advantage * own + DRO_BETA / 2 * moved**2, -advantage + DRO_BETA * moved


def sapo(settings: Settings, own: Numbers, old: Numbers, mask: Numbers, advantage: Numbers) -> Terms:
    """−4 σ(τ (ρ − 1)) A / τ, arXiv:2511.20347, equation 5."""
    del settings, mask
    ratio, tau = np.exp(own - old), np.where(advantage > 0, SAPO_POSITIVE, SAPO_NEGATIVE)
    gate = 1 / (1 + np.exp(-tau * (ratio - 1)))
    return -gate * 4 / tau * advantage, -4 * gate * (1 - gate) * ratio * advantage


def dppo_tv(settings: Settings, own: Numbers, old: Numbers, mask: Numbers, advantage: Numbers) -> Terms:
    """−sg(ρ) A log π where the probability has moved by no more than the clip range, arXiv:2602.04879."""
    del mask
    low, high = settings["clip"]
    moved = np.exp(own) - np.exp(old)
    kept = np.where(advantage > 0, moved <= high, moved >= -low)
    weight = np.exp(own - old) * advantage * kept
    return -weight * own, -weight


def dppo_kl(settings: Settings, own: Numbers, old: Numbers, mask: Numbers, advantage: Numbers) -> Terms:
    """The same where the KL of the token against all others is within the clip range, arXiv:2602.04879."""
    low, high = settings["clip"]
    old = np.where(mask > 0, old, own)  # in the padding there is no probability
    p, q = np.exp(own), np.exp(old)
    divergence = q * (old - own) + (1 - q) * np.log((1 - q) / (1 - p))
    kept = np.where(advantage > 0, (divergence <= high) | (p <= q), (divergence <= low) | (p >= q))
    weight = np.exp(own - old) * advantage * kept
    return -weight * own, -weight


def geo_mean(settings: Settings, own: Numbers, old: Numbers, mask: Numbers, advantage: Numbers) -> Terms:
    """−A times the geometric mean of a completion's ratios, whose logarithms are clipped, arXiv:2507.20673."""
    low, high = settings["clip"]
    sign, moved = np.sign(advantage), own - old
    clipped = np.clip(moved, -low, high)
    tokens = np.maximum(mask.sum(1, keepdims=True), 1)
    mean = np.exp((sign * np.minimum(sign * moved, sign * clipped) * mask).sum(1, keepdims=True) / tokens)
    terms = np.broadcast_to(-advantage * mean, mask.shape)
    return terms, terms * (sign * moved <= sign * clipped)


def in_clip_cov_band(own: Numbers, mask: Numbers, advantage: Numbers) -> npt.NDArray[np.bool_]:
    """The tokens of which Clip-Cov leaves out a random share (by default 0.02 % of all tokens); here all."""
    covariance = _covariance(own, mask, advantage)
    return np.asarray((covariance > CLIP_COV_BAND[0]) & (covariance < CLIP_COV_BAND[1]))


def _covariance(own: Numbers, mask: Numbers, advantage: Numbers) -> Numbers:
    """Of each token's advantage and log-probability."""
    tokens = mask > 0
    return np.asarray((advantage - advantage[tokens].mean()) * (own - own[tokens].mean()))


def kl_cov(settings: Settings, own: Numbers, old: Numbers, mask: Numbers, advantage: Numbers) -> Terms:
    """−ρ A, with a KL term on the token whose advantage and probability vary most together, arXiv:2505.22617."""
    del settings
    moved = own - old
    plain = -np.exp(moved) * advantage
    covariance = np.where(mask > 0, _covariance(own, mask, advantage), -np.inf)
    chosen = np.zeros(mask.shape)
    chosen[np.unravel_index(covariance.argmax(), mask.shape)] = KL_COV_WEIGHT
    return plain + chosen * np.abs(moved), plain + chosen * np.sign(moved)


def vespo(settings: Settings, own: Numbers, old: Numbers, mask: Numbers, advantage: Numbers) -> Terms:
    """−φ(W) A log π with φ(w) = e^(λ − λ w) w^k of the completion's ratio W, arXiv:2602.10693."""
    del settings
    log_ratio = ((own - old) * mask).sum(1, keepdims=True)
    power, decay = np.where(advantage[..., None] >= 0, VESPO_POSITIVE, VESPO_NEGATIVE).transpose(2, 0, 1)
    weight = np.exp(decay + power * log_ratio - decay * np.exp(log_ratio)) * advantage
    return -weight * own, -weight


LOSSES: dict[str, Callable[..., Terms]] = {
    "gpg": gpg, "dro": dro, "sapo": sapo, "dppo_tv": dppo_tv, "dppo_kl": dppo_kl, "geo_mean": geo_mean,
    "kl_cov": kl_cov, "vespo": vespo,
}  # fmt: skip


def completion_advantages(name: str, totals: Numbers, batch: Batch, std_epsilon: float) -> Numbers:
    """Advantages of completions by a named estimator, shape (groups, samples).

    Args:
        name: rloo, opo, gpg, grpo_passk, remax, flash_reinforce, or reinforce_baseline and gdpo, which are normalised
            afterwards.
        totals: rewards, shape (groups, samples).
        batch: `values` of the first token stand for the rewards of greedy completions.
        std_epsilon: added to a group's std.
    """
    centred, count = totals - totals.mean(1, keepdims=True), totals.shape[1]
    lengths = batch["mask"].sum(1).reshape(totals.shape)
    if name == "rloo":
        return np.asarray(centred * count / (count - 1))
    if name == "opo":
        return np.asarray(totals - (lengths * totals).sum(1, keepdims=True) / lengths.sum(1, keepdims=True))
    if name == "gpg":
        return np.asarray(centred * totals.size / max(np.count_nonzero(totals), 1))
    if name == "remax":
        return np.asarray(totals - batch["values"][:, 0].reshape(totals.shape))
    if name == "flash_reinforce":
        return np.asarray(totals - totals.mean())
    if name == "grpo_passk":
        ordered = np.sort(totals, 1)
        lead = ordered[:, -1:] - ordered[:, -2:-1]
        best = totals == ordered[:, -1:]
        std = totals.std(1, ddof=1, keepdims=True) + std_epsilon
        return np.where(best & (lead > 0), lead / np.where(std > 0, std, 1), 0.0)
    if name == "gdpo":
        parts = (totals, batch["form_rewards"].reshape(totals.shape))
        return np.asarray(sum(_group_normalised(part, std_epsilon) for part in parts))
    return np.asarray(centred)


def _group_normalised(rewards: Numbers, std_epsilon: float) -> Numbers:
    std = rewards.std(1, ddof=1, keepdims=True) + std_epsilon
    return divide_or_zero(rewards - rewards.mean(1, keepdims=True), std)


def divide_or_zero(numerator: Numbers, denominator: Numbers) -> Numbers:
    """Zero where the denominator is, or is rounding: groups of equal rewards teach nothing."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 1e-12)


def optimal_token_baseline(name: str, batch: Batch) -> Numbers:
    """Reward less a baseline of each step, which weighs completions by the gradient's energy so far, shape (B, T).

    The energy of a token is |∂ log π / ∂ logits|² = 1 − 2 π + Σ π².

    Args:
        name: optimal_token_baseline has no baseline where one completion of a group is left; over turns has one.
        batch: see conformance.cases.
    """
    mask, shape = batch["mask"], (-1, batch["samples"], batch["mask"].shape[1])
    p = np.exp(batch["logits"] - np.log(np.exp(batch["logits"]).sum(-1, keepdims=True)))
    sampled = np.take_along_axis(p, batch["tokens"][..., None], -1)[..., 0]
    energy = ((1 - 2 * sampled + (p**2).sum(-1)) * mask).cumsum(1) * mask
    weight, rewards = energy.reshape(shape), batch["rewards"].reshape(*shape[:2], 1)
    baseline = (weight * rewards).sum(1, keepdims=True) / (weight.sum(1, keepdims=True) + TINY)
    if name == "optimal_token_baseline":
        baseline = np.where(mask.reshape(shape).sum(1, keepdims=True) > 1, baseline, 0.0)
    return np.asarray((rewards - baseline).reshape(mask.shape) * mask)


TOKEN_BASELINES = ("optimal_token_baseline", "tir_optimal_token_baseline")
ESTIMATORS = (
    "rloo", "opo", "gpg", "remax", "flash_reinforce", "grpo_passk", "reinforce_baseline", "reinforce", "gdpo",
)  # fmt: skip
