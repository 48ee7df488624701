"""Which groups the installed verl and OpenRLHF keep under dynamic sampling; run with their Python.

`kept_groups.py FRAMEWORK < CASE`: its `groups` map a name to `scores` of completions and to their `rewards`, which a
penalty on length may have changed. Each release's own code judges them; what brings it the completions is a stand-in.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

Groups = Mapping[str, Mapping[str, list[float]]]


def kept_by_verl(groups: Groups, metric: str) -> list[str]:
    """Those that `ReplayBuffer` would train on."""
    import torch
    from verl.trainer.ppo.v1 import replay_buffer

    def stored(keys: list[str], **_: Any) -> dict[str, Any]:
        rows = [(groups[key.split("_")[0]], int(key.split("_")[1])) for key in keys]
        return {
            "rm_scores": [torch.tensor([0.0, group["rewards"][row]]) for group, row in rows],
            "extra_fields": [{"reward_extra_info": {"score": group["scores"][row]}} for group, row in rows],
        }

    buffer = replay_buffer.ReplayBuffer.__new__(replay_buffer.ReplayBuffer)
    buffer.filter_groups_metric, buffer._dapo_classification_cache = metric, defaultdict(dict)
    buffer.finished_keys = {"train": set(groups)}
    buffer.partitions = {
        "train": {f"{name}_{row}": {} for name in groups for row in range(len(groups[name]["scores"]))}
    }
    replay_buffer.tq = SimpleNamespace(kv_batch_get=stored)
    dropped, _ = buffer._dapo_filtered_keys("train")
    return [name for name in groups if name not in dropped]


def buffer_on_the_cpu() -> list[Any]:
    """What the buffer of trainings on the CPU knows of dynamic sampling from the settings of such a run."""
    from frameworks.verl.cpu.ordered_replay_buffer import OrderedReplayBuffer

    buffer = OrderedReplayBuffer(
        trainer_mode="sync", trainer_config={}, max_off_policy_threshold=None, max_off_policy_strategy="drop",
        sampler_kwargs={"filter_groups_metric": "score", "train_batch_size": 32}, refill_fn=print,
    )  # fmt: skip
    return [buffer.filter_groups_metric, buffer.train_batch_size, buffer.gen_batch_size]


def kept_by_openrlhf(groups: Groups) -> list[str]:
    """Those that `SamplesGenerator` would train on."""
    import torch
    from openrlhf.trainer.ppo_utils import samples_generator

    samples_generator.ray = SimpleNamespace(
        wait=lambda refs, **_: (refs[:1], refs[1:]),
        get=lambda name: [(name, score) for score in groups[name]["scores"]],
    )
    generator = samples_generator.SamplesGenerator.__new__(samples_generator.SamplesGenerator)
    generator.args = SimpleNamespace(algo=SimpleNamespace(dynamic_filtering_range=(0.0, 1.0)))
    generator._dispatch_prompts_to_vllm = lambda prompts, *_, **__: list(prompts)
    generator._process_response_into_experience = lambda response, **_: SimpleNamespace(
        name=response[0], scores=[torch.tensor(response[1])]
    )
    rows = ((None, [name], [""], [None]) for name in groups)
    experiences, _, _ = generator._generate_vllm(rows, len(groups), dynamic_filtering=True)
    return list(dict.fromkeys(one.name for one in experiences))


def top_k_of_openrlhf(environment: Mapping[str, str]) -> int:
    """The top k that vLLM is asked for by the agent of runs that state one."""
    import os

    from openrlhf.utils.agent import SingleTurnAgentExecutor
    from vllm import SamplingParams

    from frameworks.openrlhf.sampling_agent import AgentExecutor

    async def asked(self: Any, prompt: str, label: str, sampling_params: Any) -> int:
        return int(sampling_params.top_k)

    os.environ |= environment
    SingleTurnAgentExecutor.execute = asked
    return asyncio.run(AgentExecutor().execute("", "", SamplingParams(top_k=-1)))


def main() -> None:
    """Command line."""
    case = json.load(sys.stdin)
    if sys.argv[1] == "verl":
        answer: dict[str, Any] = {metric: kept_by_verl(case["groups"], metric) for metric in ("reward", "score")}
        answer["buffer"] = buffer_on_the_cpu()
    else:
        kept = kept_by_openrlhf(case["groups"])
        answer = {"scores": kept, "top_k": top_k_of_openrlhf(case["environment"])}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
