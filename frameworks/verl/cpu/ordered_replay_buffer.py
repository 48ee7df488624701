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
        """Takes what ReplayBuffer takes, and as `sampler_kwargs` what verl tells its own buffer of dynamic sampling."""
        own = dict(settings["sampler_kwargs"])
        super().__init__(**settings, poll_interval=0.05, **own, **({"gen_batch_size": 1} if own else {}))

    def _select_prompt_uids(self, partition_id: str, sampleable_keys: Any, batch_size: int) -> Any:
        return super()._select_prompt_uids(partition_id, sorted(sampleable_keys), batch_size)

    def _materialize_batch(self, *arguments: Any) -> Any:
        batch = super()._materialize_batch(*arguments)
        rows = sorted(
            zip(batch.keys, batch.tags, strict=True), key=lambda row: repeatable_requests.completion_position(row[0])
        )
        batch.keys[:], batch.tags[:] = (list(column) for column in zip(*rows, strict=True))
        return batch
