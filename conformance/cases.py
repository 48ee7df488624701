"""Batches and formulas: each case is one batch put through one formula.

A batch holds, for B completions of at most T tokens from a vocabulary of V:

    logits       B, T, V   of the policy, which is trained
    tokens       B, T      what was sampled; `mask` is 1 for text and 0 for padding
    old, reference, rollout   B, T   their log-probabilities under the old policy, the base model and the sampler
    advantages   B         given, for formulas that compute none
    rewards      B         of the completions; groups of `samples` follow each other
    form_rewards B         a second reward, for what normalises each by itself
    values       B, T      of a critic
    truncated    B         1 where the completion was cut at the limit

Numbers keep away from where the float32 that releases have inside would decide. Rewards are multiples of STEP, which it
holds exactly: TRL keeps rewards in it. Logits are within ± BOUND, so that log-probabilities are above −6.1, and within
half of that where ratios are large, so that they are above −4.1; there its error is below the tolerance. What float32
does to other rewards is in conformance.rounding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from frameworks.conformance import LONGEST, VOCABULARY
from system.errors import UserError
from system.yaml_files import read_yaml

Batch = dict[str, Any]
Numbers = npt.NDArray[np.float64]
STEP, BOUND = 2.0**-10, 2.0
SHAPES = ((2, 4), (3, 2))  # groups, samples
END, FIRST = 2, 3  # the token that ends a completion, and the first that means something
KINDS = ("ordinary", "on_policy", "one_token", "wide")
FORMULAS = Path(__file__).parent / "formulas.yaml"


def all_formulas() -> dict[str, dict[str, Any]]:
    """Every formula by name, with all of its settings, `source` and `batches`."""
    file = read_yaml(FORMULAS)
    return {name: file["settings"] | {"batches": KINDS} | own for name, own in file["formulas"].items()}


def make_batch(kind: str, seed: int, base: int = 0) -> Batch:
    """A batch of a kind: ordinary or

    on_policy      the policy is still the old one
    one_token      answers of one token
    wide           columns of padding that no completion reaches
    far            ratios to the old policy of up to exp(4) either way
    beyond         log-ratios of 15 to 25
    far_reference  log-ratios to the reference of up to 5
    truncated      some completions were cut
    masked         some completions have no token to train on

    Half of the batches have 0/1 rewards and the others shaped ones; one in eight has a group of equal rewards.

    Args:
        kind: see above.
        seed: of the batch.
        base: seed of all batches.
    """
    rng = np.random.default_rng([sum(map(ord, kind)), seed, *[base] * (base > 0)])
    groups, samples = SHAPES[seed % len(SHAPES)]
    count = groups * samples
    lengths = np.ones(count, int) if kind == "one_token" else rng.integers(1, LONGEST + 1, count)
    width = LONGEST if kind == "wide" else int(lengths.max())
    mask = (np.arange(width) < lengths[:, None]).astype(float)
    bound = BOUND / 2 if kind in ("far", "beyond", "far_reference") else BOUND
    logits = np.clip(rng.normal(0, 1.5, (count, width, VOCABULARY)), -bound, bound)
    tokens = rng.integers(FIRST, VOCABULARY, (count, width))
    truncated = np.zeros(count)
    if kind in ("truncated", "masked"):
        truncated[rng.permutation(count)[: 1 + seed % 2]] = 1
    tokens[np.arange(count), lengths - 1] = np.where(truncated > 0, FIRST, END)
    own = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    own = np.take_along_axis(own, tokens[..., None], -1)[..., 0] * mask
    noise = rng.normal(0, 1, (3, count, width)) * mask
    old = _old_policy(rng, kind, own, mask, noise[0])
    distance = np.clip(3 * noise[1], -5, 5) if kind == "far_reference" else 0.4 * np.clip(noise[1], -3, 3)
    rewards = _rewards(rng, seed, groups, samples)
    return {
        "kind": kind, "samples": samples, "logits": logits, "tokens": tokens, "mask": mask, "old": old,
        "reference": own + distance, "rollout": old + 0.3 * noise[2], "advantages": rng.normal(0, 1, count),
        "rewards": rewards, "values": rng.normal(0, 1, mask.shape) * mask, "truncated": truncated,
        "form_rewards": rng.integers(0, 2, count).astype(float),
    }  # fmt: skip


def _old_policy(rng: np.random.Generator, kind: str, own: Numbers, mask: Numbers, noise: Numbers) -> Numbers:
    """Log-probabilities under the old policy, for those under the policy that is trained."""
    if kind == "far":
        return own - np.clip(2 * noise, -4, 4)
    if kind == "beyond":
        return own - np.sign(noise) * rng.uniform(15, 25, own.shape) * mask
    return own + (0.0 if kind == "on_policy" else 0.2) * noise


def _rewards(rng: np.random.Generator, seed: int, groups: int, samples: int) -> Numbers:
    """0/1 or shaped."""
    count = groups * samples
    rewards = (
        rng.integers(0, 2, count).astype(float) if seed % 4 < 2 else np.round(rng.normal(0, 1, count) / STEP) * STEP
    )
    rewards[0] = rewards[1] + 1  # one group differs, so that nothing is divided by zero
    if seed % 8 == 7:
        rewards[samples : 2 * samples] = 1.0
    return rewards


def make_cases(count: int, base: int = 0) -> tuple[list[Batch], list[tuple[str, int]]]:
    """Batches, and at least `count` cases: a formula and the index of a batch, equally many of each formula.

    Args:
        count: at least so many.
        base: seed of all batches.

    Raises:
        UserError: the count is below 1.
    """
    if count < 1:
        raise UserError(f"the number of cases should be at least 1, not {count}", code="too-few-cases")
    formulas = all_formulas()
    each = -(-count // len(formulas))
    batches: list[Batch] = []
    index: dict[tuple[str, int], int] = {}
    pairs = []
    for name, formula in formulas.items():
        kinds = formula["batches"]
        for number in range(each):
            key = (kinds[number % len(kinds)], number // len(kinds))
            if key not in index:
                index[key] = len(batches)
                batches.append(make_batch(*key, base))
            pairs.append((name, index[key]))
    return batches, pairs
