"""A model folder whose files are cut, damaged or missing is refused before vLLM or a trainer starts."""

from __future__ import annotations

import json
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from contracts import model_folder, provenance
from system.errors import UserError
from tests import user_errors
from tests.budgets import examples
from tests.unit.model_folders import CONTENT, TEMPLATE, WHOLE, make_folder, refused, rewrite, weights, write_tensors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path)


def test_a_whole_folder_is_accepted_and_hashed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert model_folder.check(folder, chat_template=True) == provenance.sha256(folder)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("config.json", "no config.json"),
        ("model.safetensors", "no weights"),
        ("tokenizer.json", "no tokenizer"),
        ("tokenizer_config.json", "no tokenizer_config.json"),
        ("chat_template.jinja", "no chat template"),
    ],
)
def test_what_is_missing_is_named(folder: Path, name: str, said: str) -> None:
    (folder / name).unlink()
    refused(folder, said)


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    refused(tmp_path, str(tmp_path), "no weights", "no tokenizer")
    refused(tmp_path / "step-7", "no such folder")


def test_a_chat_template_is_only_needed_by_protocols_that_use_it(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    model_folder.check(folder)
    (folder / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    model_folder.check(folder, chat_template=True)


@pytest.mark.parametrize("content", [b"", b"\0" * 4, b"\xff" * 100, (4).to_bytes(8, "little") + b"nope" * 9])
def test_damaged_weights(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    refused(folder, "truncated or damaged")


def test_weights_cut_off(folder: Path) -> None:
    weights(folder / "model.safetensors", size=15)
    refused(folder, "truncated or damaged")


def shards(folder: Path, **contents: str) -> None:
    """Weights in two parts, as an index lists them: the file of each tensor."""
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": contents}))


def test_a_shard_that_the_index_names_is_missing(folder: Path) -> None:
    shards(folder, w="model-00001-of-00002.safetensors", b="model-00002-of-00002.safetensors")
    refused(folder, "00002-of-00002")
    (folder / "model.safetensors.index.json").unlink()
    refused(folder, "1 of 2 parts")


def test_a_tensor_that_the_index_names_is_missing(folder: Path) -> None:
    shards(folder, w="model-00001-of-00002.safetensors", b="model-00002-of-00002.safetensors")
    weights(folder / "model-00002-of-00002.safetensors", name="other")
    refused(folder, "lack 1 tensors", "such as b")
    weights(folder / "model-00002-of-00002.safetensors", name="b")
    model_folder.check(folder)


@pytest.mark.parametrize(
    "copy", ["model-00001-of-00001.safetensors", "model_old.safetensors", "pytorch_model-00001-of-00001.bin"]
)
@pytest.mark.parametrize("is_indexed", [False, True])
def test_two_copies_of_the_weights_are_refused(folder: Path, copy: str, is_indexed: bool) -> None:
    first = folder / "model.safetensors"
    if copy.endswith(".bin"):
        first = first.rename(folder / "pytorch_model.bin")
        first.write_bytes(torch_weights(folder))
    shutil.copy(first, folder / copy)
    if is_indexed:
        (folder / f"{first.name}.index.json").write_text(json.dumps({"weight_map": {"w": copy}}))
    with user_errors.refused("several-weights", files=sorted([first.name, copy])):
        model_folder.check(folder)
    weights(folder / "consolidated.safetensors")  # the form of Mistral, and an adapter, are no second copy
    weights(folder / "adapter_model.safetensors")
    (folder / copy).unlink()
    (folder / f"{first.name}.index.json").unlink(missing_ok=True)
    if not copy.endswith(".bin"):
        model_folder.check(folder)


FILES = [*CONTENT, "model.safetensors"]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@examples("costly", suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_cut_file_is_never_accepted_in_silence(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, data: st.DataObject
) -> None:
    whole = (folder / name).read_bytes()
    kept = data.draw(st.integers(0, len(whole) - 1))
    (folder / name).write_bytes(whole[:kept])
    try:
        model_folder.check(folder, chat_template=True)
    except UserError as error:
        assert str(folder) in str(error) and "\n" not in str(error)
    else:
        assert name == "chat_template.jinja" and "may be cut" in capsys.readouterr().err, (name, whole[:kept])
    finally:
        (folder / name).write_bytes(whole)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", [b"", b"\0" * 50, b"[]", b"null", b"\xff\xfe\0garbage", b"[" * 100_000])
def test_other_content_is_refused(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    if name == "special_tokens_map.json" and content in (b"[]", b"null"):  # whole, and nothing reads it
        model_folder.check(folder, chat_template=True)
    else:
        refused(folder, str(folder))


@pytest.mark.parametrize("name", FILES)
def test_a_folder_in_place_of_a_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()
    if name in ("generation_config.json", "special_tokens_map.json"):  # optional
        model_folder.check(folder, chat_template=True)
    else:
        refused(folder, str(folder))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_any_change_of_a_recorded_folder_is_noticed(folder: Path, name: str) -> None:
    provenance.write(folder, sha256=provenance.sha256(folder))
    model_folder.check(folder)
    whole, chosen = (folder / name).read_bytes(), random.Random(name)
    for _ in range(8):
        at = chosen.randrange(len(whole))
        changed = bytes([whole[at] ^ 1 << chosen.randrange(8)])
        (folder / name).write_bytes(whole[:at] + changed + whole[at + 1 :])
        refused(folder, str(folder))


def sentencepiece(folder: Path) -> bytes:
    """sentencepiece_model.proto: pieces, trainer_spec and normalizer_spec, one after another."""
    fields = [(1, b"\n\x01a"), (1, b"\n\x02ab"), (2, b"\x10\x01"), (3, b"\n\x04nfkc")]
    return b"".join(bytes([number << 3 | 2, len(field)]) + field for number, field in fields)


def torch_weights(folder: Path) -> bytes:
    with zipfile.ZipFile(folder / "made", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
        archive.writestr("archive/data/0", b"\0" * 64)
    content = (folder / "made").read_bytes()
    (folder / "made").unlink()
    return content


def merges(folder: Path) -> bytes:
    (folder / "vocab.json").write_text(json.dumps({"a": 0, "b": 1, "ab": 2, "aba": 3, "<|end|>": 4}))
    return b"#version: 0.2\na b\nab a\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make", "instead_of"),
    [
        ("tokenizer.model", sentencepiece, "tokenizer.json"),
        ("merges.txt", merges, "tokenizer.json"),
        ("pytorch_model.bin", torch_weights, "model.safetensors"),
    ],
)
def test_older_formats_cut_at_every_byte(
    folder: Path, name: str, make: Callable[[Path], bytes], instead_of: str
) -> None:
    (folder / instead_of).unlink()
    whole = make(folder)
    (folder / name).write_bytes(whole)
    model_folder.check(folder, chat_template=True)
    for kept in range(len(whole.rstrip(b"\n"))):  # a last line end less changes nothing
        (folder / name).write_bytes(whole[:kept])
        refused(folder, str(folder))
    (folder / name).unlink()
    refused(folder, str(folder))


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
        "{{ add_generation_prompt }}",
        "{% for m in messages %}{% if m.role == 'tool' %}{% break %}{% endif %}{{ m | tojson(indent=2) }}{% endfor %}"
        "{{ strftime_now('%d') }}{% if add_generation_prompt %}{{ bos_token }}{% endif %}",
    ],
)
def test_what_templates_use_of_transformers_is_known(
    folder: Path, template: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "chat_template.jinja").write_text(template)
    model_folder.check(folder, chat_template=True)
    assert capsys.readouterr().err == ""


def test_a_template_in_the_tokenizers_configuration_is_checked(folder: Path) -> None:
    shutil.move(folder / "chat_template.jinja", folder / "kept")
    for listed in (TEMPLATE, [{"name": "default", "template": TEMPLATE}]):
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": listed}))
        model_folder.check(folder, chat_template=True)
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE[:-5]}))
    refused(folder, "tokenizer_config.json", "chat template")


