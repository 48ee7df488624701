"""Real Slurm daemons, for the tests of this folder; skipped where they are not installed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm import daemons


@pytest.fixture(scope="session")
def slurm() -> None:
    """Skips a test where Slurm's daemons are not installed."""
    if why := daemons.missing():
        pytest.skip(why)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """A function that has this process use a cluster, as a shell on its login node would."""

    def use(cluster: daemons.Cluster) -> daemons.Cluster:
        for name in ("SBATCH_EXPORT", "SLURM_EXPORT_ENV"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PATH", cluster.environment["PATH"])
        return cluster

    yield use


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short path, for sockets in it: their paths may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="cz-", dir="/tmp") as folder:
        yield Path(folder)
