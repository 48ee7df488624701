"""verl's sharded weights as those of a model folder, by the release's own `verl.model_merger`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from frameworks import checkpoints
from system.errors import UserError


def verl_shards(actor: Path, output: Path, model: Path) -> None:
    """Write the weights of verl's FSDP shards, in bfloat16.

    Args:
        actor: the folder with `model_world_size_…_rank_….pt`.
        output: an empty folder.
        model: has the configuration and tokenizer.

    Raises:
        UserError: verl could not merge them.
    """
    if any((actor / "huggingface").glob("*.safetensors")):  # whole weights beside the shards, in training's precision
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
