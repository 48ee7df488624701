"""Small clusters with all kinds of settings: preflight finds what would fail on each, and queues nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import preflight
from cluster.job_resources import Need
from contracts.run_file import ROOT
from tasks import sandbox
from tests.slurm import daemons

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("slurm")]
Use = Callable[[daemons.Cluster], daemons.Cluster]
PARTITIONS = """
PartitionName=cpu Nodes=n1 Default=YES MaxTime=240 State=UP
PartitionName=gpu Nodes=n2,n3 MaxTime=24:00:00 State=UP
PartitionName=closed Nodes=n1 State=DOWN
"""
TRAINING = Need(memory_mb=6000, minutes=600, gpus=4, nodes=2, cpus=2)
ANALYSIS = Need(memory_mb=1000, minutes=60)


@pytest.fixture(scope="module")
def running() -> Iterator[daemons.Cluster]:
    """Three nodes with two GPUs each of type demo, 2 CPUs and 8 GB."""
    with daemons.cluster(3, gpus=2, extra=PARTITIONS) as cluster:
        yield cluster


def settings(**changes: Any) -> dict[str, Any]:
    file = yaml.safe_load((ROOT / "profiles" / "slurm" / "cluster.yaml").read_text(encoding="utf-8"))
    limits = {"gpu_max_hours": 24, "max_memory_gb": 8}
    return {**file["cluster"], "partition": "cpu", "gpu_partition": "gpu", "gpu_type": "demo", **limits, **changes}


def run_preflight(training: Need = TRAINING, **changes: Any) -> tuple[list[str], list[str]]:
    """Preflight's errors and notes."""
    jobs = [{"name": "tables", **asdict(ANALYSIS)}, {"name": "training r/x", **asdict(training)}]
    findings = preflight.all_findings(settings(**changes), jobs)
    return [f.text for f in findings if f.error], [f.text for f in findings if not f.error]


def test_a_cluster_that_suits_the_runs(running: daemons.Cluster, known: Use) -> None:
    known(running)
    before = running.jobs()
    wrong, notes = run_preflight()
    assert not wrong
    sandboxes = (
        "starts no sandbox"
        if sandbox.why_unavailable()
        else "starts a"
        if sandbox.why_not_warm()
        else "starts sandboxes"
    )
    expected = ["keeps no accounting", sandboxes]
    assert len(notes) == len(expected) and all(word in note for word, note in zip(expected, notes, strict=True)), notes
    # the short job says by its exit status what it did not find
    states = {state for job, state in running.jobs().items() if job not in before}
    assert states == {"FAILED" if sandbox.why_not_warm() else "COMPLETED"}


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"partition": "cpus"}, ("partition: cpus", "cpu, gpu, closed", "did you mean cpu?")),
        ({"gpu_partition": "a100"}, ("gpu_partition: a100", "cpu, gpu, closed")),
        ({"partition": "closed"}, ("closed is closed",)),
        ({"gpu_type": "h100"}, ("type h100", "has demo", "gpu_type")),
        ({"gpu_partition": "cpu", "gpu_max_hours": 20}, ("requests 10 h", "cpu allows 4 h", "gpu_max_hours: 4")),
        ({"account": "physics"}, ("account: physics", "keeps no accounts", "null")),
        ({"gpu_constraint": "liquid"}, ("refused by sbatch", "--constraint=liquid", "Invalid feature")),
    ],
)
def test_a_wrong_setting(running: daemons.Cluster, known: Use, changes: dict[str, Any], parts: tuple[str, ...]) -> None:
    known(running)
    wrong, _ = run_preflight(**changes)
    assert any(all(word in text for word in parts) for text in wrong), wrong


