"""Fixtures of several files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tasks.sandbox import command, pool
from tests.unit.sandboxes import of_sandboxes


@pytest.fixture
def own_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Sandboxes of this test alone: their runner is this test's own file in the list of processes."""
    runner = tmp_path / "runner.py"
    runner.write_bytes(command.RUNNER.read_bytes())
    options = [str(runner) if word == str(command.RUNNER) else word for word in command.bubblewrap()]
    monkeypatch.setattr(command, "bubblewrap", lambda: options)
    monkeypatch.setattr(pool, "POOL", pool.Pool())
    yield runner
    pool.POOL.close()
    _, alive = psutil.wait_procs(of_sandboxes(runner), timeout=30)
    assert not alive
