"""A run as flags of TRL's `grpo` script, of accelerate and of TRL's vLLM server; each program's own parser checks them.

Units. TRL's per-device batch counts completions, and one optimiser step sees

    devices × per_device_train_batch_size × gradient_accumulation_steps   completions

of `num_generations` per prompt. Run files state prompts per update and samples per prompt; what does not divide is
refused. TRL counts optimiser steps, run files count steps that sample: one of them is several of TRL's where its
completions make several updates (`native_steps`). Which run-file key becomes which flag is in FLAGS.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

from contracts.errors import UserError
from contracts.run_file import Run, Stage
from frameworks import adapter
from frameworks.adapter import updates_per_step
from recipes import rewards

# How the trainer is told when to stop (trl_stop.py): a callback by its name in --report_to, and the environment.
STOP_IN_TIME = "tensorboard_and_stop_in_time"
TIME_LIMIT = "CROSSZERO_TIME_LIMIT"  # when the job will be ended, in seconds since 1970
NATIVE_STEPS = "CROSSZERO_NATIVE_STEPS"  # of the trainer in one of the run file; between them it cannot be gone on from
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
    "objective.entropy_coefficient": "entropy_coef",
    "objective.loss": "loss_type",
    "objective.scale_rewards": "scale_rewards",
    "objective.updates_per_batch": "num_iterations",
}
# Keys that are converted, or used elsewhere than in a flag of their own.
CONVERTED = {
    "batch.prompts_per_update": "gradient_accumulation_steps",
    "batch.prompts_per_step": "steps_per_generation",
    "optimizer.warmup_ratio": "warmup_steps",
    "rollout.max_prompt_tokens": None,  # TRL does not cut prompts: longer ones are left out of the data and counted
    "rollout.engine": "use_vllm, vllm_mode",
    "rollout.gpus": None,
    "objective.kl_in": None,  # TRL's GRPO has it in the loss, estimated by k3
    "objective.kl_estimator": None,
}
LOSSES = ("grpo", "dapo", "dr_grpo", "bnpo", "cispo", "sapo", "luspo", "vespo")  # GRPOTrainer looks only while training
SERVER_PORT = 8077
SERVER_START_SECONDS = 1200  # loading a large model from a cold disk and compiling takes more than TRL's 240


def devices(run: Run, stage: Stage) -> int:
    """Processes that train: all GPUs but those that only generate; on the CPU one on each node."""
    serving = stage.rollout.get("gpus", 1) if stage.rollout.get("engine") == "vllm-server" else 0
    training = adapter.devices(run) - serving
    if training < 1:
        raise UserError(
            f"{run.file.name}: {run.scale}.rollout.gpus leaves none of {run.hardware['gpus']} GPUs to train on"
        )
    return training


def _accumulation(run: Run, stage: Stage) -> int:
    """Gradient accumulation steps; raises UserError where the batch does not divide."""
    updates_per_step(run, stage)
    prompts, group = stage.batch["prompts_per_update"], stage.batch["samples_per_prompt"]
    if "samples_per_device" not in stage.batch:
        raise UserError(f"{run.file.name}: {run.scale}.batch.samples_per_device is needed by TRL; add it")
    device_batch = stage.batch["samples_per_device"]
    at_once = device_batch * devices(run, stage)
    if (prompts * group) % at_once:
        raise UserError(
            f"{run.file.name}: {run.scale}.batch.prompts_per_update: {prompts} prompts × {group} samples = "
            f"{prompts * group} completions do not divide into {devices(run, stage)} devices × {device_batch} "
            f"samples_per_device = {at_once}"
        )
    return prompts * group // at_once


def native_steps(run: Run, stage: Stage) -> int:
    """TRL's steps (of the optimiser) in one step of the run file, which samples once."""
    return updates_per_step(run, stage) * int(stage.objective.get("updates_per_batch", 1))


def _refuse(run: Run, set_here: dict[str, Any]) -> None:
    """Raise UserError for what TRL's GRPO does not have."""
    if run.algorithm != "grpo":
        raise UserError(f"{run.file.name}: algorithm: TRL trains grpo here, not {run.algorithm}")
    for key in set_here:
        if key not in FLAGS and key not in CONVERTED:
            raise UserError(f"{run.file.name}: {run.scale}.{key} has no meaning for TRL; take it out")
    for key, only in (("objective.kl_in", "loss"), ("objective.kl_estimator", "k3")):
        if set_here.get(key, only) != only:
            raise UserError(f"{run.file.name}: {run.scale}.{key}: TRL's GRPO has {only}, not {set_here[key]}")


