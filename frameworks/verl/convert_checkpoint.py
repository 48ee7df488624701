"""verl's sharded weights as those of a model folder, by the release's own `verl.model_merger`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from frameworks import checkpoints, lora
from system.errors import UserError

LORA_SCALE = "lora_train_meta.json"


def verl_shards(actor: Path, output: Path, model: Path) -> None:
    """Write the weights of verl's FSDP shards, in bfloat16; a LoRA adapter in them is merged into the frozen weights.

    Args:
        actor: the folder with `model_world_size_…_rank_….pt`.
        output: an empty folder.
        model: has the configuration and tokenizer.

    Raises:
        UserError: verl could not merge them, or nothing says how an adapter is scaled.
    """
    merge_shards(actor, output, model)
    if not (output / "lora_adapter").is_dir():
        return
    with tempfile.TemporaryDirectory(dir=output) as folder:
        frozen = Path(folder)
        for part in [one for one in output.iterdir() if one != frozen]:
            part.rename(frozen / part.name)
        beside = actor / "lora_adapter"
        adapter = beside if beside.is_dir() else frozen / "lora_adapter"
        if not json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8")).get("lora_alpha"):
            raise UserError(
                f"{actor} holds a LoRA adapter without its scale, which verl writes to {LORA_SCALE}: copy that file "
                'beside the shards, or write {"r": RANK, "lora_alpha": ALPHA} of the training into it',
                code="missing-lora-scale",
                path=str(actor),
            )
        lora.merge_adapter(adapter, frozen, output)


def merge_shards(actor: Path, output: Path, model: Path) -> None:
    """Write what verl's shards hold, in bfloat16: the weights or, of LoRA, the frozen ones and lora_adapter/.

    Args:
        actor: the folder with `model_world_size_…_rank_….pt`.
        output: an empty folder.
        model: has the configuration and tokenizer.

    Raises:
        UserError: verl could not merge them.
    """
    is_lora = (actor / LORA_SCALE).exists() or (actor / "lora_adapter").exists()
    if any((actor / "huggingface").glob("*.safetensors")) and not is_lora:  # whole weights, in training's precision
        checkpoints.copy_into(checkpoints.weight_files(actor / "huggingface"), output)
        return
    with tempfile.TemporaryDirectory(dir=output) as folder:
        shards = Path(folder)
        for file in (*actor.glob("*.pt"), *actor.glob("*.json")):
            (shards / file.name).symlink_to(file.resolve())
        (shards / "huggingface").mkdir()
        checkpoints.copy_into(checkpoints.files_beside_weights(model), shards / "huggingface")
        options = ["merge", "--backend", "fsdp", "--local_dir", folder, "--target_dir", str(output)]
        if subprocess.run([sys.executable, "-m", "verl.model_merger", *options], check=False).returncode:
            raise UserError(
                f"verl could not merge the weights in {actor}, its messages are above: a shard may be missing or "
                "damaged; of a run here, delete the stage's training log to train it again",
                code="damaged-weights",
                path=str(actor),
            )
