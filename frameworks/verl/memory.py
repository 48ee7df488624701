"""What verl keeps in memory: FSDP with Adam, weights and optimiser in single precision, offloaded where asked.

The reference model, too, is in single precision (`fsdp_config.model_dtype`, float32 by default for each role). With
LoRA it is the policy without its adapter.
"""

from __future__ import annotations

import math

from contracts.run_file import Run, Stage
from frameworks.lora import STATE_BYTES
from frameworks.memory import Memory, has_reference, longest_sequence

ACTOR, CRITIC, REFERENCE = "actor_rollout_ref.actor.fsdp_config", "critic.fsdp", "actor_rollout_ref.ref.fsdp_config"
# Bytes per parameter, divided over the GPUs: weights and gradients 4 each, Adam's two moments 8.
WEIGHTS, ADAM, WHOLE = 4, 8, 16
GATHERED = (
    2  # for each parameter of the whole model: weights in 16 bits, where they are not sharded again after a layer
)
DYNAMIC = "actor_rollout_ref.actor.use_dynamic_bsz"  # passes of so many tokens instead of so many completions:
SEQUENCE_GPUS = "actor_rollout_ref.actor.ulysses_sequence_parallel_size"  # that share a completion
PASS_TOKENS = ("actor_rollout_ref.actor.ppo_max_token_len_per_gpu", 16384)  # setting, and its default


def estimate(run: Run, stage: Stage, gpus: int, parameters: float) -> Memory:
    """See frameworks.adapter.Adapter.memory_per_gpu."""

    def stays(part: str, bytes_each: dict[str, int]) -> float:
        kept = sum(size for what, size in bytes_each.items() if not stage.native.get(f"{part}.{what}"))
        return kept * parameters / gpus

    train_bytes, of_model = WHOLE, {"param_offload": WEIGHTS, "optimizer_offload": ADAM}
    if stage.lora:
        train_bytes, of_model = WEIGHTS, {"param_offload": WEIGHTS}
    trained = (ACTOR, CRITIC) if run.algorithm == "ppo" else (ACTOR,)
    resident = [stays(part, of_model) for part in trained]
    own_reference = has_reference(stage) and not stage.lora
    reference = stays(REFERENCE, {"param_offload": WEIGHTS}) * own_reference
    whole = (len(trained) * sum(of_model.values()) + WEIGHTS * own_reference) * parameters / gpus
    per_node = gpus / run.hardware.get("nodes", 1)
    longest, shared, tokens = (
        longest_sequence(stage),
        stage.native.get(SEQUENCE_GPUS, 1),
        stage.native.get(*PASS_TOKENS),
    )
    gathered = GATHERED * parameters if run.hardware.get("sharding") == "zero2" else 0.0
    return Memory(
        # One model trains at a time, whole, while what is not offloaded of the other stays.
        training=train_bytes * parameters / gpus + sum(resident) - min(resident) + reference + gathered,
        generating=sum(resident) + reference,
        engine_share=float(stage.native.get("actor_rollout_ref.rollout.gpu_memory_utilization", 0.5)),
        engine_sleeps=True,
        scored_tokens=longest,
        # At most: models without tied embeddings are loaded by one process of a node and not by all.
        host=per_node * (WEIGHTS * parameters + whole - sum(resident) - reference),
        adapter=STATE_BYTES / gpus if stage.lora else 0.0,
        pass_tokens=max(math.ceil(longest / shared), tokens) if stage.native.get(DYNAMIC) else None,
        engine_parallel=int(stage.native.get("actor_rollout_ref.rollout.tensor_model_parallel_size", 1)),
    )
