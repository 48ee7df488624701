"""What is worth knowing of a whole model folder before it is sampled: a sentence each; nothing of it is an error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from contracts import chat_template, model_dimensions
from system.text_safety import one_line

# Of generation_config.json: what changes samples. Engines that serve chats take them; the protocol states its own.
SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "no_repeat_ngram_size", "length_penalty")
BITS = {"F64": 53, "F32": 24, "F16": 11, "BF16": 8}  # of the significand
ENGINE = {"float32": "F32", "bfloat16": "BF16"}
ANSWER = "It is five"


def notes(folder: Path, dtype: str, max_tokens: int) -> list[str]:
    """Sentences about a model folder.

    Args:
        folder: in Hugging Face format, and whole (contracts.model_folder).
        dtype: that the engine computes in, such as bfloat16.
        max_tokens: that a completion may have.
    """
    content = {file.stem: _object(file) for file in folder.glob("*.json")}
    return [*_numbers(folder, content["config"], dtype), *_ends(folder, content), *_defaults(content, max_tokens)]


def _object(file: Path) -> dict[str, Any]:
    content = json.loads(file.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) else {}


def _numbers(folder: Path, config: Mapping[str, Any], dtype: str) -> Iterator[str]:
    method = config.get("quantization_config")
    if isinstance(method, dict):
        name = one_line(str(method.get("quant_method", "its quantization_config")))
        yield f"the weights are quantised ({name}): scores are those of the quantised model"
        return
    kinds = model_dimensions.number_types(sorted(folder.glob("*.safetensors")))
    stored = max(kinds & BITS.keys(), key=BITS.__getitem__, default="")
    if stored and BITS[stored] > BITS[ENGINE[dtype]]:
        yield f"the weights are stored as {stored}, and the engine rounds them to {dtype}"


def _ends(folder: Path, content: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Whether the token that ends the model's turn in its chat template is one that ends a completion."""
    listed = content.get("tokenizer", {}).get("added_tokens")
    numbers = {one.get("content"): one.get("id") for one in listed or () if isinstance(one, dict)}
    template = next((text for _, text in chat_template.of_folder(folder, content)), None)
    end = chat_template.end_of_turn(template, ANSWER) if template else ""
    token = next((text for text in numbers if isinstance(text, str) and text and end.startswith(text)), None)
    if token is None:
        return
    named = content["tokenizer_config"].get("eos_token")
    ends = {named.get("content") if isinstance(named, dict) else named}
    for name in ("config", "generation_config"):
        stated = content.get(name, {}).get("eos_token_id")
        ends |= set(stated if isinstance(stated, list) else [stated])
    if not ends & {token, numbers[token]}:
        yield (
            f"its chat template ends the model's turn with {one_line(token)}, which neither tokenizer_config.json nor "
            "generation_config.json names as an end token: completions may go on to their limit"
        )


def _defaults(content: Mapping[str, Mapping[str, Any]], max_tokens: int) -> Iterator[str]:
    defaults = content.get("generation_config", {})
    if stated := [f"{name} {defaults[name]}" for name in SAMPLING if isinstance(defaults.get(name), (int, float))]:
        yield f"its generation_config.json recommends {', '.join(stated)}; the protocol's own values are used"
    context = content["config"].get("max_position_embeddings")
    if isinstance(context, int) and context <= max_tokens:
        yield f"it has a context of {context:,} tokens, so completions end before the protocol's {max_tokens:,}"
