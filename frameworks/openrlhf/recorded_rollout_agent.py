"""Replays recorded completions in place of vLLM (`train.agent_func_path`); rewards are given as in every training."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from openrlhf.utils.agent import SingleTurnAgentExecutor

from frameworks import recorded_rollouts
from frameworks.openrlhf.command import REWARD_FILE


class Replayed:
    """In place of the engine, for one of a prompt's completions."""

    def __init__(self, sample: int) -> None:
        """Take the completion's number."""
        self.sample = sample

    async def generate(self, prompt_token_ids: list[int], sampling_params: Any, multi_modal_data: Any = None) -> Any:
        """The recorded token ids, as vLLM would return them."""
        ids = recorded_rollouts.completion(prompt_token_ids, self.sample)
        ended = "length" if len(ids) >= sampling_params.max_tokens else "stop"
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=ids, finish_reason=ended, logprobs=None)])


class AgentExecutor(SingleTurnAgentExecutor):
    """OpenRLHF's own executor for one turn, with our reward file and the recording's completions."""

    def __init__(self) -> None:
        """No completion was handed out yet."""
        super().__init__(str(REWARD_FILE))
        self.handed_out = Counter[str]()

    async def execute(self, prompt: str, label: str, *others: Any, **named: Any) -> Any:
        """See OpenRLHF; it calls for the completions of a prompt one after the other."""
        sample = self.handed_out[prompt]
        self.handed_out[prompt] += 1
        return await super().execute(prompt, label, *others, **{**named, "llm_engine": Replayed(sample)})
