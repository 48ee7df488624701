"""A run as flags of TRL's `grpo` script, of accelerate and of TRL's vLLM server.

Units. TRL's per-device batch counts completions, and one optimiser step sees

    devices × per_device_train_batch_size × gradient_accumulation_steps   completions

of `num_generations` per prompt. Run files state prompts per update and samples per prompt; a batch that does not divide
is refused. TRL counts optimiser steps, run files count steps that sample: one of these is several of TRL's where its
completions make several updates (`native_steps`). FLAGS says which key of a run file becomes which flag.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from contracts.run_file import Run, Stage
from frameworks import run_settings
from frameworks.run_settings import check_batch, refuse, updates_per_step
from frameworks.trl import lora
from system.errors import UserError

# When the trainer has to stop (early_stop.py): a callback, by its name in --report_to, and environment variables.
STOP_IN_TIME = "tensorboard_and_stop_in_time"
TIME_LIMIT = "CROSSZERO_TIME_LIMIT"  # when the job will be ended, in seconds since 1970
NATIVE_STEPS = "CROSSZERO_NATIVE_STEPS"  # the trainer's steps in one of the run file; it resumes only at its end
FLAGS = {
    "batch.samples_per_prompt": "num_generations",
    "batch.samples_per_device": "per_device_train_batch_size",
    "rollout.temperature": "temperature",
    "rollout.top_p": "top_p",
    "rollout.max_response_tokens": "max_completion_length",
    "optimizer.learning_rate": "learning_rate",
    "optimizer.schedule": "lr_scheduler_type",
    "optimizer.weight_decay": "weight_decay",
    "optimizer.max_grad_norm": "max_grad_norm",
    "optimizer.adam_beta2": "adam_beta2",
    "objective.kl_coefficient": "beta",
    "objective.clip_ratio": "epsilon",
    "objective.dual_clip": "delta",
    "objective.entropy_coefficient": "entropy_coef",
    "objective.scale_rewards": "scale_rewards",
    "objective.epochs_per_batch": "num_iterations",
    "lora.r": "lora_r",
    "lora.alpha": "lora_alpha",
    "lora.target_modules": "lora_target_modules",
}
# Keys that are converted, or used elsewhere than in a flag of their own, with the flag that they end up in.
CONVERTED = {
    "batch.prompts_per_update": "gradient_accumulation_steps",
    "batch.prompts_per_step": "steps_per_generation",
    "optimizer.warmup_ratio": "warmup_steps",
    "rollout.max_prompt_tokens": None,  # TRL does not truncate prompts: longer ones are left out of the training set
    "rollout.stop": "model_name_or_path",  # frameworks/stop_tokens.py
    "rollout.engine": "use_vllm, vllm_mode",
    "rollout.gpus": None,
    "objective.loss_aggregation": "loss_type",
    "objective.kl_in": None,  # TRL's GRPO has the KL term in the loss, estimated by k3
    "objective.kl_estimator": None,
    "objective.unbiased_kl_gradient": "use_bias_correction_kl",
    "objective.sampler_correction": "vllm_importance_sampling_correction, vllm_importance_sampling_mode",
    "objective.logits_temperature": "temperature, generation_kwargs",
    "lora.dropout": "lora_dropout",
    "lora.bits": "load_in_4bit",
}
# Of `loss_type`, which TRL checks only while it trains. Its other values are other objectives: `native` passes them.
AGGREGATIONS = {
    "completion_mean": "grpo", "token_mean": "dapo", "max_length_mean": "dr_grpo", "forward_pass_mean": "bnpo",
}  # fmt: skip
SERVER_START_SECONDS = 1200  # loading a large model from a cold disk and compiling it takes more than TRL's 240


def devices(run: Run, stage: Stage) -> int:
    """Processes that train: all GPUs but those that only generate; on the CPU one on each node."""
    serving = stage.rollout.get("gpus", 1) if stage.rollout.get("engine") == "vllm-server" else 0
    training = run_settings.devices(run) - serving
    if training < 1:
        raise refuse(run, "rollout.gpus", f" leaves none of {run.hardware['gpus']} GPUs to train on")
    return training


def native_steps(run: Run, stage: Stage) -> int:
    """TRL's steps (of the optimiser) in one step of the run file, which samples once."""
    return updates_per_step(run, stage) * int(stage.objective.get("epochs_per_batch", 1))


