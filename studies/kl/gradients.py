r"""Gradients of the KL term by estimator and place: what training follows, against the gradient of the KL itself.

The model writes T tokens of V, each by a softmax over logits for the token before it (a bigram model); with T = 1 it
is a bandit. For l_t = log pi - log ref of token t, and w_t = pi / pi_old where an older policy sampled, one completion
gives the gradient sum_t c_t * grad log pi(y_t), with c_t

    k in the loss             k'(l_t)                       k1: 1, k2: l_t, k3: 1 - exp(-l_t)
    k × ratio in the loss     w_t (k(l_t) + k'(l_t))        the ratio has a gradient, too
    k in the reward           w_t sum of k(l_u), u >= t     no gradient through k; w_t as in PPO's objective

The KL of whole completions has the gradient E sum_t (sum_{u >= t} l_u) grad log pi(y_t), y drawn from pi. Sources:
arXiv:2506.09477 and arXiv:2512.21852.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.statistics.mean_intervals import Numbers
from studies.kl.estimator_values import ESTIMATORS, estimates

Tokens = npt.NDArray[np.int64]
LOSS, WEIGHED, REWARD = "in the loss", "× ratio in the loss", "in the reward"
PLACES = (LOSS, WEIGHED, REWARD)


class Policies(NamedTuple):
    """Log-probabilities of shape (V + 1, V): row 0 for the first token, row v + 1 after token v."""

    current: Numbers
    reference: Numbers
    sampler: Numbers


class Gradient(NamedTuple):
    """Of one estimator in one place; the numbers are in units of the length of the true gradient."""

    estimator: str
    kl_in: str
    bias: float  # length of the mean gradient less the true one
    cosine: float  # between the mean gradient and the true one; NaN for a mean of zero
    spread: float  # standard deviation of one completion's gradient, over all logits
    error: float  # standard error of the mean; 0 where it is exact


def log_softmax(logits: Numbers) -> Numbers:
    """Over the last axis."""
    shifted: Numbers = logits - logits.max(axis=-1, keepdims=True)
    log_probabilities: Numbers = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return log_probabilities


def policies(vocabulary: int, off_policy: bool, seed: int = 0) -> Policies:
    """A reference, a policy half a standard normal away from it in each logit, and who samples.

    Args:
        vocabulary: tokens, or the arms of a bandit.
        off_policy: whether an older policy, 0.3 away, samples.
        seed: of all of them.
    """
    rng, shape = np.random.default_rng(seed), (vocabulary + 1, vocabulary)
    reference = rng.normal(size=shape)
    current = reference + 0.5 * rng.normal(size=shape)
    sampler = current + 0.3 * rng.normal(size=shape) * off_policy
    return Policies(log_softmax(current), log_softmax(reference), log_softmax(sampler))


def _states(tokens: Tokens) -> Tokens:
    return np.concatenate([np.zeros_like(tokens[:, :1]), tokens[:, :-1] + 1], axis=1)


def everything(vocabulary: int, length: int) -> Tokens:
    """All completions, of shape (V ** T, T)."""
    return np.array(list(itertools.product(range(vocabulary), repeat=length)))


def sample(log_probabilities: Numbers, length: int, count: int, seed: int) -> Tokens:
    """Completions drawn from a policy, of shape (count, length).

    Args:
        log_probabilities: as in Policies.
        length: T.
        count: how many.
        seed: of the draws.
    """
    rng, steps = np.random.default_rng(seed), np.exp(log_probabilities).cumsum(axis=1)
    tokens = np.zeros((count, length), dtype=np.int64)
    state = np.zeros(count, dtype=np.int64)
    for t in range(length):
        below = rng.random(count)[:, None] > steps[state][:, :-1]
        tokens[:, t] = below.sum(axis=1)
        state = tokens[:, t] + 1
    return tokens


def _to_go(values: Numbers) -> Numbers:
    """The sum over a token and those after it."""
    return values[:, ::-1].cumsum(axis=1)[:, ::-1]


def coefficients(policy: Policies, tokens: Tokens, estimator: str, kl_in: str) -> Numbers:
    """c_t of each token (see above), of the shape of `tokens`."""
    states = _states(tokens)
    log_ratio = policy.reference[states, tokens] - policy.current[states, tokens]  # -l
    weights = np.exp(policy.current[states, tokens] - policy.sampler[states, tokens])
    value = estimates(log_ratio)[estimator]
    slope = {"k1": np.ones_like(log_ratio), "k2": -log_ratio, "k3": -np.expm1(log_ratio)}[estimator]
    if kl_in == LOSS:
        return slope
    return weights * (value + slope if kl_in == WEIGHED else _to_go(value))


def gradients(policy: Policies, tokens: Tokens, of_tokens: Numbers) -> Numbers:
    """The gradient of each completion over all logits, of shape (completions, (V + 1) * V)."""
    count, states = len(tokens), _states(tokens)
    estimates = np.zeros((count, *policy.current.shape))
    rows = np.arange(count)
    for t in range(tokens.shape[1]):
        part = -np.exp(policy.current[states[:, t]]) * of_tokens[:, t, None]
        part[rows, tokens[:, t]] += of_tokens[:, t]
        estimates[rows, states[:, t]] += part
    return estimates.reshape(count, -1)


def probabilities(log_probabilities: Numbers, tokens: Tokens) -> Numbers:
    """Of each completion under a policy."""
    products: Numbers = np.exp(log_probabilities[_states(tokens), tokens].sum(axis=1))
    return products


def true_gradient(policy: Policies, length: int) -> Numbers:
    """The gradient of the KL of whole completions over all logits: a sum over all of them."""
    tokens = everything(policy.current.shape[1], length)
    states = _states(tokens)
    log_ratio = policy.current[states, tokens] - policy.reference[states, tokens]
    by_completion = gradients(policy, tokens, _to_go(log_ratio))
    gradient: Numbers = probabilities(policy.current, tokens) @ by_completion
    return gradient


def study(policy: Policies, length: int, draws: int = 0, seed: int = 0) -> list[Gradient]:
    """Every estimator at every place.

    Args:
        policy: what is trained, the reference and the sampler.
        length: T.
        draws: completions of a Monte Carlo estimate; 0 sums over all completions instead, which is exact.
        seed: of the draws.
    """
    vocabulary, true = policy.current.shape[1], true_gradient(policy, length)
    tokens = sample(policy.sampler, length, draws, seed) if draws else everything(vocabulary, length)
    weights = np.full(draws, 1 / draws) if draws else probabilities(policy.sampler, tokens)
    rows, size = [], float(np.linalg.norm(true))
    for kl_in, estimator in itertools.product(PLACES, ESTIMATORS):
        each = gradients(policy, tokens, coefficients(policy, tokens, estimator, kl_in))
        mean = weights @ each
        spread = float(np.sqrt(weights @ ((each - mean) ** 2).sum(axis=1))) / size
        norm = float(np.linalg.norm(mean))
        error = spread / draws**0.5 if draws else 0.0
        told = norm > max(1e-9, 3 * error) * size  # else the mean is zero, as far as can be told
        cosine = float(mean @ true) / norm / size if told else float("nan")
        rows.append(Gradient(estimator, kl_in, float(np.linalg.norm(mean - true)) / size, cosine, spread, error))
    return rows
