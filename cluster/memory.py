"""Whether a training fits its GPUs, by formula. An estimate: it tells 40 GB from 80 GB, not 76 from 80.

With P parameters, N GPUs that share a state, and bytes:

- weights, gradients and Adam's state in mixed precision take 2P + 2P + 12P (Rajbhandari et al. 2020, "ZeRO", section
  3.1): zero2 divides the last two by N, zero3 all. FSDP in verl keeps 4P + 4P + 8P, all divided by N.
- a reference model takes 2P; PPO's critic as much as the actor.
- activations with checkpointing take 2·b·s·h for each layer and 34·b·s·h within one (Korthikanti et al. 2022, "Reducing
  activation recomputation", sections 4 and 5), for b completions of s tokens and hidden size h.
- logits take 6·b·s·V: V numbers for each token in 16 bits, and in 32 while the loss is computed.
- a token in vLLM's cache takes 4·layers·kv_heads·head (keys and values in 16 bits; Kwon et al. 2023, "PagedAttention",
  section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from contracts.run_file import ROOT, Run, Stage

GB = 1e9
OVERHEAD_GB = 3.0  # CUDA's context, NCCL's buffers, what the allocator cannot use; ours, from nothing better
ACTOR, CRITIC, REFERENCE = "actor_rollout_ref.actor", "critic", "actor_rollout_ref.ref"


@dataclass(frozen=True)
class Estimate:
    """Memory of the fullest GPU, in GB, and of what vLLM keeps beside it."""

    state: float  # weights, gradients, optimiser, reference model, critic
    working: float  # activations and logits of one forward and backward pass
    engine: float  # vLLM on the same GPU while it generates; 0 where it has GPUs of its own
    peak: float
    sequences: int  # of full length that vLLM's cache holds at once, on each of its GPUs


def shape(model: str) -> dict[str, float] | None:
    """A model's shape, None if it is not known."""
    file = Path(ROOT / "cluster" / "models.yaml")
    known: dict[str, dict[str, float]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return known.get(model)


def estimate(run: Run, stage: Stage, gpu_gb: float) -> Estimate | None:
    """What one stage needs on GPUs of this size; None for a model without a known shape, or a run without GPUs."""
    of = shape(run.model)
    if of is None or not run.hardware["gpus"]:
        return None
    share = _utilisation(run, stage)
    separate = stage.rollout.get("engine") == "vllm-server"
    gpus = run.hardware["gpus"] - (stage.rollout.get("gpus", 1) if separate else 0)
    length = stage.rollout.get("max_prompt_tokens", 512) + stage.rollout["max_response_tokens"]
    batch = stage.batch.get("samples_per_device", 1)
    working = batch * length * of["hidden"] * (2 * of["layers"] + 34)
    # TRL takes logits of the completion alone.
    scored = stage.rollout["max_response_tokens"] if run.framework == "trl" else length
    working += 6 * batch * scored * of["vocabulary"]
    training, resident = _state(run, stage, gpus, of["parameters"])
    engine = 0.0 if separate or stage.rollout.get("engine") == "transformers" else share * gpu_gb
    # verl and OpenRLHF have vLLM give its memory back while they train; TRL has not, unless told to.
    sleeps = run.framework != "trl" or bool(stage.native.get("vllm_enable_sleep_mode"))
    train = training / GB + working / GB + (0 if sleeps else engine)
    peak = max(train, resident / GB + engine) + OVERHEAD_GB
    token = 4 * of["layers"] * of["kv_heads"] * of["head"]
    cache = share * gpu_gb * GB - 2 * of["parameters"]
    return Estimate(training / GB, working / GB, engine, peak, max(0, int(cache / (token * length))))


def _utilisation(run: Run, stage: Stage) -> float:
    """The part of a GPU that vLLM takes."""
    keys = {
        "trl": ("vllm_gpu_memory_utilization", 0.3 if stage.rollout.get("engine") == "vllm-colocated" else 0.9),
        "verl": ("actor_rollout_ref.rollout.gpu_memory_utilization", 0.5),
        "openrlhf": ("vllm.gpu_memory_utilization", 0.95),
    }
    key, default = keys[run.framework]
    return float(stage.native.get(key, default))


def _state(run: Run, stage: Stage, gpus: int, parameters: float) -> tuple[float, float]:
    """Bytes on one GPU while it trains, and those of them that stay while it generates."""
    critic = int(run.algorithm == "ppo")
    reference = 2 * parameters if stage.objective.get("kl_coefficient", 0) else 0.0
    if run.framework == "verl":
        return _state_of_verl(stage, gpus, parameters, critic, reference)
    if run.framework == "openrlhf" and critic and stage.rollout.get("engine") == "vllm-server":
        gpus, critic = (
            gpus // 2,
            0,
        )  # actor and critic have GPUs of their own, and the reference model is with the actor
    sharding = run.hardware.get("sharding", "none")
    by_weights = gpus if sharding == "zero3" else 1
    by_rest = gpus if sharding in ("zero2", "zero3") else 1
    model = 2 * parameters / by_weights + 14 * parameters / by_rest
    frozen = 2 * parameters / by_weights + 12 * parameters / by_rest
    total = model * (1 + critic) + reference / by_weights
    return total, frozen * (1 + critic) + reference / by_weights


def _state_of_verl(stage: Stage, gpus: int, parameters: float, critic: int, reference: float) -> tuple[float, float]:
    def offloaded(part: str, what: str) -> bool:
        return bool(
            stage.native.get(f"{part}.fsdp_config.{what}") or stage.native.get(f"{part}.model.fsdp_config.{what}")
        )

    resident = {}
    for part in (ACTOR, CRITIC)[: 1 + critic]:
        weights = 0 if offloaded(part, "param_offload") else 4
        adam = 0 if offloaded(part, "optimizer_offload") else 8
        resident[part] = (weights + adam) * parameters / gpus
    kept = 0.0 if offloaded(REFERENCE, "param_offload") else reference / gpus
    whole = 16 * parameters / gpus
    # One model trains at a time, whole, while what is not offloaded of the others stays.
    train = max(whole + sum(resident.values()) - resident[part] for part in resident) + kept
    return train, sum(resident.values()) + kept
