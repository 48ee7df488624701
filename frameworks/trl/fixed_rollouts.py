"""Records what TRL's trainer samples, or has it take recorded completions.

See studies/lockstep/fixed_rollout_training.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from frameworks import recorded_rollouts

if TYPE_CHECKING:
    from frameworks.adapter import Command, Paths


RELEASES = ()


def edit(command: Command, paths: Paths) -> None:
    """Computes in float32; recorded prompts come in the order of the file. The reward hook calls `install`."""
    command.arguments.extend(["--bf16", "False"])
    if recorded_rollouts.RECORD not in command.environment:
        command.arguments.extend(["--shuffle_dataset", "False"])


def install() -> None:
    """Replace the trainer's sampling; to be called in its process before it is made."""
    from trl import GRPOTrainer

    sample = GRPOTrainer._generate_single_turn

    def record(self: Any, prompt_ids: list[list[int]], *others: Any, **named: Any) -> Any:
        completion_ids, log_probabilities = sample(self, prompt_ids, *others, **named)
        recorded_rollouts.write_sampled(prompt_ids, completion_ids)
        return completion_ids, log_probabilities

    def replay(self: Any, prompt_ids: list[list[int]], *_: Any, **__: Any) -> Any:
        numbers = (index % self.num_generations for index in range(len(prompt_ids)))
        return [
            recorded_rollouts.completion(ids, number) for ids, number in zip(prompt_ids, numbers, strict=True)
        ], None

    GRPOTrainer._generate_single_turn = record if recorded_rollouts.RECORD in os.environ else replay
