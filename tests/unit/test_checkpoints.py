import json

import pytest

from contracts.errors import UserError
from eval import checkpoints
from eval.generate import parse_checkpoints


def weights(path, size=16):
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * size)


@pytest.fixture
def folder(tmp_path):
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    weights(tmp_path / "model.safetensors")
    return tmp_path


def test_a_complete_folder_is_accepted(folder):
    checkpoints.check(folder, chat_template=True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("config.json", "no config.json"),
        ("model.safetensors", "no weights"),
        ("tokenizer.json", "no tokenizer"),
        ("chat_template.jinja", "no chat template"),
    ],
)
def test_what_is_missing_is_named(folder, name, said):
    (folder / name).unlink()
    with pytest.raises(UserError, match=said):
        checkpoints.check(folder, chat_template=True)


def test_a_missing_folder(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        checkpoints.check(tmp_path / "step-7", chat_template=False)


def test_a_chat_template_is_only_needed_by_protocols_that_use_it(folder):
    (folder / "chat_template.jinja").unlink()
    checkpoints.check(folder, chat_template=False)
    (folder / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    checkpoints.check(folder, chat_template=True)


@pytest.mark.parametrize("content", [b"", b"\0" * 4, b"\xff" * 100, (4).to_bytes(8, "little") + b"nope" * 9])
def test_damaged_weights(folder, content):
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(UserError, match="truncated or damaged"):
        checkpoints.check(folder, chat_template=True)


def test_weights_cut_off(folder):
    weights(folder / "model.safetensors", size=15)
    with pytest.raises(UserError, match="truncated or damaged"):
        checkpoints.check(folder, chat_template=True)


def test_a_shard_that_the_index_names_is_missing(folder):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(UserError, match="00002-of-00002"):
        checkpoints.check(folder, chat_template=True)


@pytest.mark.parametrize("values", [["a=b"], ["1"], ["1="], ["1=a", "1=b"], ["-1=a"]])
def test_bad_checkpoint_arguments(values):
    with pytest.raises(UserError, match="--checkpoint"):
        parse_checkpoints(values)


def test_checkpoint_arguments():
    assert {step: str(path) for step, path in parse_checkpoints(["0=a", "100=b=c"]).items()} == {0: "a", 100: "b=c"}
