"""LoRA: what run files say of it, and the merging of a trained adapter into an exported checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from contracts import model_folder
from system.errors import UserError

ALL_LAYERS = "all-linear"
STATE_BYTES = 16  # per parameter of the adapter, all in 32 bits: weights, gradients and Adam's two moments


def adapter_settings(adapter: Path) -> dict[str, Any]:
    """What adapter_config.json says; UserError if it is damaged, or another method's than LoRA."""
    file = adapter / "adapter_config.json"
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise UserError(f"{file} is cut or damaged: copy it again from its source", code="damaged-model")
    if settings.get("peft_type") != "LORA":
        raise UserError(
            f"{file} should be a LoRA adapter's, but its peft_type is {settings.get('peft_type')}: merge it with PEFT",
            code="unknown-adapter",
        )
    return settings


def merge_adapter(adapter: Path, model: Path, output: Path, dtype: Any = None) -> None:
    """Write a model with an adapter's matrices added to its weights.

    Weights that were frozen in 4 bits are added to in their own precision. The sum is made in 32 bits.

    Args:
        adapter: its folder.
        model: the base model.
        output: an empty folder.
        dtype: of torch, of the written weights; by default that of the model's configuration.

    Raises:
        UserError: the adapter is damaged, or has other tensors than its settings make on this model, which PEFT leaves
            out in silence.
    """
    import torch
    from peft import PeftModel, get_peft_model_state_dict, load_peft_weights
    from transformers import AutoConfig, AutoModelForCausalLM

    adapter_settings(adapter)
    weights = adapter / "adapter_model.safetensors"
    if weights.is_file() and model_folder.tensor_names(weights) is None:
        raise UserError(f"{weights} is truncated or damaged: copy it again from its source", code="damaged-model")
    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    adapted = PeftModel.from_pretrained(base, adapter)
    needed = set(get_peft_model_state_dict(adapted, save_embedding_layers=False))
    held = set(load_peft_weights(str(adapter), device="cpu"))
    if other := (needed - held) | (held - needed - set(adapted.state_dict())):
        raise UserError(
            f"the adapter {adapter} should have {len(needed)} tensors for the target modules of its "
            f"adapter_config.json, but {len(other)} of its {len(held)} are missing or others, such as {min(other)}: "
            "copy both files from one source, and name its own base model with --base",
            code="adapter-mismatch", tensors=len(other),
        )  # fmt: skip
    merged = adapted.merge_and_unload()
    merged.to(dtype or AutoConfig.from_pretrained(model).dtype or torch.float32).save_pretrained(output)