@pytest.mark.parametrize(
    ("need", "parts"),
    [
        (Need(6000, 2000, gpus=4, nodes=2), ("33.33 h", "gpu allows 24 h", "gpu_max_hours: 24", "checkpoint")),
        (Need(6000, 60, gpus=8, nodes=2), ("4 GPUs per node", "at most 2", "nodes: 4")),
        (Need(6000, 60, gpus=6, nodes=3), ("3 nodes", "has only 2 that fit")),
        (Need(1000, 600, gpus=2), ("requests, at its 4th attempt, 40 h", "gpu allows 24 h", "gpu_max_hours: 24")),
        (Need(6000, 60, gpus=2), ("requests, at its 4th attempt, 24.5 GB", "at most 8 GB", "max_memory_gb: 8")),
        (Need(9000, 60, gpus=2), ("9.5 GB per node", "at most 8 GB", "max_memory_gb: 8")),
        (Need(6000, 60, gpus=2, cpus=16), ("16 CPUs per node", "at most 2", "max_cpus: 2")),
    ],
)
def test_a_run_that_does_not_fit(running: daemons.Cluster, known: Use, need: Need, parts: tuple[str, ...]) -> None:
    known(running)
    wrong, _ = run_preflight(need, gpu_max_hours=None, max_memory_gb=None)
    assert any(all(word in text for word in ("training r/x", *parts)) for text in wrong), wrong


def test_a_run_fits_with_the_proposed_limits(running: daemons.Cluster, known: Use) -> None:
    known(running)
    greedy = Need(9000, 2000, gpus=2, cpus=16)
    wrong, _ = run_preflight(greedy, gpu_max_hours=24, max_memory_gb=8, max_cpus=2)
    assert not wrong


def test_no_default_partition_and_none_set(known: Use) -> None:
    with daemons.cluster(1, extra="PartitionName=main Nodes=n1") as cluster:
        known(cluster)
        wrong, _ = run_preflight(ANALYSIS, partition=None, gpu_partition=None)
        assert wrong == [
            "profiles/slurm/cluster.yaml: partition is not set, and this cluster has no default; partitions: main"
        ]


def test_a_folder_that_nodes_do_not_see_and_a_python_that_they_do_not_have(
    running: daemons.Cluster, known: Use, tmp_path: Path
) -> None:
    """The node is this machine, so what it cannot see is what is gone when it looks."""
    from cluster import probe

    known(running)
    error, text = probe.run_probe(["--partition=cpu", "--mem=100"], tmp_path, tmp_path / "python")
    assert error and "cannot run" in text
    assert probe.explain_status(probe.UNSEEN, "", tmp_path, tmp_path)[0]
    error, text = probe.run_probe(
        ["--partition=cpu", "--mem=100", "--begin=now+1hour"], tmp_path, tmp_path, wait_seconds=3
    )
    assert not error and "was not tested" in text
    running.wait_for("the short job's end", lambda: "PENDING" not in running.jobs().values())


def test_export_none(known: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site's wrapper of sbatch forces --export=NONE; the shell may ask for it, too."""
    with daemons.cluster(1) as cluster:
        known(cluster)
        monkeypatch.setenv("SBATCH_EXPORT", "NONE")
        wrong, notes = run_preflight(ANALYSIS, partition=None, gpu_partition=None)
        assert not wrong and any("SBATCH_EXPORT=NONE" in text for text in notes)
        sbatch = cluster.folder / "bin" / "sbatch"
        sbatch.rename(sbatch.with_name("sbatch.real"))
        sbatch.write_text(
            '#!/bin/sh\nfor word; do shift; [ "$word" = --export=ALL ] && word=--export=NONE; set -- "$@" "$word"; '
            f'done\nexec {sbatch}.real "$@"\n'
        )
        sbatch.chmod(0o755)
        monkeypatch.delenv("SBATCH_EXPORT")
        wrong, notes = run_preflight(ANALYSIS, partition=None, gpu_partition=None)
        assert not wrong and any("empty environment" in text and "modules" in text for text in notes), (wrong, notes)


def test_no_slurm_at_all_and_a_controller_that_does_not_answer(
    known: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "sbatch is not installed" in run_preflight(ANALYSIS)[0][0]
    with daemons.cluster(1) as cluster:
        known(cluster)
        cluster.stop("slurmctld")
        wrong, _ = run_preflight(ANALYSIS)
        assert len(wrong) == 1 and "does not answer" in wrong[0]