def arguments(run: Run, stage: Stage, seed: int, data: Path, model: Path, output: Path) -> dict[str, tuple[Any, str]]:
    """Every flag with its value and the key of the run file that it comes from."""
    values, found = adapter.values(stage), dict[str, tuple[Any, str]]()
    _refuse(run, values)
    for key, value in values.items():
        if key in FLAGS:
            found[FLAGS[key]] = (value, f"{run.scale}.{key}")

    loss = values.get("objective.loss", LOSSES[0])
    if loss not in LOSSES:
        raise UserError(f"{run.file.name}: {run.scale}.objective.loss: TRL has {', '.join(LOSSES)}, not '{loss}'")

    def put(flag: str, value: Any, key: str) -> None:
        found[flag] = (value, f"{run.scale}.{key}" if key else "")

    put("model_name_or_path", str(model), "model")
    put("dataset_name", str(data), "dataset")
    put("output_dir", str(output), "")
    put("seed", seed, "")
    steps, accumulation = native_steps(run, stage), _accumulation(run, stage)
    put("max_steps", stage.steps * steps, "steps")
    put("save_steps", math.gcd(*stage.checkpoints) * steps, "checkpoints")
    put("gradient_accumulation_steps", accumulation, "batch.prompts_per_update")
    put("steps_per_generation", accumulation * updates_per_step(run, stage), "batch.prompts_per_step")
    put(
        "warmup_steps", round(values.get("optimizer.warmup_ratio", 0.0) * stage.steps) * steps, "optimizer.warmup_ratio"
    )
    put("reward_funcs", ["frameworks.trl.reward_hook.reward"], "")
    put("logging_steps", 1, "")
    put("report_to", STOP_IN_TIME, "")
    put("disable_tqdm", True, "")
    put("log_completions", True, "")
    put("num_completions_to_print", 0, "")
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
        put("vllm_server_port", SERVER_PORT, "rollout.engine")
        put("vllm_server_timeout", SERVER_START_SECONDS, "rollout.engine")
    for flag, value in stage.native.items():
        if flag in found:
            raise UserError(
                f"{run.file.name}: {run.scale}.native.{flag} is set by {found[flag][1] or 'the adapter'} already"
            )
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
        raise UserError(
            f"{run.file.name}: {run.scale}.hardware.nodes: {nodes} nodes cannot share the GPUs of a vllm-server "
            "evenly; use rollout.engine: vllm-colocated"
        )
    words = ["--num_machines", str(nodes), "--num_processes", str(devices(run, stage))]
    words += ["--mixed_precision", "bf16" if stage.native.get("bf16") else "no", "--dynamo_backend", "no"]
    if sharding != "none":
        words += ["--use_deepspeed", "--zero_stage", sharding.removeprefix("zero")]
        words += ["--gradient_accumulation_steps", str(_accumulation(run, stage))]
        if sharding == "zero3":
            words += ["--zero3_init_flag", "true", "--zero3_save_16bit_model", "true"]
    elif devices(run, stage) > 1:
        words.append("--multi_gpu")  # starts several processes with torchrun, with or without GPUs
    return words


def server(run: Run, stage: Stage, model: Path) -> list[str]:
    """Flags of TRL's vLLM server on the GPUs that only generate."""
    rollout = stage.rollout
    longest = rollout["max_prompt_tokens"] + rollout["max_response_tokens"]
    words = ["--model", str(model), "--host", "127.0.0.1", "--port", str(SERVER_PORT), "--max_model_len", str(longest)]
    words += ["--data_parallel_size", str(rollout.get("gpus", 1))]
    return [*words, "--gpu_memory_utilization", str(stage.native.get("vllm_gpu_memory_utilization", 0.9))]


def check(run: Run) -> None:
    """Let TRL's parser, and accelerate's and the vLLM server's where they are used, read the rendered commands."""
    from trl import GRPOConfig
    from trl.scripts import grpo, vllm_serve

    for stage in run.stages:
        flags = arguments(run, stage, 0, Path("data"), Path("model"), Path("output"))
        if run.device == "cuda" and not _has_gpu():
            flags["use_cpu"] = (True, "")  # else transformers refuses bf16 on a machine that only checks
        # The check is one process; the batch arithmetic of TRL is that of the run's devices.
        with patch.object(GRPOConfig, "world_size", devices(run, stage)):
            _parse(grpo.make_parser(), render(flags), {flag: key for flag, (_, key) in flags.items()}, run)
        if run.device == "cuda" or run.hardware.get("nodes", 1) > 1:
            from accelerate.commands.launch import launch_command_parser

            _parse(launch_command_parser(), [*launcher(run, stage), "-m", "trl.scripts.grpo"], {}, run)
        if stage.rollout.get("engine") == "vllm-server":
            keys = {"gpu_memory_utilization": f"{run.scale}.native.vllm_gpu_memory_utilization"}
            _parse(vllm_serve.make_parser(), server(run, stage, Path("model")), keys, run)
    _load_rewards(run)


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _parse(parser: argparse.ArgumentParser, words: list[str], keys: dict[str, str], run: Run) -> None:
    """Parse with the framework's own parser; what it refuses becomes one sentence with the run file's key."""
    known = set(parser._option_string_actions)
    for flag in (word for word in words if word.startswith("--")):
        if flag not in known:
            key = keys.get(flag[2:]) or flag
            close = _closest(flag[2:], known)
            raise UserError(f"{run.file.name}: {key}: this release of TRL has no setting '{flag[2:]}'{close}")
    parser.allow_abbrev = False
    refused: list[str] = []

    def refuse(message: str) -> None:
        refused.append(message)
        raise ValueError(message)

    parser.error = refuse  # type: ignore[method-assign, assignment]
    try:
        if hasattr(parser, "parse_args_and_config"):
            parser.parse_args_and_config(list(words), fail_with_unknown_args=True)
        else:
            parser.parse_args(words)
    except (ValueError, TypeError, argparse.ArgumentError) as error:
        message = str(error)
        named = re.search(r"--([a-z_0-9]+)|\b([a-z]+(?:_[a-z0-9]+)+)\b", message)
        key = keys.get((named[1] or named[2]) if named else "", "")
        raise UserError(f"{run.file.name}: {key + ': ' if key else ''}TRL refuses it: {message}") from None


def _closest(name: str, known: set[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, [flag[2:] for flag in known if flag.startswith("--")], n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def _load_rewards(run: Run) -> None:
    for reward in run.rewards:
        try:
            rewards.load([reward])
        except (ImportError, AttributeError) as error:
            raise UserError(f"{run.file.name}: rewards: {reward['function']} cannot be loaded ({error})") from None
