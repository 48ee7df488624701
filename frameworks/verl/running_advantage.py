"""Advantages from a running mean and standard deviation, as an advantage estimator that verl 0.9.1 finds by its name.

24 points (M. Liao 2025, equations 2 to 4): of each group of completions,

    mean <- m * mean + (1 - m) * mean(rewards)      std likewise      advantage = (reward - mean) / std

where the momentum m begins at 0 and grows by a step after each update, up to a largest value. Groups are taken in their
order. The state is in memory: a training that resumes begins with m = 0 again. VERL_USE_EXTERNAL_MODULES loads this.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from frameworks import import_hooks

NAME = "grpo_running"
VARIABLE = "CROSSZERO_MOMENTUM"  # environment variable: [step, largest]
SMALLEST = 1e-6  # added to the standard deviation, as verl does in GRPO


class Running:
    """The running mean and standard deviation of groups' rewards."""

    def __init__(self, step: float, largest: float) -> None:
        """Begin with a momentum of 0, which grows by `step` after each update up to `largest`."""
        self.step, self.largest = step, largest
        self.momentum = self.mean = self.deviation = 0.0

    def advantages(self, rewards: Sequence[float], groups: Sequence[Any]) -> list[float]:
        """The advantage of each completion of one update.

        Args:
            rewards: one per completion.
            groups: of each completion, the prompt that it belongs to.
        """
        of_completions = [0.0] * len(rewards)
        for group in dict.fromkeys(groups):
            positions = [position for position, other in enumerate(groups) if other == group]
            own = [rewards[position] for position in positions]
            mean = sum(own) / len(own)
            squares = sum((reward - mean) ** 2 for reward in own)
            deviation = math.sqrt(squares / (len(own) - 1)) if len(own) > 1 else 0.0  # as torch.std
            self.mean = self.momentum * self.mean + (1 - self.momentum) * mean
            self.deviation = self.momentum * self.deviation + (1 - self.momentum) * deviation
            for position in positions:
                of_completions[position] = (rewards[position] - self.mean) / (self.deviation + SMALLEST)
        self.momentum = min(self.momentum + self.step, self.largest)
        return of_completions


def register_estimator(module: ModuleType) -> None:
    """Add the estimator to verl's, given the module `verl.trainer.ppo.core_algos`."""
    state = Running(*json.loads(os.environ.get(VARIABLE, "[0.0, 0.0]")))

    def estimate(token_level_rewards: Any, response_mask: Any, index: Any, **_: Any) -> tuple[Any, Any]:
        advantages = state.advantages(token_level_rewards.sum(dim=-1).tolist(), [str(group) for group in index])
        spread = token_level_rewards.new_tensor(advantages).unsqueeze(-1) * response_mask
        return spread, spread

    module.register_adv_est(NAME)(estimate)


if os.environ.get(VARIABLE):
    import_hooks.after_import({"verl.trainer.ppo.core_algos": register_estimator})