def _check(run: Run, given: dict[str, Any]) -> None:
    """Raise UserError for what TRL's GRPO does not have."""
    if run.algorithm != "grpo":
        raise UserError(f"{run.file.name}: algorithm: TRL trains grpo here, not {run.algorithm}")
    for key in given:
        if key not in FLAGS and key not in CONVERTED:
            raise refuse(run, key, " has no meaning for TRL; remove it")
    for key, only in (("objective.kl_in", "loss"), ("objective.kl_estimator", "k3")):
        if given.get(key, only) != only:
            raise refuse(run, key, f": TRL's GRPO has {only}, not {given[key]}")
    if (mean := given.get("objective.loss_aggregation", "token_mean")) not in AGGREGATIONS:
        raise refuse(run, "objective.loss_aggregation", f": TRL has {', '.join(AGGREGATIONS)}, not '{mean}'")
    if "objective.logits_temperature" in given and given.get("objective.sampler_correction", "none") != "none":
        raise refuse(
            run, "objective.sampler_correction", " compares probabilities at one temperature; remove logits_temperature"
        )


def _put_objective(given: dict[str, Any], put: Any) -> None:
    """What this release does otherwise than earlier ones unless it is told not to."""
    if "objective.loss_aggregation" in given:
        put("loss_type", AGGREGATIONS[given["objective.loss_aggregation"]], "objective.loss_aggregation")
    put("use_bias_correction_kl", given.get("objective.unbiased_kl_gradient", False), "objective.unbiased_kl_gradient")
    correction = given.get("objective.sampler_correction", "none")
    put("vllm_importance_sampling_correction", correction != "none", "objective.sampler_correction")
    if correction != "none":
        put("vllm_importance_sampling_mode", f"{correction}_mask", "objective.sampler_correction")
    if "objective.logits_temperature" in given:  # TRL divides logits by `temperature`; the sampler can be told another
        put("temperature", given["objective.logits_temperature"], "objective.logits_temperature")
        put("generation_kwargs", {"temperature": given.get("rollout.temperature", 1.0)}, "rollout.temperature")


class Ports(NamedTuple):
    """Of this node, for TRL's vLLM server."""

    requests: int = 0
    weights: int = 0  # from the trainer to the server


UNUSED = Ports()  # where a command is only checked


