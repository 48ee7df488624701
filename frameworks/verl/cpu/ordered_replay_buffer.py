"""verl's own replay buffer with a shorter poll interval, and with a step's completions in the order of their prompts.

Its 2 s are as long as a small step; as released, completions are in the order in which they ended. Used on the CPU
alone, by `trainer.v1.sampler.custom_sampler`.
"""

from __future__ import annotations

from typing import Any

from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

from frameworks.verl.cpu import repeatable_requests


class OrderedReplayBuffer(ReplayBuffer):
    """ReplayBuffer with a short poll interval, and completions in order."""

    def __init__(self, **settings: Any) -> None:
        """Takes what ReplayBuffer takes."""
        super().__init__(**settings, poll_interval=0.05)

    def _materialize_batch(self, *arguments: Any) -> Any:
        batch = super()._materialize_batch(*arguments)
        rows = sorted(
            zip(batch.keys, batch.tags, strict=True), key=lambda row: repeatable_requests.completion_position(row[0])
        )
        batch.keys[:], batch.tags[:] = (list(column) for column in zip(*rows, strict=True))
        return batch
