"""A stage's commands, read by the installed TRL's own parsers, without a GPU or weights."""

from __future__ import annotations

import argparse
import inspect
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

from contracts.run_file import Run, Stage
from frameworks.command_settings import Flags
from frameworks.run_settings import refused_by_parser
from frameworks.trl.command import accelerate_options, command_line, server_options, stated_settings, training_devices
from system.unknown_names import meant


def check(run: Run, stage: Stage) -> None:
    """Let TRL's parser, and accelerate's and the vLLM server's where they are used, read the rendered commands."""
    accept(run, stage, stated_settings(run, stage))


def accept(run: Run, stage: Stage, flags: Flags) -> None:
    """The same of given flags.

    Args:
        run: for messages and devices.
        stage: for the vLLM server.
        flags: as `arguments` gives them.

    Raises:
        UserError: one of the parsers refuses them.
    """
    from trl import GRPOConfig
    from trl.scripts import grpo, vllm_serve

    if run.device == "cuda" and not _has_gpu():
        flags = flags | {"use_cpu": (True, "")}  # otherwise transformers refuses bf16 on a machine that only checks
    # The check is one process; TRL's batch arithmetic is that of the run's devices.
    with patch.object(GRPOConfig, "world_size", training_devices(run, stage)):
        _parse(grpo.make_parser(), command_line(flags), {flag: key for flag, (_, key) in flags.items()}, run)
    if run.device == "cuda" or run.hardware.get("nodes", 1) > 1:
        from accelerate.commands.launch import launch_command_parser

        _parse(launch_command_parser(), [*accelerate_options(run, stage), "-m", "trl.scripts.grpo"], {}, run)
    if stage.rollout.get("engine") == "vllm-server":
        keys = {"gpu_memory_utilization": f"{run.scale}.native.vllm_gpu_memory_utilization"}
        _parse(vllm_serve.make_parser(), server_options(run, stage, Path("model")), keys, run)


def defaults() -> dict[str, Any]:
    """What TRL's script takes for each flag that a command leaves out."""
    from trl.scripts import grpo

    actions = grpo.make_parser()._actions
    # of the two actions for a boolean, --name and --no_name, argparse takes the default of the first
    return {action.dest: action.default for action in reversed(actions) if action.option_strings}


def types() -> dict[str, str]:
    """What TRL's script takes for each flag: the type of its value, or `list of` those of its values."""
    from trl.scripts import grpo

    return {action.dest: _type(action) for action in reversed(grpo.make_parser()._actions) if action.type}


def _type(action: argparse.Action) -> str:
    name = "str" if action.choices else str(getattr(action.type, "__name__", action.type))
    return {"string_to_bool": "bool"}.get(name, f"list of {name}" if action.nargs == "+" else name)


def objectives() -> dict[str, list[str]]:
    """The losses that TRL's trainer knows: it has no registry, but compares `loss_type` with each name."""
    from trl import GRPOTrainer

    source = inspect.getsource(GRPOTrainer)
    compared = re.findall(r"self\.loss_type (?:==|in) (\[[^]]*\]|\"\w+\")", source)
    return {"estimators": [], "losses": sorted({name for text in compared for name in re.findall(r'"(\w+)"', text)})}


def _has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _parse(parser: argparse.ArgumentParser, command_line: list[str], keys: dict[str, str], run: Run) -> None:
    """Parse with the framework's own parser; a refusal becomes one sentence with the run file's key."""
    known = {option[2:] for option in parser._option_string_actions if option.startswith("--")}
    for flag in (word[2:] for word in command_line if word.startswith("--")):
        if flag not in known:
            message = f"this release has no setting '{flag}'{meant(flag, known, most=1)}"
            raise refused_by_parser(run, "TRL", message, keys.get(flag, ""))
    parser.allow_abbrev = False

    def refuse(message: str) -> None:
        raise ValueError(message)

    parser.error = refuse  # type: ignore[method-assign, assignment]
    try:
        if hasattr(parser, "parse_args_and_config"):
            parser.parse_args_and_config(list(command_line), fail_with_unknown_args=True)
        else:
            parser.parse_args(command_line)
    except (ValueError, TypeError, argparse.ArgumentError) as error:
        message = str(error)
        named = re.search(r"--([a-z_0-9]+)|\b([a-z]+(?:_[a-z0-9]+)+)\b", message)
        key = keys.get((named[1] or named[2]) if named else "", "")
        raise refused_by_parser(run, "TRL", message, key) from None
