"""DeepSpeed's state, as OpenRLHF and many trainers leave it, as the weights of a model folder."""

from __future__ import annotations

import tempfile
from pathlib import Path

from system.errors import UserError

WRAPPER = "module."  # before each name, of trainers that wrap the model before DeepSpeed does


def deepspeed(step: Path, output: Path, model: Path) -> None:
    """Write the weights of a checkpoint of ZeRO 1 to 3, in the data type of the model's configuration.

    Args:
        step: the folder `global_step…` with the states of all ranks.
        output: an empty folder.
        model: has the configuration.

    Raises:
        UserError: a rank's state is missing or damaged.
    """
    import torch
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint
    from safetensors.torch import save_file
    from transformers import AutoConfig

    try:
        with tempfile.TemporaryDirectory() as folder:  # beside it must be nothing but `latest`
            Path(folder, step.name).symlink_to(step.resolve())
            tensors = get_fp32_state_dict_from_zero_checkpoint(folder, tag=step.name)
    except (OSError, ValueError, RuntimeError, KeyError, EOFError) as error:
        raise UserError(
            f"DeepSpeed could not read the states in {step} ({error}): one may be missing or damaged",
            code="damaged-weights", path=str(step),
        ) from None  # fmt: skip
    if all(name.startswith(WRAPPER) for name in tensors):
        tensors = {name.removeprefix(WRAPPER): tensor for name, tensor in tensors.items()}
    configuration = AutoConfig.from_pretrained(model)
    if configuration.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    dtype = configuration.dtype or torch.float32
    whole = {name: value.to(dtype).contiguous().clone() for name, value in tensors.items()}
    save_file(whole, output / "model.safetensors", metadata={"format": "pt"})
