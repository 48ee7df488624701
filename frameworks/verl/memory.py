"""What verl keeps in GPU memory: FSDP with Adam, weights and optimiser in single precision, offloaded where asked."""

from __future__ import annotations

from contracts.run_file import Run, Stage
from frameworks.memory import Memory, longest_sequence, reference_bytes

ACTOR, CRITIC, REFERENCE = "actor_rollout_ref.actor", "critic", "actor_rollout_ref.ref"
# Bytes per parameter, divided over the GPUs: weights and gradients 4 each, Adam's two moments 8.
WEIGHTS, ADAM, WHOLE = 4, 8, 16


def estimate(run: Run, stage: Stage, gpus: int, parameters: float) -> Memory:
    """See frameworks.adapter.Adapter.memory."""

    def offloaded(part: str, what: str) -> bool:
        return bool(
            stage.native.get(f"{part}.fsdp_config.{what}") or stage.native.get(f"{part}.model.fsdp_config.{what}")
        )

    resident = {}
    for part in (ACTOR, CRITIC) if run.algorithm == "ppo" else (ACTOR,):
        stays = WEIGHTS * (not offloaded(part, "param_offload")) + ADAM * (not offloaded(part, "optimizer_offload"))
        resident[part] = stays * parameters / gpus
    reference = 0.0 if offloaded(REFERENCE, "param_offload") else reference_bytes(stage, parameters) / gpus
    # One model trains at a time, whole, while what is not offloaded of the other stays.
    training = WHOLE * parameters / gpus + sum(resident.values()) - min(resident.values())
    return Memory(
        training=training + reference,
        generating=sum(resident.values()) + reference,
        engine_share=float(stage.native.get("actor_rollout_ref.rollout.gpu_memory_utilization", 0.5)),
        engine_sleeps=True,
        scored_tokens=longest_sequence(stage),
    )
