"""What a framework keeps in GPU memory and on disk; cluster.gpu_memory and cluster.capacity estimate with it."""

from __future__ import annotations

from typing import NamedTuple

from contracts.run_file import Run, Stage


class Memory(NamedTuple):
    """Of one GPU while a stage trains."""

    training: float  # bytes of weights, gradients and optimiser of all models that are on it
    generating: float  # bytes of these that stay while vLLM generates
    engine_share: float  # part of a GPU's memory that vLLM takes
    engine_sleeps: bool  # vLLM returns its memory while the model trains
    scored_tokens: int  # of one completion with its prompt: how many have logits in memory at once
    host: (
        float  # bytes of a node's own memory: weights that all its processes load at once, and what is offloaded to it
    )
    adapter: float = 0.0  # bytes per parameter of LoRA's matrices, optimiser included
    pass_tokens: int | None = None  # of one forward pass; None: of as many whole completions as the run file states
    engine_parallel: int = 1  # GPUs that share one copy of the weights in vLLM, and its cache


class CheckpointSize(NamedTuple):
    """Bytes per parameter of a native checkpoint."""

    state: int  # optimiser's state with the weights that belong to it
    weights: int  # the weights once more, as they are exported
    states_kept: int | None = None  # how many states are kept; None: all
    frozen: int = 0  # with LoRA, bytes for each weight that is not trained, in each state


def longest_sequence(stage: Stage) -> int:
    """Tokens of the longest prompt and completion; 512 for a prompt whose length is not limited."""
    return int(stage.rollout.get("max_prompt_tokens", 512) + stage.rollout["max_response_tokens"])


def has_reference(stage: Stage) -> bool:
    """Whether a stage has a reference model: it has a KL term."""
    return bool(stage.objective.get("kl_coefficient", 0))


def reference_bytes(stage: Stage, parameters: float, each: int = 2) -> float:
    """Bytes of the reference model, if there is one, with as many for each parameter."""
    return each * parameters * has_reference(stage)


def deepspeed_state(
    run: Run, gpus: int, parameters: float, models: int, reference: float, adam: int = 12
) -> tuple[float, float]:
    """Bytes on one GPU while DeepSpeed trains, and those of them that stay while vLLM generates.

    Mixed precision with Adam takes 2P + 2P + 12P bytes for P parameters (Rajbhandari et al. 2020, "ZeRO", section 3.1);
    zero2 divides the last two over the GPUs, zero3 all.

    Args:
        run: names the sharding.
        gpus: that share a model's state.
        parameters: P.
        models: that are trained: 1, or 2 with a critic.
        reference: bytes of the reference model before sharding.
        adam: bytes per parameter of Adam and its copy of the weights; 0 where they are offloaded.
    """
    sharding = run.hardware.get("sharding", "none")
    by_weights = gpus if sharding == "zero3" else 1
    by_rest = gpus if sharding in ("zero2", "zero3") else 1
    training = 2 * parameters / by_weights + (2 + adam) * parameters / by_rest
    generating = 2 * parameters / by_weights + adam * parameters / by_rest
    return models * training + reference / by_weights, models * generating + reference / by_weights