def arguments(
    run: Run, stage: Stage, seed: int, data: Path, model: Path, output: Path, ports: Ports = UNUSED
) -> dict[str, tuple[Any, str]]:
    """Every flag with its value and the key of the run file that it comes from.

    Args:
        run: the run.
        stage: one of its stages.
        seed: of sampling and of the order of the data.
        data: folder of the training set.
        model: folder that training starts from.
        output: folder of native checkpoints and logs.
        ports: of the vLLM server, where there is one.

    Raises:
        UserError: TRL does not have what the run wants, or the batch does not divide.
    """
    values, found = run_settings.values(stage), dict[str, tuple[Any, str]]()
    _check(run, values)
    for key, value in values.items():
        if key in FLAGS:
            found[FLAGS[key]] = (value, f"{run.scale}.{key}")

    def put(flag: str, value: Any, key: str) -> None:
        found[flag] = (value, f"{run.scale}.{key}" if key else "")

    put("model_name_or_path", str(model), "model")
    put("dataset_name", str(data), "dataset")
    put("output_dir", str(output), "")
    put("seed", seed, "")
    steps, accumulation = native_steps(run, stage), check_batch(run, stage, devices(run, stage))
    put("max_steps", stage.steps * steps, "steps")
    put("save_steps", math.gcd(*stage.checkpoints) * steps, "checkpoints")
    put("gradient_accumulation_steps", accumulation, "batch.prompts_per_update")
    put("steps_per_generation", accumulation * updates_per_step(run, stage), "batch.prompts_per_step")
    put(
        "warmup_steps", round(values.get("optimizer.warmup_ratio", 0.0) * stage.steps) * steps, "optimizer.warmup_ratio"
    )
    _put_objective(values, put)
    lora.put(run, values, put)
    put("reward_funcs", ["frameworks.trl.reward_hook.reward"], "")
    put("logging_steps", 1, "")
    put("report_to", STOP_IN_TIME, "")
    put("disable_tqdm", True, "")
    if run.device == "cpu":
        put("use_cpu", True, "hardware.gpus")
        put("bf16", False, "hardware.gpus")
        put("gradient_checkpointing", False, "hardware.gpus")
        put("dtype", "float32", "hardware.gpus")
        put("dataloader_pin_memory", False, "hardware.gpus")
    engine = values.get("rollout.engine", "transformers")
    if engine != "transformers":
        put("use_vllm", True, "rollout.engine")
        put("vllm_mode", engine.removeprefix("vllm-").replace("colocated", "colocate"), "rollout.engine")
    if engine == "vllm-server":
        put("vllm_server_host", "127.0.0.1", "rollout.engine")
        put("vllm_server_port", ports.requests, "rollout.engine")
        put("vllm_group_port", ports.weights, "rollout.engine")
        put("vllm_server_timeout", SERVER_START_SECONDS, "rollout.engine")
    for flag, value in stage.native.items():
        if flag in found:
            raise refuse(run, f"native.{flag}", f" is set by {found[flag][1] or 'the adapter'} already")
        put(flag, value, f"native.{flag}")
    return found


def render(flags: dict[str, tuple[Any, str]]) -> list[str]:
    """The flags as words of a command line."""
    words: list[str] = []
    for flag, (value, _) in flags.items():
        words.append(f"--{flag}")
        if isinstance(value, list):
            words.extend(str(item) for item in value)
        else:
            words.append(json.dumps(value) if isinstance(value, dict) else str(value))
    return words


def launcher(run: Run, stage: Stage) -> list[str]:
    """Accelerate's flags: one process per training device."""
    sharding, nodes = run.hardware.get("sharding", "none"), run.hardware.get("nodes", 1)
    if nodes > 1 and stage.rollout.get("engine") == "vllm-server":
        raise refuse(
            run,
            "hardware.nodes",
            f": {nodes} nodes cannot share the GPUs of a vllm-server evenly; use rollout.engine: vllm-colocated",
        )
    words = ["--num_machines", str(nodes), "--num_processes", str(devices(run, stage))]
    if nodes == 1:
        words += ["--main_process_port", "0"]  # any free one; by default all trainings of a node have the same
    words += ["--mixed_precision", "bf16" if stage.native.get("bf16") else "no", "--dynamo_backend", "no"]
    if sharding != "none":
        words += ["--use_deepspeed", "--zero_stage", sharding.removeprefix("zero")]
        words += ["--gradient_accumulation_steps", str(check_batch(run, stage, devices(run, stage)))]
        if sharding == "zero3":
            words += ["--zero3_init_flag", "true", "--zero3_save_16bit_model", "true"]
    elif devices(run, stage) > 1:
        words.append("--multi_gpu")  # starts several processes with torchrun, with or without GPUs
    return words


def server(run: Run, stage: Stage, model: Path, ports: Ports = UNUSED) -> list[str]:
    """Flags of TRL's vLLM server on the GPUs that only generate.

    Args:
        run: the run.
        stage: one of its stages.
        model: folder that training starts from.
        ports: where it listens.
    """
    rollout = stage.rollout
    longest = rollout["max_prompt_tokens"] + rollout["max_response_tokens"]
    words = ["--model", str(model), "--host", "127.0.0.1", "--port", str(ports.requests)]
    words += ["--max_model_len", str(longest)]
    words += ["--data_parallel_size", str(rollout.get("gpus", 1))]
    return [*words, "--gpu_memory_utilization", str(stage.native.get("vllm_gpu_memory_utilization", 0.9))]
