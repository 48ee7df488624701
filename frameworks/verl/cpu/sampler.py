"""verl's own replay buffer with a shorter poll interval: its 2 s are as long as a small step.

Used on the CPU alone, by `trainer.v1.sampler.custom_sampler`.
"""

from __future__ import annotations

from typing import Any

from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer


class QuickReplayBuffer(ReplayBuffer):
    """ReplayBuffer with a short poll interval."""

    def __init__(self, **settings: Any) -> None:
        """Takes what ReplayBuffer takes."""
        super().__init__(**settings, poll_interval=0.05)