@pytest.mark.parametrize("name", ["model-00001-of-00002.safetensors", "pytorch_model-00001-of-00002.bin"])
def test_one_shard_of_two_without_an_index_is_refused(folder: Path, name: str) -> None:
    (folder / "model.safetensors").rename(folder / name)
    if name.endswith(".bin"):
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr("data.pkl", b"")
    refused(folder, "1 of 2 parts")


def test_what_takes_hours_is_refused_at_once_and_what_a_mac_leaves_is_not_read(folder: Path) -> None:
    write_tensors(folder, *WHOLE)
    for name in ("._model.safetensors", "._config.json"):
        (folder / name).write_bytes(b"Mac OS X")
    model_folder.check(folder)
    rewrite(folder / "config.json", num_hidden_layers=10**10)
    refused(folder, "layer 2", chat_template=False)
    rewrite(folder / "config.json", num_hidden_layers=2)
    with (folder / "notes.dat").open("wb") as file:
        file.truncate(10**13)
    refused(folder, "has holes", chat_template=False)


@pytest.mark.parametrize("shape", ["[5]", "[99999999999]", "[-4]", "[" + "1," * 20 + "4]"])
def test_a_tensor_whose_shape_is_not_that_of_its_bytes_is_refused(folder: Path, shape: str) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).replace("[4]", shape).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 16)
    refused(folder, "truncated or damaged")
