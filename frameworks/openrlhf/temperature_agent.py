"""Samples at another temperature than the one that OpenRLHF divides the training's logits by (`train.agent_func_path`).

The release has one setting for both; earlier ones did not divide. Sampling and rewards are otherwise the release's own.
"""

from __future__ import annotations

import os
from typing import Any

from openrlhf.utils.agent import SingleTurnAgentExecutor

from frameworks.openrlhf.command import REWARD_FILE, SAMPLING_TEMPERATURE


class AgentExecutor(SingleTurnAgentExecutor):
    """OpenRLHF's own executor for one turn, with our reward file and the temperature of the environment."""

    def __init__(self) -> None:
        """Read the temperature."""
        super().__init__(str(REWARD_FILE))
        self.temperature = float(os.environ[SAMPLING_TEMPERATURE])

    async def execute(self, prompt: str, label: str, sampling_params: Any, *others: Any, **named: Any) -> Any:
        """See OpenRLHF."""
        sampling_params.temperature = self.temperature
        return await super().execute(prompt, label, sampling_params, *others, **named)
