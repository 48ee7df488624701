"""LoRA adapters of PEFT and accelerate's shards of FSDP as the weights of a model folder."""

from __future__ import annotations

from pathlib import Path

from frameworks import lora
from system.errors import UserError


def adapter(folder: Path, output: Path, model: Path) -> None:
    """Write the base model with the adapter's matrices added to its weights.

    Args:
        folder: the adapter.
        output: an empty folder.
        model: its base model.

    Raises:
        UserError: the adapter is damaged, or another model's.
    """
    try:
        lora.merge_adapter(folder, model, output)
    except UserError:
        raise
    except Exception as error:  # pickle's own kinds, and those of settings that PEFT does not know
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            f"the adapter {folder} does not fit the base model {model} ({reason}): name its own with --base",
            code="other-base-model", path=str(folder),
        ) from None  # fmt: skip


def fsdp(folder: Path, output: Path, model: Path) -> None:
    """Write the weights of FSDP's shards, as `accelerate merge-weights` does.

    Args:
        folder: with `….distcp`.
        output: an empty folder.
        model: has the configuration; not read.

    Raises:
        UserError: a shard is missing or damaged.
    """
    from accelerate.utils import merge_fsdp_weights
    from torch.distributed.checkpoint.api import CheckpointException

    try:
        merge_fsdp_weights(str(folder), str(output))
    except CheckpointException as error:  # which is no Exception; it lists the errors of its processes
        raise _damaged(folder, next((one for one, _ in error.failures.values()), error)) from None
    except Exception as error:  # torch's own kinds, one for each way in which a shard can be damaged
        raise _damaged(folder, error) from None


def fsdp_whole(folder: Path, output: Path, model: Path) -> None:
    """Write the weights of FSDP's FULL_STATE_DICT; arguments and errors are those of `fsdp`."""
    import torch
    from safetensors.torch import save_file

    try:
        tensors = torch.load(folder / "pytorch_model_fsdp.bin", map_location="cpu", weights_only=True)
        copies = {name: tensor.clone() for name, tensor in tensors.items()}
        save_file(copies, output / "model.safetensors", {"format": "pt"})
    except Exception as error:  # pickle's and zip's own kinds, and those of a file that holds something else
        raise _damaged(folder, error) from None


def _damaged(folder: Path, error: BaseException) -> UserError:
    reason = " ".join(str(error).split())[:300]
    return UserError(
        f"the weights of FSDP in {folder} could not be read ({reason}): a file may be missing or damaged",
        code="damaged-weights", path=str(folder),
    )  # fmt: skip
