"""Base models that are on the disk already: a folder, a mirror, the cache of the hub's client; and no hub at all."""

from __future__ import annotations

import json
from pathlib import Path

import huggingface_hub.constants
import pytest

from contracts import model_folder, provenance
from recipes import model_sources, models
from tests.unit.test_hub import NOTHING_THERE
from tests.unit.test_model_folder import CONTENT, weights
from tests.user_errors import refused

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ENTRY = {"hub": "somebody/small", "revision": COMMIT}


def whole(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, content in CONTENT.items():
        (folder / name).write_text(content)
    weights(folder / "model.safetensors")
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub's client, and a hub that does not answer."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", NOTHING_THERE)
    return tmp_path / "cache" / "models--somebody--small"


def cached(cache: Path) -> Path:
    (cache / "refs").mkdir(parents=True)
    (cache / "refs" / "main").write_text(COMMIT)
    return whole(cache / "snapshots" / COMMIT)


def test_a_folder_on_this_disk_is_linked_and_its_hash_recorded(tmp_path: Path) -> None:
    source = whole(tmp_path / "mine")
    (source / "model.gguf").touch()
    models.link_or_download({"folder": str(source)}, tmp_path / "model", None)
    record = provenance.read(tmp_path / "model")
    assert record["sha256"] == model_folder.check(tmp_path / "model", chat_template=True)
    assert record["folder"] == str(source) and not (source / "provenance.json").exists()
    assert (tmp_path / "model" / "model.safetensors").resolve() == source / "model.safetensors"
    assert not (tmp_path / "model" / "model.gguf").exists()


@pytest.mark.parametrize("name", ["somebody/small", "small"])
def test_a_mirror_comes_first(tmp_path: Path, cache: Path, name: str) -> None:
    mirrored = whole(tmp_path / "mirror" / name)
    cached(cache)
    models.link_or_download(ENTRY, tmp_path / "model", tmp_path / "mirror")
    assert (tmp_path / "model" / "config.json").resolve() == mirrored / "config.json"
    assert provenance.read(tmp_path / "model")["origin"] == "mirror"


@pytest.mark.parametrize("revision", [COMMIT, "main"])
def test_what_the_cache_has_needs_no_hub(tmp_path: Path, cache: Path, revision: str) -> None:
    cached(cache)
    models.link_or_download(ENTRY | {"revision": revision}, tmp_path / "model", None)
    record = provenance.read(tmp_path / "model")
    assert (record["origin"], record["commit"], record["repository"]) == ("cache", COMMIT, "somebody/small")


def test_a_cut_copy_is_refused_in_a_mirror_and_no_copy_in_the_cache(tmp_path: Path, cache: Path) -> None:
    (cached(cache) / "model.safetensors").unlink()
    assert model_sources.from_cache("somebody/small", COMMIT) is None
    (whole(tmp_path / "mirror" / "small") / "tokenizer_config.json").unlink()
    with refused("incomplete-model"):
        models.link_or_download(ENTRY, tmp_path / "model", tmp_path / "mirror")


def test_without_hub_and_copy_there_is_one_sentence(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refused("download-failed", name="somebody/small"):
        models.link_or_download(ENTRY, tmp_path / "model", None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with refused("download-failed", name="somebody/small"):
        models.link_or_download(ENTRY, tmp_path / "model", None)
    with refused("missing-folder"):
        models.link_or_download(ENTRY, tmp_path / "model", tmp_path / "nowhere")


def test_a_changed_folder_with_a_record_is_refused(tmp_path: Path) -> None:
    source = whole(tmp_path / "mine")
    (source / "provenance.json").write_text(json.dumps({"sha256": "0" * 64}))
    with refused("model-changed"):
        models.link_or_download({"folder": str(source)}, tmp_path / "model", None)
