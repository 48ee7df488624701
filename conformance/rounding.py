"""Groups of equal rewards in float32: they should teach nothing, and rounding makes an advantage of them.

The mean of n equal numbers is off by a unit in the last place, unless they have few binary digits; so is the std, and
their quotient may be of the order of 1. A run file's `multiple_of` of a reward is the way around.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conformance.cases import STEP, Batch, Numbers, make_batch

SAMPLES, REPEATS = 7, 60
GIVEN, ROUNDED = "equal rewards", "equal rewards, multiples of 2⁻¹⁰"


def equal_reward_batches() -> dict[str, list[Batch]]:
    """Two groups of equal rewards of two decimals in each batch; the same with rewards rounded to multiples of STEP."""
    batches_by_kind: dict[str, list[Batch]] = {GIVEN: [], ROUNDED: []}
    for seed in range(REPEATS):
        rewards = np.repeat(np.random.default_rng(seed).integers(1, 300, 2) / 100, SAMPLES)
        parts = [make_batch("ordinary", 8 * seed) for _ in range(2)]
        arrays = {
            name: np.concatenate([part[name] for part in parts])[: 2 * SAMPLES]
            for name, value in parts[0].items()
            if isinstance(value, np.ndarray)
        }
        for name, group_rewards in ((GIVEN, rewards), (ROUNDED, np.round(rewards / STEP) * STEP)):
            batches_by_kind[name].append(parts[0] | arrays | {"samples": SAMPLES, "rewards": group_rewards})
    return batches_by_kind


def largest_advantage(results: Mapping[str, Any], name: str) -> float:
    """The largest advantage, over all tokens of all batches.

    Args:
        results: of one framework, as frameworks.conformance gives them.
        name: GIVEN or ROUNDED.
    """
    flat: Numbers = results[name]["group std"]
    start, worst = 0, 0.0
    for batch in equal_reward_batches()[name]:
        tokens, logits = batch["mask"].size, batch["logits"].size
        worst = max(worst, float(np.abs(flat[start : start + tokens]).max()))
        start += tokens + 2 * logits
    return worst
