"""Base models that are on the disk already: a folder, a mirror, the cache of the hub's client; and no hub at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest

from contracts import model_folder, provenance
from recipes import model_sources, models
from tests.unit.model_folders import CONTENT, weights
from tests.unit.small_hub import serve
from tests.unit.test_hub import NOTHING_THERE
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


@pytest.mark.slow
def test_a_folder_on_this_disk_is_linked_and_its_hash_recorded(tmp_path: Path) -> None:
    source = whole(tmp_path / "mine")
    (source / "model.gguf").touch()
    models.link_or_download({"folder": str(source)}, tmp_path / "model", None)
    record = provenance.read(tmp_path / "model")
    assert record["sha256"] == model_folder.check(tmp_path / "model", chat_template=True)
    assert record["folder"] == str(source) and not (source / "provenance.json").exists()
    assert (tmp_path / "model" / "model.safetensors").resolve() == source / "model.safetensors"
    assert not (tmp_path / "model" / "model.gguf").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["somebody/small", "small"])
def test_a_mirror_comes_first(tmp_path: Path, cache: Path, name: str) -> None:
    mirrored = whole(tmp_path / "mirror" / name)
    cached(cache)
    models.link_or_download(ENTRY, tmp_path / "model", tmp_path / "mirror")
    assert (tmp_path / "model" / "config.json").resolve() == mirrored / "config.json"
    assert provenance.read(tmp_path / "model")["origin"] == "mirror"


@pytest.mark.slow
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


@pytest.fixture
def hub_files(tmp_path: Path) -> dict[str, bytes]:
    """The files of a model on the hub, in two formats."""
    folder = whole(tmp_path / "served")
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    return files | {"pytorch_model.bin": b"the same weights again", "model.gguf": b"and again"}


@pytest.mark.slow
def test_a_download_goes_to_the_hub_s_cache_and_happens_once(
    tmp_path: Path, cache: Path, hub_files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = [name for name in hub_files if name not in ("pytorch_model.bin", "model.gguf")]
    with serve("somebody/small", hub_files, kind="models") as (endpoint, requests):
        use_hub(endpoint, monkeypatch)
        models.link_or_download(ENTRY | {"revision": "main"}, tmp_path / "model", None)
        loaded = [request.rpartition("/")[2] for request in requests if request.startswith("GET /somebody")]
        assert sorted(loaded) == sorted(served)
        requests.clear()
        for number, revision in enumerate((COMMIT, "main")):
            models.link_or_download(ENTRY | {"revision": revision}, tmp_path / f"again-{number}", None)
        assert not [request for request in requests if request.startswith("GET /somebody")]
    record = provenance.read(tmp_path / "model")
    assert (record["origin"], record["commit"], record["revision"]) == ("hub", COMMIT, "main")
    assert (tmp_path / "model" / "model.safetensors").resolve().is_relative_to(cache.resolve())
    monkeypatch.setenv("HF_ENDPOINT", NOTHING_THERE)
    models.link_or_download(ENTRY | {"revision": "main"}, tmp_path / "without-hub", None)
    assert provenance.read(tmp_path / "without-hub")["origin"] == "cache"


@pytest.mark.slow
@pytest.mark.parametrize("served", [{"cut": "model.safetensors"}, {"gated": True}, {"repo": "somebody/else"}])
def test_a_hub_that_cannot_serve_is_one_sentence(
    served: dict[str, Any], tmp_path: Path, cache: Path, hub_files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(served.pop("repo", "somebody/small"), hub_files, kind="models", **served) as (endpoint, requests):
        use_hub(endpoint, monkeypatch)
        if "cut" not in served:
            with refused("download-failed", name="somebody/small"):
                models.link_or_download(ENTRY, tmp_path / "model", None)
            return
        models.link_or_download(ENTRY, tmp_path / "model", None)  # the client asks again
        assert requests.count(f"GET /somebody/small/resolve/{COMMIT}/model.safetensors") == 2


def use_hub(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the client of this process, which read its settings before, ask this hub."""
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", endpoint)
    template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


def test_a_changed_folder_with_a_record_is_refused(tmp_path: Path) -> None:
    source = whole(tmp_path / "mine")
    (source / "provenance.json").write_text(json.dumps({"sha256": "0" * 64}))
    with refused("artefact-changed"):
        models.link_or_download({"folder": str(source)}, tmp_path / "model", None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", {"model_type": "qwen2", "vocab_size": 3, "auto_map": {"AutoConfig": "mine.Config"}}),
        ("config.json", {"model_type": "a", "text_config": {"auto_map": {"AutoModel": "somebody/else--mine.Model"}}}),
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["mine.Tokenizer", None]}}),
        ("processor_config.json", {"auto_map": {"AutoProcessor": "mine.Processor"}}),
    ],
)
def test_a_model_that_brings_code_is_not_trained_unless_it_is_named(
    tmp_path: Path, file: str, content: dict[str, Any]
) -> None:
    source = whole(tmp_path / "theirs")
    (source / file).write_text(json.dumps(content))
    (source / "mine.py").write_text("open('/tmp/ran', 'w')")
    provenance.write(source, code=True)  # what another's record says is no permission
    for code in (False, True):
        models.link_or_download({"folder": str(source)}, tmp_path / f"model-{code}", None, code=code)
    assert not (tmp_path / "model-False" / "mine.py").exists() and (tmp_path / "model-True" / "mine.py").exists()
    model_folder.check_code(tmp_path / "model-True")
    with refused("model-with-code", files=[file]):
        model_folder.check_code(tmp_path / "model-False")


def test_only_a_gguf_file_on_this_disk_is_what_a_model_is_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "ROOT", tmp_path)
    entry = {"folder": "g", "gguf": "mine.gguf"}
    assert models.own_file(entry) == []
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "mine.gguf").touch()
    assert models.own_file(entry) == [str(tmp_path / "g" / "mine.gguf")]
    for other in ({"folder": "g"}, {"wheel": "a", "gguf": "mine.gguf"}, {"hub": "a/b", "revision": "c"}):
        assert models.own_file(other) == []
