"""Samples as OpenRLHF has no setting for (`train.agent_func_path`): at a temperature of its own, from the top k alone.

The release has one temperature for the sampler and the training's logits, which earlier ones did not divide, and no
top k. Sampling and rewards are otherwise the release's own.
"""

from __future__ import annotations

import os
from typing import Any

from openrlhf.utils.agent import SingleTurnAgentExecutor

from frameworks.openrlhf.command import REWARD_FILE, SAMPLING


class AgentExecutor(SingleTurnAgentExecutor):
    """OpenRLHF's own executor for one turn, with our reward file and what the environment says of sampling."""

    def __init__(self) -> None:
        """Read what is set of SAMPLING."""
        super().__init__(str(REWARD_FILE))
        self.changes = {
            name: kind(os.environ[variable]) for name, (variable, kind) in SAMPLING.items() if variable in os.environ
        }

    async def execute(self, prompt: str, label: str, sampling_params: Any, *others: Any, **named: Any) -> Any:
        """See OpenRLHF."""
        for name, value in self.changes.items():
            setattr(sampling_params, name, value)
        return await super().execute(prompt, label, sampling_params, *others, **named)
