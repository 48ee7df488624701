"""LoRA adapters of PEFT and accelerate's shards of FSDP as the weights of a model folder."""

from __future__ import annotations

from pathlib import Path

from frameworks.trl import lora
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
    except (RuntimeError, ValueError, KeyError, OSError) as error:
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

    try:
        merge_fsdp_weights(str(folder), str(output))
    except Exception as error:  # torch's own kinds, one for each way in which a shard can be damaged
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            f"the shards in {folder} could not be merged ({reason}): one may be missing or damaged",
            code="damaged-weights", path=str(folder),
        ) from None  # fmt: skip
