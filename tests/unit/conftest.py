"""Fixtures of several files."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from recipes import models
from system.yaml_files import read_yaml
from tasks.sandbox import bubblewrap, warm_pool
from tests.unit.sandboxes import sandbox_processes
from tests.waiting import LIMIT

if TYPE_CHECKING:
    from analysis.benchmark.trainings import Training


Declare = Callable[..., None]


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Add entries to models.yaml."""
    known = read_yaml(models.FOLDER / "models.yaml")

    def add(**entries: Any) -> None:
        read = lambda file: {**known, **entries} if file.name == "models.yaml" else read_yaml(file)  # noqa: E731
        monkeypatch.setattr(models, "read_yaml", read)

    return add


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures, which take most of the time of a report, are empty."""

    def save_empty(figure: object, folder: Path, name: str) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        import_module("matplotlib.pyplot").close(figure)
        return "<svg></svg>"

    monkeypatch.setattr("analysis.pages.figure_style.save", save_empty)


@pytest.fixture
def own_sandboxes(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Sandboxes of this test alone, by their host name in the list of processes."""
    name = f"sandbox-{secrets.token_hex(6)}"
    options = bubblewrap.sandbox_options()
    monkeypatch.setattr(bubblewrap, "sandbox_options", lambda: [*options, "--hostname", name])
    monkeypatch.setattr(warm_pool, "POOL", warm_pool.Pool())
    yield name
    warm_pool.POOL.close()
    _, alive = psutil.wait_procs(sandbox_processes(name), timeout=LIMIT)
    assert not alive


@pytest.fixture
def empty_folder(tmp_path: Path) -> Iterator[None]:
    """Where bash writes what a script writes, and where no file matches a wildcard."""
    with contextlib.chdir(tmp_path):
        yield


@pytest.fixture(scope="module")
def one_training(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A training as another machine would have it."""
    stored = import_module("tests.unit.stored_training")
    folder = tmp_path_factory.mktemp("results")
    stored.store(folder, stored.RUN, 0)
    training: Training = stored.read(folder)
    return training
