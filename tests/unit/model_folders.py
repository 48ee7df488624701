"""Small model folders for tests, whole and of single tensors, and how their refusal is looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts import model_dimensions, model_folder
from system.errors import UserError

TEMPLATE = (
    "{%- if messages[0]['role'] == 'system' -%}{{ '<s>' + messages[0]['content'] }}{%- endif -%}"
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CONTENT = {
    "config.json": json.dumps(
        {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 3, "tie_word_embeddings": True},
        indent=2,
    ),
    "generation_config.json": json.dumps({"eos_token_id": [1, 2], "pad_token_id": 0}, indent=2),
    "tokenizer.json": json.dumps({"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}}}),
    "tokenizer_config.json": json.dumps({"eos_token": "b", "model_max_length": 512}, indent=2),
    "special_tokens_map.json": json.dumps({"eos_token": "b"}),
    "chat_template.jinja": TEMPLATE,
}


def weights(path: Path, size: int = 16, name: str = "w") -> None:
    header = json.dumps({name: {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * size)


def make_folder(folder: Path) -> Path:
    """A whole model folder."""
    for name, content in CONTENT.items():
        (folder / name).write_text(content)
    weights(folder / "model.safetensors")
    return folder


def refused(folder: Path, *parts: str, chat_template: bool = True) -> None:
    with pytest.raises(UserError) as raised:
        model_folder.check(folder, chat_template=chat_template)
    said = str(raised.value)
    assert "\n" not in said and all(word in said for word in parts), said


def rewrite(file: Path, **values: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def write_tensors(folder: Path, *names: str) -> None:
    """Weights of twelve numbers each, three rows in the embedding, and a configuration with two layers."""
    header = json.dumps(
        {
            name: {"dtype": "F32", "shape": [3, 4], "data_offsets": [48 * index, 48 * index + 48]}
            for index, name in enumerate(names)
        }
    )
    data = b"\0" * 48 * len(names)
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header.encode() + data)
    rewrite(folder / "config.json", num_hidden_layers=2)


WHOLE = (
    "model.embed_tokens.weight", "model.norm.weight",
    *sorted(f"model.layers.{layer}.{name}" for layer in range(2) for name in model_dimensions.ALIKE["qwen2"]),
)  # fmt: skip
