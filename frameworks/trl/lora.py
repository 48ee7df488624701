"""LoRA as TRL has it: its options, and which model a trained adapter is merged into.

The reference model of the KL term is the base model itself with the adapter turned off, so it takes no memory.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from contracts.run_file import Stage
from frameworks import checkpoints
from frameworks.command_settings import CommandSettings
from frameworks.lora import ALL_LAYERS, merge_adapter
from frameworks.run_settings import refuse

WEIGHTS = "adapter_model.safetensors"
NF4_BYTES = 0.5625  # per frozen weight: 4 bits, and a 32-bit scale for every 64 of them


def state_flags(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """State LoRA's flags where the run has it.

    Args:
        flags: of the run, to which they are added.
        keys: the stage's settings by name, as `frameworks.run_settings.values` gives them.

    Raises:
        UserError: 4 bits are wanted without a GPU.
    """
    if "lora.r" not in keys:
        return
    flags.state("use_peft", True, "lora")
    flags.state("lora_dropout", keys.get("lora.dropout", 0.0), "lora.dropout")
    targets = keys["lora.target_modules"]
    if len(targets) == 1 and targets != [ALL_LAYERS]:  # one word alone is a pattern of whole names to PEFT
        flags.state("lora_target_modules", [rf".*\.{re.escape(targets[0])}"], "lora.target_modules")
    if "lora.bits" in keys:
        if flags.run.device == "cpu":
            text = ": frozen weights of 4 bits need a GPU; remove it at this scale"
            raise refuse(flags.run, "lora.bits", text, "needs-a-gpu")
        flags.state("load_in_4bit", True, "lora.bits")


def merge(stage: Stage, adapter: Path, model: Path, output: Path) -> None:
    """Write the checkpoint of a stage that trained an adapter.

    Args:
        stage: that trained the adapter.
        adapter: its native checkpoint.
        model: the run's base model; a later stage's is the checkpoint that the adapter's configuration names.
        output: an empty folder.
    """
    if stage.number > 1:
        model = Path(json.loads((adapter / "adapter_config.json").read_text())["base_model_name_or_path"])
    merge_adapter(adapter, model, output)
    checkpoints.copy_into(checkpoints.files_beside_weights(model), output)


def frozen_bytes(stage: Stage, parameters: float) -> float:
    """Bytes of the weights that are not trained."""
    if "bits" in stage.lora:
        return NF4_BYTES * parameters
    return parameters * (2 if stage.native.get("dtype") == "bfloat16" else 4)
