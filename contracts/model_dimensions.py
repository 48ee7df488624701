"""Do configuration, weights and tokenizer of a model folder belong together? Read from their headers, without torch."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from contracts import chat_template

EMBEDDING = re.compile(r"(.*\.)?(embed_tokens|wte|word_embeddings|embed_in)\.weight")
LAYER = re.compile(r"(?:.*\.)?(?:layers|h)\.(\d+)\.")
OWN_LAYER = re.compile(r"model\.layers\.(\d+)\.")
_ATTENTION = {f"self_attn.{name}_proj.weight" for name in "qkvo"}
_BIAS = {f"self_attn.{name}_proj.bias" for name in "qkv"}
_HEAD_NORMS = {"self_attn.q_norm.weight", "self_attn.k_norm.weight"}
_LLAMA = _ATTENTION | {f"mlp.{name}_proj.weight" for name in ("gate", "up", "down")}
_NORMS = {"input_layernorm.weight", "post_attention_layernorm.weight"}
_MLP_NORMS = {"pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight"}
# Model types whose layers are all alike, and what each layer has in transformers, without the options of some
ALIKE = {
    **dict.fromkeys(("llama", "mistral", "gemma", "smollm3"), _LLAMA | _NORMS),
    "qwen2": _LLAMA | _NORMS | _BIAS,
    "qwen3": _LLAMA | _NORMS | _HEAD_NORMS,
    "gemma2": _LLAMA | _NORMS | _MLP_NORMS,
    "gemma3_text": _LLAMA | _NORMS | _MLP_NORMS | _HEAD_NORMS,
    "olmo2": _LLAMA | _HEAD_NORMS | {f"post_{name}_layernorm.weight" for name in ("attention", "feedforward")},
    "phi3": _NORMS | {f"{name}_proj.weight" for name in ("self_attn.qkv", "self_attn.o", "mlp.gate_up", "mlp.down")},
}  # fmt: skip
TIED = ("gemma", "gemma2", "gemma3_text", "smollm3")  # output and embedding are one, unless the configuration says no
AROUND_LAYERS = ("model.embed_tokens.weight", "model.norm.weight")
END_TOKENS = ("eos_token",)  # without which no completion ends


def _tensors(weights: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """What the headers of safetensors files, which were found to be whole, say of each tensor; others have none."""
    read: dict[str, dict[str, Any]] = {}
    for file in (file for file in weights if file.suffix == ".safetensors"):
        with file.open("rb") as content:
            read |= json.loads(content.read(int.from_bytes(content.read(8), "little")))
    return {name: tensor for name, tensor in read.items() if name != "__metadata__"}


def number_types(weights: Sequence[Path]) -> set[str]:
    """The types of the tensors of safetensors files, such as BF16."""
    return {str(tensor.get("dtype")) for tensor in _tensors(weights).values()}


def largest_tensor(folder: Path) -> int:
    """The most elements that a tensor of a model folder has, by the headers of its safetensors files; 0 without any."""
    tensors = _tensors(sorted(folder.glob("*.safetensors"))).values()
    return max((math.prod(tensor["shape"]) for tensor in tensors), default=0)


def problem(weights: Sequence[Path], content: Mapping[str, Any]) -> str:
    """What does not fit together; empty if nothing is known to.

    Args:
        weights: the files with weights.
        content: the folder's JSON files, by name without .json.
    """
    tensors = {name: one["shape"] for name, one in _tensors(weights).items() if isinstance(one.get("shape"), list)}
    whole = content["config"]
    config = whole["text_config"] if isinstance(whole.get("text_config"), dict) else whole
    rows = next((shape[0] for name, shape in tensors.items() if EMBEDDING.fullmatch(name) and shape), None)
    stated = config.get("vocab_size")
    if isinstance(rows, int) and isinstance(stated, int) and stated != rows:
        return f"config.json states a vocabulary of {stated:,} tokens, but the weights have rows for {rows:,}"
    present = {int(match[1]) for name in tensors if (match := LAYER.match(name))}
    layers = config.get("num_hidden_layers")
    if present and isinstance(layers, int) and (lacking := layers - sum(layer < layers for layer in present)) > 0:
        first = next(layer for layer in range(layers) if layer not in present)  # there may be billions
        return f"config.json states {layers} layers, but the weights lack {lacking} of them, such as layer {first}"
    written = [text for _, text in chat_template.of_folder(weights[0].parent, content)]
    return (tensors and _missing_tensors(set(tensors), whole)) or _tokenizer_problem(content, rows or stated, written)


def _missing_tensors(names: set[str], config: Mapping[str, Any]) -> str:
    """Which tensors a model of a known type lacks, or has in layers that it does not build; empty if none."""
    layers = config.get("num_hidden_layers")
    quantised = config.get("quantization_config")  # which may differ between layers
    kind = str(config.get("model_type"))
    if kind not in ALIKE or not isinstance(layers, int) or quantised:
        return ""
    if beyond := [name for name in sorted(names) if (match := OWN_LAYER.match(name)) and int(match[1]) >= layers]:
        return f"config.json states {layers} layers, but the weights have more, such as {beyond[0]}"
    needed = {*AROUND_LAYERS, *([] if config.get("tie_word_embeddings", kind in TIED) else ["lm_head.weight"])}
    in_layers = ALIKE[kind] | {name[match.end() :] for name in names if (match := OWN_LAYER.match(name))}
    needed |= {f"model.layers.{layer}.{name}" for name in in_layers for layer in range(layers)}
    if not (absent := sorted(needed - names)):
        return ""
    others = f" (they have {min(names - needed)})" if names - needed else ""
    return f"the weights lack {len(absent)} tensors of a {kind} model, such as {absent[0]}{others}"


def _tokenizer_problem(content: Mapping[str, Any], rows: int | None, templates: Sequence[str]) -> str:
    """What is wrong with the tokens of tokenizer.json; empty without one.

    Added tokens beyond the model's rows do no harm where no chat template writes them: those of an image, say.
    """
    tokenizer = content.get("tokenizer", {})
    model = tokenizer.get("model") if isinstance(tokenizer, dict) else None
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocabulary, dict):  # a list of pairs, of unigram models
        return ""
    largest = max((number for number in vocabulary.values() if isinstance(number, int)), default=0)
    ends = [content.get(name, {}).get("eos_token_id") for name in ("config", "generation_config")]
    numbers = [number for one in ends for number in (one if isinstance(one, list) else [one])]
    if isinstance(rows, int) and (beyond := [one for one in numbers if isinstance(one, int) and one >= rows]):
        return f"the end token has number {beyond[0]:,}, but the model has {rows:,} tokens"
    listed = tokenizer.get("added_tokens")
    extra = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    written = [one for one in extra if any(str(one.get("content")) in template for template in templates)]
    largest = max([largest, *(one["id"] for one in written if isinstance(one.get("id"), int))])
    if isinstance(rows, int) and largest >= rows:
        return f"tokenizer.json has tokens up to number {largest:,}, but the model has {rows:,}: it is another model's"
    added = {str(one.get("content")) for one in extra}
    for name in END_TOKENS:
        token = content["tokenizer_config"].get(name)
        text = token.get("content") if isinstance(token, dict) else token
        if isinstance(text, str) and text not in vocabulary and text not in added:
            return f"tokenizer_config.json names the {name} {text!r}, which tokenizer.json does not have"
    return ""
