"""Keys of an objective that contradict each other, or that no part of it reads, whatever the framework."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from contracts.run_file import Run
from frameworks.run_settings import refuse

CLIP_RATIO = 0.2  # of every framework by default
BOUNDED_RATIO = ("ppo", "gspo", "luspo", "bypass_mode")  # losses whose dual_clip is beyond their clip range


def check(run: Run, keys: Mapping[str, Any], unclipped: Collection[str]) -> None:
    """Raise UserError for bounds in the wrong order, and for keys that would have no effect.

    Args:
        run: for messages.
        keys: of the stage, as `frameworks.run_settings.values` gives them.
        unclipped: losses that do not read the clip range.
    """
    # A text in a number's place is refused elsewhere.
    numbers = {key: value for key, value in keys.items() if isinstance(value, int | float)}
    _check_clips(run, keys, numbers, unclipped)
    _check_correction(run, keys, numbers)
    buffer, longest = numbers.get("objective.overlong_buffer", 0), numbers.get("rollout.max_response_tokens", math.inf)
    if buffer > max(longest, 0):
        text = f": {buffer} tokens are more than the longest completion has, {longest}"
        raise refuse(run, "objective.overlong_buffer", text, "settings-conflict")
    if keys.get("objective.dynamic_sampling") and keys.get("batch.samples_per_prompt") == 1:
        text = " needs at least 2 samples_per_prompt: one completion has no group"
        raise refuse(run, "objective.dynamic_sampling", text, "too-few-samples")


def _check_clips(run: Run, keys: Mapping[str, Any], numbers: Mapping[str, float], unclipped: Collection[str]) -> None:
    loss = keys.get("objective.policy_loss", "ppo")
    for key in ("objective.clip_ratio", "objective.clip_ratio_high"):
        if key in keys and loss in unclipped:
            raise refuse(run, key, f": {loss} has no clip range; remove it", "settings-conflict")
    key = next((key for key in ("objective.clip_ratio_high", "objective.clip_ratio") if key in numbers), "")
    high = numbers.get(key, CLIP_RATIO)
    if high < 0 and loss != "cispo":
        text = f": {loss} would have no gradient where the advantage is positive"
        raise refuse(run, key, text, "value-not-in-framework")
    if loss in BOUNDED_RATIO and numbers.get("objective.dual_clip", 2 + high) <= 1 + high:
        text = f": should be above the clip range, which ends at {1 + high}; frameworks differ below it"
        raise refuse(run, "objective.dual_clip", text, "settings-conflict")


def _check_correction(run: Run, keys: Mapping[str, Any], numbers: Mapping[str, float]) -> None:
    for key in (f"objective.correction_{part}" for part in ("form", "low", "high")):
        if key in keys and keys.get("objective.sampler_correction", "none") == "none":
            raise refuse(run, key, " needs sampler_correction", "settings-conflict")
    low, high = (numbers.get(f"objective.correction_{end}") for end in ("low", "high"))
    if low is not None and high is not None and low >= high:
        text = f": should be below correction_high, {high}, but is {low}"
        raise refuse(run, "objective.correction_low", text, "settings-conflict")
