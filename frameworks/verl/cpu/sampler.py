"""verl's own replay buffer, asked more often: it looks for completions every 2 s, as long as a small step takes.

Named in `trainer.v1.sampler.custom_sampler`, on the CPU alone.
"""

from __future__ import annotations

from typing import Any

from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer


class QuickReplayBuffer(ReplayBuffer):  # type: ignore[misc]
    """ReplayBuffer with a short poll interval."""

    def __init__(self, **settings: Any) -> None:
        """Takes what ReplayBuffer takes."""
        super().__init__(**settings, poll_interval=0.05)
