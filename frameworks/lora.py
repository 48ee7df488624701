"""LoRA: what run files say of it, and the merging of a trained adapter into an exported checkpoint."""

from __future__ import annotations

from pathlib import Path

ALL_LAYERS = "all-linear"
STATE_BYTES = 16  # per parameter of the adapter, all in 32 bits: weights, gradients and Adam's two moments


def merge_adapter(adapter: Path, model: Path, output: Path) -> None:
    """Write a model with an adapter's matrices added to its weights, in the data type of its configuration.

    Weights that were frozen in 4 bits are added to in their own precision. The sum is made in 32 bits.
    """
    import torch
    from peft import PeftModel
    from transformers import AutoConfig, AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    merged = PeftModel.from_pretrained(base, adapter).merge_and_unload()
    merged.to(AutoConfig.from_pretrained(model).dtype or torch.float32).save_pretrained(output)
