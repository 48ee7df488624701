"""Real Slurm daemons, for the tests of this folder; skipped where they are not installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slurm import daemons


@pytest.fixture(scope="session")
def slurm() -> None:
    """Skip a test if Slurm's daemons are not installed."""
    if why := daemons.missing():
        pytest.skip(why)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """A function that makes this process use a cluster, like a shell on its login node."""

    def use(cluster: daemons.Cluster) -> daemons.Cluster:
        for name in ("SBATCH_EXPORT", "SLURM_EXPORT_ENV"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PATH", cluster.environment["PATH"])
        return cluster

    yield use
