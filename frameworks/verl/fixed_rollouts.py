"""Has verl's agent loop take recorded completions; imported in each process.

See studies/lockstep/fixed_rollout_training.py.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from frameworks import import_hooks, recorded_rollouts

if TYPE_CHECKING:
    from frameworks.adapter import Command, Paths

EXTERNAL = "VERL_USE_EXTERNAL_MODULES"
RELEASES = ()


def edit(command: Command, paths: Paths) -> None:
    """Prompts come in the order of the file; recorded completions have no probabilities of a sampler, only logged."""
    command.arguments.extend(["data.shuffle=False", "actor_rollout_ref.rollout.calculate_log_probs=False"])
    command.environment[EXTERNAL] += f",{__name__}"


class Replayed:
    """In place of the client of vLLM's server, for one of a prompt's completions."""

    def __init__(self, sample: int, step: int) -> None:
        """Take the completion's number and the step that it is for."""
        self.sample, self.step = sample, step

    async def generate(self, request_id: str, *, prompt_ids: list[int], **_: Any) -> Any:
        """The recorded token ids."""
        from verl.workers.rollout.replica import TokenOutput

        weights_of = self.step - 1  # verl's word for the weights that sampled
        steps = dict.fromkeys(("global_steps", "min_global_steps", "max_global_steps"), weights_of)
        ids = recorded_rollouts.completion(prompt_ids, self.sample)
        return TokenOutput(token_ids=ids, stop_reason="completed", extra_fields=steps)


def replay_completions(module: ModuleType) -> None:
    """Replace the client of each agent loop, which serves one completion."""
    run = module.SingleTurnAgentLoop.run

    async def replayed(self: Any, sampling_params: dict[str, Any], **named: Any) -> Any:
        self.server_manager = Replayed(named["session_id"], int(named["global_steps"]))
        return await run(self, sampling_params, **named)

    module.SingleTurnAgentLoop.run = replayed


import_hooks.after_import({"verl.experimental.agent_loop.single_turn_agent_loop": replay_completions})
