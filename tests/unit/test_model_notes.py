"""What is said of a model folder before it is sampled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts import model_notes
from tests.unit.model_folders import CONTENT, rewrite

ENDED = {"model": {"vocab": {"a": 0, "b": 1, "ab": 2}}, "added_tokens": [{"id": 2, "content": "<|end|>"}]}


def weights(folder: Path, dtype: str) -> None:
    header = json.dumps({"w": {"dtype": dtype, "shape": [4], "data_offsets": [0, 16]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 16)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in CONTENT.items():
        (tmp_path / name).write_text(content)
    weights(tmp_path, "BF16")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "values", "parts"),
    [
        ("config.json", {"max_position_embeddings": 512}, ["512 tokens", "1,000"]),
        ("config.json", {"quantization_config": {"quant_method": "awq"}}, ["awq"]),
        (
            "generation_config.json",
            {"temperature": 0.6, "top_k": 20, "do_sample": True},
            ["temperature 0.6, top_k 20;"],
        ),
        ("tokenizer.json", ENDED, []),
        ("tokenizer.json", {**ENDED, "added_tokens": [{"id": 0, "content": "<|end|>"}]}, ["<|end|>"]),
    ],
)
def test_what_is_said(folder: Path, file: str, values: dict[str, object], parts: list[str]) -> None:
    assert model_notes.notes(folder, "bfloat16", 1000) == []
    rewrite(folder / file, **values)
    said = model_notes.notes(folder, "bfloat16", 1000)
    assert len(said) == bool(parts) and all(part in said[0] for part in parts), said


@pytest.mark.parametrize(
    ("stored", "dtype", "is_said"),
    [
        ("F32", "bfloat16", True), ("F16", "bfloat16", True), ("BF16", "bfloat16", False), ("F32", "float32", False),
        ("F64", "float32", True), ("I64", "float32", False),
    ],
)  # fmt: skip
def test_rounded_weights(folder: Path, stored: str, dtype: str, is_said: bool) -> None:
    weights(folder, stored)
    said = model_notes.notes(folder, dtype, 10)
    assert (
        [] if not is_said else [f"the weights are stored as {stored}, and the engine rounds them to {dtype}"]
    ) == said


def test_a_template_that_shows_no_end_is_not_judged(folder: Path) -> None:
    (folder / "tokenizer.json").write_text(json.dumps(ENDED))
    for template in ("{{ raise_exception('no') }}", "{{ messages[0]['content'] }}", "", "{{ 1 / 0 }}"):
        (folder / "chat_template.jinja").write_text(template)
        assert model_notes.notes(folder, "float32", 10) == []
