"""Fixtures of several files."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import psutil
import pytest

from tasks.sandbox import bubblewrap, warm_pool
from tests.unit.sandboxes import sandbox_processes


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures, which take most of the time of a report, are empty."""

    def save_empty(figure: object, folder: Path, name: str) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        import_module("matplotlib.pyplot").close(figure)
        return "<svg></svg>"

    monkeypatch.setattr("analysis.pages.figure_style.save", save_empty)


@pytest.fixture
def own_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Sandboxes of this test alone: their runner is this test's own file in the list of processes."""
    runner = tmp_path / "runner.py"
    runner.write_bytes(bubblewrap.RUNNER.read_bytes())
    options = [str(runner) if word == str(bubblewrap.RUNNER) else word for word in bubblewrap.sandbox_command()]
    monkeypatch.setattr(bubblewrap, "sandbox_command", lambda: options)
    monkeypatch.setattr(warm_pool, "POOL", warm_pool.Pool())
    yield runner
    warm_pool.POOL.close()
    _, alive = psutil.wait_procs(sandbox_processes(runner), timeout=30)
    assert not alive
