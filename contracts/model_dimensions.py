"""Do configuration, weights and tokenizer of a model folder belong together? Read from their headers, without torch."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

EMBEDDING = re.compile(r"(.*\.)?(embed_tokens|wte|word_embeddings|embed_in)\.weight")
LAYER = re.compile(r"(?:.*\.)?(?:layers|h)\.(\d+)\.")
END_TOKENS = ("eos_token",)  # without which no completion ends


def shapes(weights: Sequence[Path]) -> dict[str, list[int]]:
    """The shape of each tensor of safetensors files, whose headers were found to be whole; others have none."""
    read: dict[str, list[int]] = {}
    for file in (file for file in weights if file.suffix == ".safetensors"):
        with file.open("rb") as content:
            header = json.loads(content.read(int.from_bytes(content.read(8), "little")))
        read |= {name: tensor["shape"] for name, tensor in header.items() if isinstance(tensor.get("shape"), list)}
    return read


def problem(weights: Sequence[Path], content: Mapping[str, Any]) -> str:
    """What does not fit together; empty if nothing is known to.

    Args:
        weights: the files with weights.
        content: the folder's JSON files, by name without .json.
    """
    tensors = shapes(weights)
    config = content["config"]
    config = config["text_config"] if isinstance(config.get("text_config"), dict) else config
    rows = next((shape[0] for name, shape in tensors.items() if EMBEDDING.fullmatch(name) and shape), None)
    stated = config.get("vocab_size")
    if isinstance(rows, int) and isinstance(stated, int) and stated != rows:
        return f"config.json states a vocabulary of {stated:,} tokens, but the weights have rows for {rows:,}"
    present = {int(match[1]) for name in tensors if (match := LAYER.match(name))}
    layers = config.get("num_hidden_layers")
    if present and isinstance(layers, int) and (absent := sorted(set(range(layers)) - present)):
        return (
            f"config.json states {layers} layers, but the weights lack {len(absent)} of them, such as layer {absent[0]}"
        )
    return _tokenizer_problem(content, rows or stated)


def _tokenizer_problem(content: Mapping[str, Any], rows: int | None) -> str:
    """What is wrong with the tokens of tokenizer.json; empty without one."""
    tokenizer = content.get("tokenizer", {})
    model = tokenizer.get("model") if isinstance(tokenizer, dict) else None
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocabulary, dict):  # a list of pairs, of unigram models
        return ""
    largest = max((number for number in vocabulary.values() if isinstance(number, int)), default=0)
    if isinstance(rows, int) and largest >= rows:
        return f"tokenizer.json has tokens up to number {largest:,}, but the model has {rows:,}: it is another model's"
    added = {str(one.get("content")) for one in tokenizer.get("added_tokens") or () if isinstance(one, dict)}
    for name in END_TOKENS:
        token = content["tokenizer_config"].get(name)
        text = token.get("content") if isinstance(token, dict) else token
        if isinstance(text, str) and text not in vocabulary and text not in added:
            return f"tokenizer_config.json names the {name} {text!r}, which tokenizer.json does not have"
    return ""
