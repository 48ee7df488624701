"""Native checkpoints: which are complete, and the files that are exported from them."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from contracts import model_folder
from system.errors import UserError


def newest_complete(checkpoints: Mapping[int, Sequence[Path]], complete: Callable[[int], bool]) -> int:
    """The newest complete checkpoint's step, 0 for none; the folders of newer ones, which a kill cut off, are deleted.

    Args:
        checkpoints: by step, all folders that belong to it.
        complete: whether a step's checkpoint was written to its end.
    """
    newest = max(filter(complete, checkpoints), default=0)
    for step, folders in checkpoints.items():
        for folder in folders if step > newest else ():
            shutil.rmtree(folder, ignore_errors=True)
    return newest


def discard_extra(checkpoints: Mapping[int, Sequence[Path]], every: int) -> None:
    """Delete what only a resume needs, all but the two newest: the newest may still be written.

    Args:
        checkpoints: by step, the folders of each.
        every: the steps of the run file are among the multiples of it.
    """
    for step in sorted(checkpoints)[:-2]:
        for folder in checkpoints[step] if step % every else ():
            shutil.rmtree(folder, ignore_errors=True)


def is_json(file: Path) -> bool:
    """Whether the file is there and was written to its end."""
    try:
        json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def is_whole(folder: Path) -> bool:
    """Whether every file of weights or state in a native checkpoint is whole; a power cut leaves empty or cut ones."""
    for file in folder.rglob("*"):
        if file.suffix == ".safetensors" and not model_folder.tensor_names(file):
            return False
        if file.suffix in (".pt", ".pth", ".bin") and not zipfile.is_zipfile(file):  # torch.save writes a zip archive
            return False
    return True


def step_number(checkpoint: Path, separator: str) -> int:
    """The number at the end of a native checkpoint's name."""
    return int(checkpoint.name.rpartition(separator)[2])


def weight_files(folder: Path) -> list[Path]:
    """The files with weights in a native checkpoint; raises UserError where there are none."""
    files = sorted(folder.glob("*.safetensors*")) if folder.is_dir() else []
    if not any(file.suffix == ".safetensors" for file in files):
        raise UserError(
            f"{folder} has no weights to export; delete the stage's training log to train it again",
            code="missing-weights",
            path=str(folder),
        )
    return files


def model_files(model: Path) -> list[Path]:
    """The files of a model folder, without its record."""
    return [file for file in sorted(model.iterdir()) if not file.is_dir() and file.name != "provenance.json"]


def files_beside_weights(model: Path) -> list[Path]:
    """The other files of a model folder: configuration, tokenizer, chat template."""
    return [file for file in model_files(model) if "safetensors" not in file.name]


def copy_into(files: Iterable[Path], output: Path) -> None:
    """Copy files into a folder."""
    for file in files:
        shutil.copy2(file, output / file.name)
