"""Checks of checkpoint folders before anything expensive starts: configuration, weights and tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

from contracts.errors import UserError

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json")


def check(folder: Path, *, chat_template: bool) -> None:
    """Raise UserError unless this folder can be evaluated.

    Args:
        folder: a model in Hugging Face format.
        chat_template: whether the protocol needs the tokenizer to have one.
    """
    if not folder.is_dir():
        raise UserError(f"checkpoint {folder} should be a folder in Hugging Face format, but there is no such folder")
    if not (folder / "config.json").is_file():
        raise UserError(f"checkpoint {folder} has no config.json: give the folder that the trainer exported")
    _check_weights(folder)
    if not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        raise UserError(
            f"checkpoint {folder} has no tokenizer (none of {', '.join(_TOKENIZER_FILES)}): copy the base model's "
            "tokenizer files into it"
        )
    if chat_template and not _has_chat_template(folder):
        raise UserError(
            f"the tokenizer of checkpoint {folder} has no chat template, which the protocol needs: add "
            "chat_template.jinja to the folder, or evaluate with --set chat_template=false"
        )


def _check_weights(folder: Path) -> None:
    files = [*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")]
    if not files:
        raise UserError(
            f"checkpoint {folder} has no weights (*.safetensors or pytorch_model*.bin): it was not exported "
            "completely; export it again"
        )
    for index in folder.glob("*.index.json"):
        named = set(json.loads(index.read_text(encoding="utf-8")).get("weight_map", {}).values())
        absent = sorted(name for name in named if not (folder / name).is_file())
        if absent:
            raise UserError(f"checkpoint {folder} is missing weights that {index.name} lists: {', '.join(absent)}")
    for file in files:
        if file.suffix == ".safetensors" and file.stat().st_size != _safetensors_size(file):
            raise UserError(f"weights {file} are truncated or damaged: export the checkpoint again")


def _safetensors_size(file: Path) -> int:
    """The size of a safetensors file in bytes, according to its header; -1 if that cannot be read.

    A file is 8 bytes with the header's length, the header in JSON, and the tensors (safetensors' format description).
    """
    with file.open("rb") as content:
        length = int.from_bytes(content.read(8), "little")
        if not 2 <= length < file.stat().st_size:
            return -1
        try:
            header = json.loads(content.read(length))
            ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, AttributeError):
            return -1
    return 8 + length + max(ends, default=0)


def _has_chat_template(folder: Path) -> bool:
    if any((folder / name).is_file() for name in ("chat_template.jinja", "chat_template.json")):
        return True
    config = folder / "tokenizer_config.json"
    return config.is_file() and bool(json.loads(config.read_text(encoding="utf-8")).get("chat_template"))
