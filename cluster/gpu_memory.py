"""Whether a training fits its GPUs, by formula. An estimate: it can tell 40 GB from 80 GB, but not 76 from 80.

Weights, gradients, optimiser, reference model and critic: each framework's own (Adapter.memory_per_gpu). For the rest:

- activations with checkpointing take 2·b·s·h for each layer and 34·b·s·h within one (Korthikanti et al. 2022, "Reducing
  activation recomputation", sections 4 and 5), for b completions of s tokens and hidden size h.
- logits take 16·b·s·V where the loss keeps them in 32 bits: V numbers for each token, their gradient, and two copies
  while it is computed. They are gone before a layer is computed again. A framework's fused loss kernel takes less.
- of sharded weights (zero3) one unit is whole during a pass, 2 bytes a parameter: the largest has the embeddings, and
  the head where it is not tied to them.
- where a framework fills passes up to a number of tokens, b·s is that number.
- a token in vLLM's cache takes 4·layers·kv_heads·head (keys and values in 16 bits; Kwon et al. 2023, "PagedAttention",
  section 3).

`crosszero study gpu_memory --environment trl` counts the same on fake tensors; its README compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.run_file import Run, Stage
from frameworks import adapter
from frameworks.memory import longest_sequence
from recipes import models
from system.yaml_files import read_yaml

GB = 1e9
LOGIT_BYTES = 16
TIGHT = 0.9  # of a GPU; above it the estimate is too uncertain to say that a run fits
OVERHEAD_GB = 3.0  # CUDA's context, NCCL's buffers, what the allocator cannot use; our guess, without a source


@dataclass(frozen=True)
class Estimate:
    """Memory of the fullest GPU in GB, and how much vLLM's cache holds."""

    state: float  # weights, gradients, optimiser, reference model, critic
    working: float  # activations, logits and gathered weights of one forward and backward pass
    engine: float  # vLLM on the same GPU while it generates; 0 where it has GPUs of its own
    peak: float
    sequences: int  # of full length that vLLM's cache holds at once, on each of its GPUs or groups of them
    host: float  # a node's own memory: weights while they are loaded, and what is offloaded


def model_shape(model: str) -> dict[str, float] | None:
    """A model's shape, None if it is not known; a warmed-up model has the shape of the one that it is made from."""
    known: dict[str, dict[str, float]] = read_yaml(Path(__file__).with_name("models.yaml"))
    return known.get(models.pretrained(model))


def working_bytes(shape: Mapping[str, float], tokens: float, scored: float, sharded: bool) -> float:
    """Bytes of one forward and backward pass, with gradient checkpointing.

    Args:
        shape: the model's shape.
        tokens: of the pass.
        scored: how many of them have logits.
        sharded: the weights are spread over the GPUs, and gathered for the pass.
    """
    embeddings = shape["vocabulary"] * shape["hidden"] * (1 if shape.get("tied") else 2)
    kept, within, logits = (
        2 * shape["layers"] * shape["hidden"],
        34 * shape["hidden"],
        LOGIT_BYTES * shape["vocabulary"],
    )
    return kept * tokens + max(within * tokens, logits * scored) + 2 * embeddings * sharded


def adapter_parameters(shape: dict[str, float], lora: dict[str, Any]) -> float:
    """Parameters of LoRA's matrices: r × (inputs + outputs) of each layer that has them (Hu et al. 2021, section 4.1).

    Args:
        shape: the model's shape.
        lora: of the run file; empty: 0.
    """
    if not lora:
        return 0.0
    hidden, inner, queries, keys = (
        shape["hidden"], shape["intermediate"], shape["heads"] * shape["head"], shape["kv_heads"] * shape["head"],
    )  # fmt: skip
    sizes = {"q_proj": hidden + queries, "k_proj": hidden + keys, "v_proj": hidden + keys, "o_proj": queries + hidden}
    sizes |= dict.fromkeys(("gate_proj", "up_proj", "down_proj"), hidden + inner)
    targets = sizes if "all-linear" in lora["target_modules"] else lora["target_modules"]
    return float(lora["r"] * shape["layers"] * sum(sizes.get(name, 0) for name in targets))


def estimate_stage(run: Run, stage: Stage, gpu_gb: float) -> Estimate | None:
    """What one stage needs on its GPUs.

    Args:
        run: the run.
        stage: one of its stages.
        gpu_gb: size of each GPU, in GB.

    Returns:
        None for a run without GPUs, or a model that is not in cluster/models.yaml.
    """
    model = model_shape(run.model)
    if model is None or not run.hardware["gpus"]:
        return None
    separate = stage.rollout.get("engine") == "vllm-server"
    gpus = run.hardware["gpus"] - (stage.rollout.get("gpus", 1) if separate else 0)
    needs = adapter.load(run.framework).memory_per_gpu(run, stage, gpus, model["parameters"])
    adapters = needs.adapter * adapter_parameters(model, stage.lora)
    length, batch = longest_sequence(stage), stage.batch.get("samples_per_device", 1)
    tokens, scored = needs.pass_tokens or batch * length, needs.pass_tokens or batch * needs.scored_tokens
    passing = working_bytes(model, tokens, scored, run.hardware.get("sharding") == "zero3")
    engine = 0.0 if separate or stage.rollout.get("engine") == "transformers" else needs.engine_share * gpu_gb
    train = (needs.training + adapters + passing) / GB + (0 if needs.engine_sleeps else engine)
    peak = max(train, (needs.generating + adapters) / GB + engine) + OVERHEAD_GB
    token = 4 * model["layers"] * model["kv_heads"] * model["head"] / needs.engine_parallel
    cache = needs.engine_share * gpu_gb * GB - 2 * model["parameters"] / needs.engine_parallel
    sequences = max(0, int(cache / (token * length)))
    return Estimate((needs.training + adapters) / GB, passing / GB, engine, peak, sequences, needs.host / GB)


def fullest_stage(run: Run, gpu_gb: float) -> Estimate | None:
    """The estimate of the stage that needs most memory; None if no stage has one."""
    estimates = [estimate_stage(run, stage, gpu_gb) for stage in run.stages]
    known = [one for one in estimates if one is not None]
    return max(known, key=lambda one: one.peak) if known else None


def fit_verdict(need: Estimate, gpu_gb: float, host_gb: float = math.inf) -> str:
    """Whether it fits GPUs and nodes of these sizes, in GB: yes, no, or tight."""
    if need.host > host_gb:
        return "no: the weights do not fit the node's memory"
    if not need.sequences:
        return "no: vLLM's share holds no whole completion"
    if need.peak > 1.1 * gpu_gb:
        return "no"
    return "tight" if need.peak > TIGHT * gpu_gb else "yes"
