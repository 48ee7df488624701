"""GPU memory of a training pass of each run, on fake tensors, beside the formula of `snakemake capacity`.

    crosszero study gpu_memory --environment trl --run tinyzero/ppo-7b --output memory.md

No GPU: torch counts the bytes of tensors that have shapes and no values, for one rank of FSDP2 (a fake process group).
One trained model of a run's size goes through two steps with its batch, number of GPUs and gradient checkpointing; for
a run through DeepSpeed, weights, gradients and optimiser are what DeepSpeed's documentation says. The loss keeps logits
in float32: what a framework's fused loss kernel saves is not seen.

A minute and half a GiB for each. What vLLM takes, CUDA's context, NCCL's buffers and fragmentation are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import gpu_memory
from contracts.run_file import Run, Stage
from frameworks import adapter
from frameworks.memory import deepspeed_state, longest_sequence
from recipes.runs import load_run, run_names
from system import durable, markdown
from system.command_line import argument_parser
from system.errors import UserError, run_command

GB = 1e9
KEPT = ("sharded_param", "sharded_grad", "opt")  # of torch's tracker: what stays between passes
OFFLOADED = "adam_offload"  # the setting by which the optimiser stays in the node's memory, also while it steps
COLUMNS = ("run", "GPUs", "tokens of a pass", "with logits", "state", "working", "sum", "formula", "formula − sum")


@dataclass(frozen=True)
class Pass:
    """One forward and backward pass of a GPU."""

    gpus: int
    rows: int
    tokens: int  # of each row
    scored: int  # of each row: how many have logits
    checkpointing: bool = True


def training_pass(run: Run, stage: Stage) -> Pass:
    """The pass that a stage's GPUs make, by its run file."""
    gpus = training_gpus(run, stage)
    needs = adapter.load(run.framework).memory_per_gpu(run, stage, gpus, 1.0)
    if needs.pass_tokens:
        return Pass(gpus, 1, needs.pass_tokens, needs.pass_tokens)
    return Pass(gpus, stage.batch["samples_per_device"], longest_sequence(stage), needs.scored_tokens)


def training_gpus(run: Run, stage: Stage) -> int:
    """GPUs that share one trained model: a server's have none; with a server actor and critic have half each."""
    if stage.rollout.get("engine") != "vllm-server":
        return int(run.hardware["gpus"])
    rest = int(run.hardware["gpus"]) - int(stage.rollout.get("gpus", 1))
    return rest // 2 if run.algorithm == "ppo" else rest


def model_configuration(shape: Mapping[str, Any], longest: int) -> Any:
    """The configuration of a model of this shape."""
    from transformers import Qwen2Config

    return Qwen2Config(
        vocab_size=int(shape["vocabulary"]),
        hidden_size=int(shape["hidden"]),
        intermediate_size=int(shape["intermediate"]),
        num_hidden_layers=int(shape["layers"]),
        num_attention_heads=int(shape["heads"]),
        num_key_value_heads=int(shape["kv_heads"]),
        max_position_embeddings=longest,
        tie_word_embeddings=bool(shape.get("tied")),
        use_cache=False,
    )


def peak_bytes(shape: Mapping[str, Any], one: Pass) -> dict[str, float]:
    """Bytes on one rank when most is in use, by torch's names of what they are for, and `Total`.

    Args:
        shape: of the model, as in cluster/models.yaml.
        one: the pass.
    """
    import torch
    import torch.distributed as dist
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from transformers import AutoModelForCausalLM

    dist.init_process_group("fake", rank=0, world_size=one.gpus, store=FakeStore())
    try:
        mesh = init_device_mesh("cpu", (one.gpus,))
        with FakeTensorMode():
            model = AutoModelForCausalLM.from_config(
                model_configuration(shape, one.tokens), dtype=torch.float32, attn_implementation="sdpa"
            )
            if one.checkpointing:
                model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
            for module in (*model.model.layers, model):
                fully_shard(module, mesh=mesh, mp_policy=policy)
            # The tracker counts the lists of the other implementations many times.
            optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
            tokens = torch.randint(0, 1000, (one.rows, one.tokens))
            tracker = FSDPMemTracker(model.train(), optimizer)
            tracker.track_inputs((tokens,))
            with tracker:
                for step in range(2):
                    # As trainers compute it: the logits in float32, and the probability of each token alone.
                    logits = model(input_ids=tokens, logits_to_keep=one.scored).logits.float()
                    chosen = logits.gather(-1, tokens[:, -one.scored :, None]).squeeze(-1)
                    loss = (logits.logsumexp(-1) - chosen).mean()
                    loss.backward()
                    del logits, chosen, loss
                    optimizer.step()
                    optimizer.zero_grad()
                    if step == 0:  # the second step has the optimiser's states
                        tracker.reset_mod_stats()
        (peak,) = tracker.get_tracker_snapshot("peak").values()
        return {str(name).rpartition(".")[2].lower(): float(size) for name, size in peak.items()}
    finally:
        dist.destroy_process_group()


