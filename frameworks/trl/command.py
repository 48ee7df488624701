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
from frameworks import objective_checks, run_settings
from frameworks.command_settings import CommandSettings, Flags, option_in_words
from frameworks.run_settings import check_batch, check_known, choose, refuse, updates_per_step
from frameworks.trl import lora
from system.errors import UserError

# When the trainer has to stop (stop_in_time.py): a callback, by its name in --report_to, and environment variables.
STOP_IN_TIME = "tensorboard_and_stop_in_time"
TIME_LIMIT = "CROSSZERO_TIME_LIMIT"  # when the job will be ended, in seconds since 1970
NATIVE_STEPS = "CROSSZERO_NATIVE_STEPS"  # the trainer's steps in one of the run file; it resumes only at its end
FLAGS = {
    "batch.samples_per_prompt": "num_generations",
    "batch.samples_per_device": "per_device_train_batch_size",
    "rollout.temperature": "temperature",
    "rollout.top_p": "top_p",
    "rollout.top_k": "top_k",
    "rollout.max_response_tokens": "max_completion_length",
    "optimizer.learning_rate": "learning_rate",
    "optimizer.schedule": "lr_scheduler_type",
    "optimizer.weight_decay": "weight_decay",
    "optimizer.max_grad_norm": "max_grad_norm",
    "optimizer.adam_beta2": "adam_beta2",
    "objective.kl_coefficient": "beta",
    "objective.clip_ratio": "epsilon",
    "objective.clip_ratio_high": "epsilon_high",
    "objective.dual_clip": "delta",
    "objective.entropy_coefficient": "entropy_coef",
    "objective.scale_rewards": "scale_rewards",
    "objective.epochs_per_batch": "num_iterations",
    "objective.mask_truncated": "mask_truncated_completions",
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
    "objective.policy_loss": "loss_type, importance_sampling_level",
    "objective.loss_length": None,  # TRL divides by max_completion_length
    "objective.correction_form": "vllm_importance_sampling_mode",
    "objective.correction_low": "vllm_importance_sampling_clip_min",
    "objective.correction_high": "vllm_importance_sampling_clip_max",
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
# Losses by name, and the mean that TRL takes of those that have one alone.
LOSSES = {
    "ppo": {}, "gspo": {"importance_sampling_level": "sequence"}, "cispo": {"loss_type": "cispo"},
    "sapo": {"loss_type": "sapo"}, "vespo": {"loss_type": "vespo"},
    "luspo": {"loss_type": "luspo", "importance_sampling_level": "sequence"},
}  # fmt: skip
MEANS = {"cispo": "token_mean", "sapo": "completion_mean", "vespo": "token_mean", "luspo": "completion_mean"}
WITHOUT_BOUND = ("cispo", "sapo", "vespo")  # losses that do not read delta
UNCLIPPED = ("sapo", "vespo")  # nor epsilon
CPU = {
    "use_cpu": True, "bf16": False, "gradient_checkpointing": False, "dtype": "float32", "dataloader_pin_memory": False,
}  # fmt: skip
SERVER_START_SECONDS = 1200  # loading a large model from a cold disk and compiling it takes more than TRL's 240


def training_devices(run: Run, stage: Stage) -> int:
    """Processes that train: all GPUs but those that only generate; on the CPU one on each node."""
    serving = stage.rollout.get("gpus", 1) if stage.rollout.get("engine") == "vllm-server" else 0
    training = run_settings.devices(run) - serving
    if training < 1:
        raise refuse(run, "rollout.gpus", f" leaves none of {run.hardware['gpus']} GPUs to train on", "too-few-gpus")
    return training


def native_steps(run: Run, stage: Stage) -> int:
    """TRL's steps (of the optimiser) in one step of the run file, which samples once."""
    return updates_per_step(run, stage) * int(stage.objective.get("epochs_per_batch", 1))


def _check(run: Run, keys: dict[str, Any]) -> None:
    """Raise UserError for what TRL's GRPO does not have."""
    if run.algorithm != "grpo":
        raise UserError(
            f"{run.file.name}: algorithm: TRL trains grpo here, not {run.algorithm}",
            code="value-not-in-framework",
            key="algorithm",
        )
    check_known(run, "TRL", keys, (*FLAGS, *CONVERTED))
    if keys.get("batch.samples_per_prompt", 2) < 2:
        text = ": TRL needs at least 2 completions per prompt"
        raise refuse(run, "batch.samples_per_prompt", text, "too-few-samples")
    longest = keys.get("rollout.max_response_tokens")
    if keys.get("objective.loss_length", longest) != longest:
        text = f": TRL divides by the longest completion, {longest}"
        raise refuse(run, "objective.loss_length", text, "value-not-in-framework")
    for key, only in (("objective.kl_in", "loss"), ("objective.kl_estimator", "k3")):
        if keys.get(key, only) != only:
            raise refuse(run, key, f": TRL's GRPO has {only}, not {keys[key]}", "value-not-in-framework")
    objective_checks.check(run, keys, UNCLIPPED)
    if keys.get("objective.sampler_correction", "none") != "none":
        _check_correction(run, keys)


def _check_correction(run: Run, keys: dict[str, Any]) -> None:
    """Raise UserError where a correction for the sampler has no effect, or not the one of its name."""
    if "objective.logits_temperature" in keys:
        text = " compares probabilities at one temperature; remove logits_temperature"
    elif keys.get("rollout.engine", "transformers") == "transformers":
        text = " has no effect with rollout.engine: transformers, which samples with the trainer's own probabilities"
    elif keys.get("objective.policy_loss") == "vespo" and keys["objective.sampler_correction"] != "token":
        text = ": TRL's vespo weighs tokens alone; write token"
    else:
        return
    raise refuse(run, "objective.sampler_correction", text, "settings-conflict")


class Ports(NamedTuple):
    """Of this node, for TRL's vLLM server."""

    requests: int = 0
    weights: int = 0  # from the trainer to the server


UNUSED = Ports()  # where a command is only checked


def trainer_flags(
    run: Run, stage: Stage, seed: int, data: Path, model: Path, output: Path, ports: Ports = UNUSED
) -> CommandSettings:
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
    keys, flags = run_settings.values(stage), CommandSettings(run)
    _check(run, keys)
    for key, value in keys.items():
        if key in FLAGS:
            flags.state(FLAGS[key], value, key)
    flags.state("model_name_or_path", str(model), "model")
    flags.state("dataset_name", str(data), "dataset")
    flags.state("output_dir", str(output))
    flags.state("seed", seed)
    _state_steps(flags, stage, keys)
    _state_objective(flags, keys)
    lora.state_flags(flags, keys)
    flags.state("reward_funcs", ["frameworks.trl.reward_hook.reward"])
    flags.state("logging_steps", 1)
    flags.state("report_to", STOP_IN_TIME)
    flags.state("disable_tqdm", True)
    if run.device == "cpu":
        for flag, value in CPU.items():
            if flag not in stage.native:  # such as bf16, which many CPUs have
                flags.state(flag, value, "hardware.gpus")
    _state_engine(flags, keys.get("rollout.engine", "transformers"), ports)
    flags.state_native(stage)
    return flags


def stated_settings(run: Run, stage: Stage) -> CommandSettings:
    """See frameworks.adapter.SettingsOfRuns."""
    return trainer_flags(run, stage, 0, Path("data"), Path(run.model), Path("output"))


def _state_steps(flags: CommandSettings, stage: Stage, keys: dict[str, Any]) -> None:
    """What TRL counts in steps of the optimiser, and forward passes of one."""
    run = flags.run
    steps, accumulation = native_steps(run, stage), check_batch(run, stage, training_devices(run, stage))
    flags.state("max_steps", stage.steps * steps, "steps")
    flags.state("save_steps", math.gcd(*stage.checkpoints) * steps, "checkpoints")
    flags.state("gradient_accumulation_steps", accumulation, "batch.prompts_per_update")
    flags.state("steps_per_generation", accumulation * updates_per_step(run, stage), "batch.prompts_per_step")
    warmup = round(keys.get("optimizer.warmup_ratio", 0.0) * stage.steps) * steps
    flags.state("warmup_steps", warmup, "optimizer.warmup_ratio")


def _state_objective(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """Settings whose defaults this release has changed: always stated."""
    _state_loss(flags, keys)
    unbiased = keys.get("objective.unbiased_kl_gradient", False)
    flags.state("use_bias_correction_kl", unbiased, "objective.unbiased_kl_gradient")
    correction = keys.get("objective.sampler_correction", "none")
    levels = dict.fromkeys(("none", "token", "sequence"))
    choose(flags.run, "TRL", "objective.sampler_correction", correction, levels)
    flags.state("vllm_importance_sampling_correction", correction != "none", "objective.sampler_correction")
    if correction != "none":
        mode = f"{correction}_{keys.get('objective.correction_form', 'mask')}"
        flags.state("vllm_importance_sampling_mode", mode, "objective.sampler_correction")
    for key, end in (("objective.correction_low", "min"), ("objective.correction_high", "max")):
        if key in keys:
            flags.state(f"vllm_importance_sampling_clip_{end}", keys[key], key)
    if "objective.logits_temperature" in keys:  # TRL divides logits by `temperature`; the sampler can be told another
        flags.state("temperature", keys["objective.logits_temperature"], "objective.logits_temperature")
        sampled = {"temperature": keys.get("rollout.temperature", 1.0)}
        flags.state("generation_kwargs", sampled, "rollout.temperature")


def _state_loss(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """The policy loss and its mean."""
    mean, loss = keys.get("objective.loss_aggregation"), keys.get("objective.policy_loss")
    if mean:
        loss_type = choose(flags.run, "TRL", "objective.loss_aggregation", mean, AGGREGATIONS)
        flags.state("loss_type", loss_type, "objective.loss_aggregation")
    if not loss:
        return
    own = choose(flags.run, "TRL", "objective.policy_loss", loss, LOSSES)
    if mean and mean != MEANS.get(loss, mean):
        text = f": TRL's {loss} has {MEANS[loss]}, not {mean}"
        raise refuse(flags.run, "objective.loss_aggregation", text, "settings-conflict")
    if loss in WITHOUT_BOUND and "objective.dual_clip" in keys:
        raise refuse(
            flags.run, "objective.dual_clip", f": TRL's {loss} has no such bound; remove it", "settings-conflict"
        )
    for name, value in own.items():
        flags.state(name, value, "objective.policy_loss")
    if loss == "cispo" and keys.get("objective.clip_ratio", 1) < 1:
        text = ": TRL's cispo has no lower bound; write 1.0"
        raise refuse(flags.run, "objective.clip_ratio", text, "settings-conflict")
    if loss == "cispo":  # TRL names the largest ratio itself, and takes epsilon for it where it is not stated
        high = keys.get("objective.clip_ratio_high", keys.get("objective.clip_ratio", 0.2))
        flags.state("epsilon_high", 1 + high, "objective.clip_ratio_high")


def _state_engine(flags: CommandSettings, engine: str, ports: Ports) -> None:
    """What samples: the trainer itself by transformers, or vLLM."""
    if engine == "transformers":
        return
    flags.state("use_vllm", True, "rollout.engine")
    mode = engine.removeprefix("vllm-").replace("colocated", "colocate")
    flags.state("vllm_mode", mode, "rollout.engine")
    if mode == "server":
        flags.state("vllm_server_host", "127.0.0.1", "rollout.engine")
        flags.state("vllm_server_port", ports.requests, "rollout.engine")
        flags.state("vllm_group_port", ports.weights, "rollout.engine")
        flags.state("vllm_server_timeout", SERVER_START_SECONDS, "rollout.engine")


def command_line(flags: Flags) -> list[str]:
    """The flags as words of a command line."""
    arguments: list[str] = []
    for flag, (value, _) in flags.items():
        text = json.dumps(value) if isinstance(value, dict) else value
        arguments += option_in_words(flag, text if isinstance(text, list) else [text])
    return arguments


def accelerate_options(run: Run, stage: Stage) -> list[str]:
    """Accelerate's flags: one process per training device."""
    sharding, nodes = run.hardware.get("sharding", "none"), run.hardware.get("nodes", 1)
    if nodes > 1 and stage.rollout.get("engine") == "vllm-server":
        raise refuse(
            run,
            "hardware.nodes",
            f": {nodes} nodes cannot share the GPUs of a vllm-server evenly; use rollout.engine: vllm-colocated",
            "too-many-nodes",
        )
    options = ["--num_machines", str(nodes), "--num_processes", str(training_devices(run, stage))]
    if nodes == 1:
        options += ["--main_process_port", "0"]  # any free one; by default all trainings of a node have the same
    options += ["--mixed_precision", "bf16" if stage.native.get("bf16") else "no", "--dynamo_backend", "no"]
    if sharding != "none":
        options += ["--use_deepspeed", "--zero_stage", sharding.removeprefix("zero")]
        options += ["--gradient_accumulation_steps", str(check_batch(run, stage, training_devices(run, stage)))]
        if sharding == "zero3":
            options += ["--zero3_init_flag", "true", "--zero3_save_16bit_model", "true"]
    elif training_devices(run, stage) > 1:
        options.append("--multi_gpu")  # starts several processes with torchrun, with or without GPUs
    return options


def server_options(run: Run, stage: Stage, model: Path, ports: Ports = UNUSED) -> list[str]:
    """Flags of TRL's vLLM server on the GPUs that only generate.

    Args:
        run: the run.
        stage: one of its stages.
        model: folder that training starts from.
        ports: where it listens.
    """
    rollout = stage.rollout
    longest = rollout["max_prompt_tokens"] + rollout["max_response_tokens"]
    options = ["--model", str(model), "--host", "127.0.0.1", "--port", str(ports.requests)]
    options += ["--max_model_len", str(longest)]
    options += ["--data_parallel_size", str(rollout.get("gpus", 1))]
    return [*options, "--gpu_memory_utilization", str(stage.native.get("vllm_gpu_memory_utilization", 0.9))]
