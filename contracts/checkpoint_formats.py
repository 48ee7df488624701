"""Folders of trainers that hold a model, but not as a model folder: which format it is, and what makes one of it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from system.yaml_files import read_yaml

FORMATS = Path(__file__).with_suffix(".yaml")
TORCH_WEIGHTS = re.compile(r"pytorch_model(?!_fsdp)[^/]*\.bin")
ADAPTER, ADAPTER_WEIGHTS, GGUF = "adapter", "adapter_model", "gguf"
NOT_WHOLE = (ADAPTER_WEIGHTS, "consolidated")  # Mistral's files hold the weights a second time, under names of its own


@dataclass(frozen=True)
class UnconvertedModel:
    """A folder that holds a model in another format.

    Attributes:
        format: a key of checkpoint_formats.yaml.
        folder: where the files are that show it: the folder itself, or one in it.
        what: the format, for readers.
        framework: that converts it; empty if none here does.
        instead: how to convert it otherwise.
    """

    format: str
    folder: Path
    what: str
    framework: str = ""
    instead: str = ""

    def remedy(self, typed: Path) -> str:
        """What to do with it.

        Args:
            typed: the folder that the user named.
        """
        model = typed.with_name(f"{re.sub(r'[.]gguf$', '', typed.name, flags=re.IGNORECASE)}-model")
        command = ["crosszero", "convert", str(typed), "--output", str(model)]
        needs_base = self.format not in (ADAPTER, GGUF) and self.configuration_folder() is None
        base = " --base MODEL, the model that was trained" if needs_base else ""
        return self.instead or f"make a model of it: {shlex.join(command)}{base}"

    def configuration_folder(self) -> Path | None:
        """The folder beside or above the weights that has the model's configuration; None if it has to be named."""
        folders = (self.folder / "huggingface", self.folder, self.folder.parent)
        return next((folder for folder in folders if (folder / "config.json").is_file()), None)


def weight_files(folder: Path) -> list[Path]:
    """The files of whole weights: safetensors, else torch's; no adapter's, FSDP's, Mistral's own or hidden ones."""
    files = sorted(file for file in folder.glob("[!.]*") if file.is_file())
    tensors = [file for file in files if file.suffix == ".safetensors" and not file.name.startswith(NOT_WHOLE)]
    return tensors or [file for file in files if TORCH_WEIGHTS.fullmatch(file.name)]


def _step(folder: Path) -> tuple[int, str]:
    """The number at the end of a folder's name, -1 without one, and the name: the newest of several is the largest."""
    digits = re.search(r"\d*$", folder.name)
    return int(digits[0]) if digits and digits[0] else -1, folder.name


def hint_inside(folder: Path) -> str:
    """The newest model or checkpoint up to three folders below, as a question; empty without one."""
    for pattern in ("*", "*/*", "*/*/*"):
        below = (one for one in folder.glob(pattern) if one.is_dir())
        models = [one for one in below if recognise(one) or (weight_files(one) and (one / "config.json").is_file())]
        if models:
            return f"; did you mean {max(models, key=_step)}?"
    return ""


def recognise(folder: Path) -> UnconvertedModel | None:
    """The format of a folder, or GGUF file, that is no model folder; None for one, and for what is not known."""
    formats: dict[str, dict[str, Any]] = read_yaml(FORMATS)
    if folder.suffix.lower() == ".gguf" and folder.is_file():
        return UnconvertedModel(GGUF, folder, formats[GGUF]["what"])
    if not folder.is_dir() or weight_files(folder):
        return None
    for name, one in formats.items():
        for inside in one["inside"]:
            folders = [folder.parent] if inside == ".." else list(folder.glob(inside)) if inside else [folder]
            for candidate in sorted(folders, key=_step, reverse=True):
                if any(next(candidate.glob(pattern), None) for pattern in one["files"]):
                    return UnconvertedModel(
                        name, candidate, one["what"], one.get("framework", ""), one.get("instead", "")
                    )
    return None