def working_bytes(peak: Mapping[str, float]) -> float:
    """Bytes of what `measure` found that a pass takes, beside what stays between passes."""
    return max(peak["total"], 1.0) - sum(peak.get(part, 0.0) for part in KEPT)


def deepspeed_says(sharding: str, gpus: int, parameters: float, largest: float) -> float:
    """Bytes of weights, gradients and optimiser on one GPU, as DeepSpeed's documentation counts them.

    That is docs/code-docs/source/memory.rst of DeepSpeed, "GPU RAM", without offloading.

    Args:
        sharding: zero2 or zero3.
        gpus: that share the model.
        parameters: of the model.
        largest: parameters of the largest layer.
    """
    if sharding == "zero2":
        return 4 * parameters + 16 * parameters / gpus
    return 4 * largest + 18 * parameters / gpus


def table_row(run: Run) -> list[str]:
    """The run's line: its most demanding stage, of which one model is counted.

    Raises:
        UserError: the model's shape is not known.
    """
    stage = max(run.stages, key=longest_sequence)
    shape, one = gpu_memory.model_shape(run.model), training_pass(run, stage)
    if shape is None or not run.hardware["gpus"]:
        sentence = f"{run.name} needs GPUs, and the shape of {run.model} in cluster/models.yaml"
        raise UserError(sentence, code="unknown-model-shape", model=run.model)
    passing, parameters = working_bytes(peak_bytes(shape, one)), shape["parameters"]
    state = own = 16 * parameters / one.gpus
    if shards_with_deepspeed(run):
        largest = shape["vocabulary"] * shape["hidden"]
        state = deepspeed_says(run.hardware["sharding"], one.gpus, parameters, largest)
        own, _ = deepspeed_state(run, one.gpus, parameters, 1, 0.0)
    estimate = gpu_memory.estimate_stage(run, stage, 80.0)
    formula = own / GB + (estimate.working if estimate else 0.0)
    measured = (state + passing) / GB
    numbers = (state / GB, passing / GB, measured, formula, formula - measured)
    return [run.name, str(one.gpus), f"{one.rows} × {one.tokens:,}", f"{one.scored:,}", *(f"{n:.1f}" for n in numbers)]


def offloads(run: Run) -> bool:
    """Whether the optimiser of the trained policy is kept in the node's memory."""
    native = [item for stage in run.stages for item in stage.native.items()]
    return any(value and key.endswith(OFFLOADED) for key, value in native)


def shards_with_deepspeed(run: Run) -> bool:
    """Whether DeepSpeed shards the run's models: its adapter's modules include it."""
    return any(module.partition(".")[0] == "deepspeed" for module in adapter.load(run.framework).entry_modules)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--run", nargs="+", default=run_names(), metavar="RUN", help="default: all")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.run:
        run = load_run(name, "full")
        if offloads(run):
            print(f"{name}: not counted, because its optimiser is not on the GPU", flush=True)
            continue
        rows.append(table_row(run))
        print(" | ".join(rows[-1]), flush=True)
    durable.write_text(arguments.output, markdown.table(COLUMNS, rows))


if __name__ == "__main__":
    run_command(main)
