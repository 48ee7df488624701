"""A model folder whose files are of several models, or whose weights are not all of its model, is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts import model_dimensions, model_folder
from tests import user_errors
from tests.unit.model_folders import WHOLE, make_folder, rewrite, weights, write_tensors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path)


@pytest.mark.parametrize(
    ("file", "values"),
    [
        ("config.json", {"vocab_size": 4}),
        ("config.json", {"text_config": {"vocab_size": 4}}),
        ("config.json", {"num_hidden_layers": 3}),
        ("config.json", {"num_hidden_layers": 1}),
        ("config.json", {"tie_word_embeddings": False}),
        ("config.json", {"eos_token_id": 3}),
        ("generation_config.json", {"eos_token_id": [1, 7]}),
        ("tokenizer.json", {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 3}}}),
        ("tokenizer_config.json", {"eos_token": "<|im_end|>"}),
        ("tokenizer_config.json", {"eos_token": {"content": "<|im_end|>"}}),
    ],
)
def test_files_of_several_models_are_refused(folder: Path, file: str, values: dict[str, object]) -> None:
    write_tensors(folder, *WHOLE)
    model_folder.check(folder, chat_template=True)
    rewrite(folder / file, **values)
    with user_errors.refused("mixed-model"):
        model_folder.check(folder, chat_template=True)


def test_an_added_token_beyond_the_rows_is_refused_where_a_template_writes_it(folder: Path) -> None:
    write_tensors(folder, *WHOLE)
    rewrite(folder / "tokenizer.json", added_tokens=[{"id": 3, "content": "<|image|>"}])
    model_folder.check(folder, chat_template=True)
    template = model_folder.chat_template(folder)
    (folder / "chat_template.jinja").write_text(f"{template}<|image|>")
    with user_errors.refused("mixed-model"):
        model_folder.check(folder, chat_template=True)


@pytest.mark.parametrize("lost", WHOLE)
def test_weights_without_one_tensor_or_with_a_trainer_s_names_are_refused(folder: Path, lost: str) -> None:
    for names in ([name for name in WHOLE if name != lost], [f"_orig_mod.{name}" for name in WHOLE]):
        write_tensors(folder, *names)
        with user_errors.refused("mixed-model"):
            model_folder.check(folder)
    rewrite(folder / "config.json", quantization_config={"quant_method": "gptq"})
    model_folder.check(folder)


def test_what_a_model_lacks_in_every_layer_or_by_the_default_of_its_type_is_missing(folder: Path) -> None:
    for lost in model_dimensions.ALIKE["qwen2"]:
        write_tensors(folder, *(name for name in WHOLE if not name.endswith(lost)))
        with user_errors.refused("mixed-model"):
            model_folder.check(folder)
    config = json.loads((folder / "config.json").read_text())
    del config["tie_word_embeddings"]
    (folder / "config.json").write_text(json.dumps(config))
    for names in (WHOLE, [*WHOLE, "lm_head.weight"]):
        write_tensors(folder, *names)
        if names is WHOLE:
            with user_errors.refused("mixed-model"):
                model_folder.check(folder)
        else:
            model_folder.check(folder)


@pytest.mark.slow
def test_weights_of_an_image_part_and_those_in_another_form_are_none_that_are_missing(folder: Path) -> None:
    write_tensors(folder, *WHOLE)
    weights(folder / "consolidated.safetensors", name="layers.0.attention.wq.weight")  # beside Mistral's own
    model_folder.check(folder)
    text = json.loads((folder / "config.json").read_text())
    write_tensors(folder, "vision_tower.layers.0.w", *[f"language_model.{name}" for name in WHOLE])
    rewrite(folder / "config.json", model_type="llava", text_config=text)
    model_folder.check(folder)
