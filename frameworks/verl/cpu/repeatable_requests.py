"""Has verl train the same weights from the same seed on the CPU; see frameworks/repeatable_sampling.py.

As released, prompts have random names, all requests draw from one generator, and a step's completions are in the order
in which they ended.
"""

from __future__ import annotations

from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any

from frameworks import repeatable_sampling

DIGITS = 12  # of a prompt's name


def name_prompts(module: ModuleType) -> None:
    """Name prompts by their number, in the place of random names."""
    assert callable(module.uuid.uuid4)
    numbers = count()
    module.uuid = SimpleNamespace(uuid4=lambda: f"{next(numbers):0{DIGITS}d}")  # type: ignore[attr-defined]


def completion_position(key: str) -> tuple[int, ...]:
    """Numbers of a prompt, its completion and a part of that, from `<prompt>_<completion>_<part>`."""
    return tuple(map(int, key.split("_")))


def sampling_parameters(
    config: Any, trajectory: dict[str, Any], params: dict[str, Any], request: dict[str, Any]
) -> dict[str, Any]:
    """The sampling parameters of one completion, with a seed and a place among those of its step.

    Args:
        config: of the training.
        trajectory: its step, and whether it is validated.
        params: of all completions.
        request: name and messages of the prompt, and the completion's number.

    With dynamic sampling nobody knows how many requests a step has, so that they have no places.
    """
    samples = config.actor_rollout_ref.rollout.n
    requests = config.data.train_batch_size * samples
    together = config.trainer.v1.trainer_mode == "sync" and requests <= config.actor_rollout_ref.rollout.max_num_seqs
    if trajectory["validate"] or not together:
        return params
    step, repeat = int(trajectory["step"]), int(request["session_id"])
    texts = [message["content"] for message in request["raw_prompt"]]
    own = {**params, "seed": repeatable_sampling.seed(config.data.seed, step, *texts, repeat)}
    if (config.algorithm.get("filter_groups") or {}).get("enable"):
        return own
    number = int(request["uid"]) * samples + repeat
    return {**own, "extra_args": repeatable_sampling.batch_position(str(step), number, requests)}


def seed_requests(module: ModuleType) -> None:
    """Give each request of a step its seed and its place."""
    run = module.AgentLoopWorker._run_agent_loop

    async def seeded(self: Any, params: dict[str, Any], trajectory: dict[str, Any], **named: Any) -> Any:
        return await run(self, sampling_parameters(self.config, trajectory, params, named), trajectory, **named)

    module.AgentLoopWorker._run_agent_loop = seeded


def hold_requests(module: ModuleType) -> None:
    """Have vLLM begin the requests of a step together."""
    repeatable_sampling.hold_requests(module.AsyncLLM)
