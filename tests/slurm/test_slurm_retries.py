"""Interrupted jobs are submitted again with more memory and time, failed ones are not: through real sbatch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from system.exit_status import RESUMABLE
from tests.slurm import daemons
from tests.waiting import WORKFLOW_LIMIT

SNAKEFILE = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from cluster import retry_interrupted
from cluster.job_resources import Need, resources_for_attempt
import snakemake_executor_plugin_slurm
CLUSTER = dict.fromkeys(
    "account partition gpu_partition qos gpu_type gpu_constraint max_hours gpu_max_hours max_cpus max_memory_gb extra"
    .split())
if workflow.is_main_process:
    retry_interrupted.retry_only_interrupted(snakemake_executor_plugin_slurm.Executor, Path("work"))
else:
    shell.prefix("set -euo pipefail; " + retry_interrupted.record_exit_status(Path("work")))

def asks(need):
    def one(key):
        return lambda wildcards, attempt: resources_for_attempt(need, CLUSTER, attempt).get(key)
    return {{key: one(key) for key in resources_for_attempt(need, CLUSTER)}}

rule greedy:
    output: "greedy"
    resources: **asks(Need(memory_mb=300, minutes=1))
    shell:
        "echo try >> greedy.tries; {python} -c 'x = bytearray(1000 << 20); import time; time.sleep(8)' && "
        "touch {{output}}"

rule interrupted:
    output: "interrupted"
    resources: **asks(Need(memory_mb=300, minutes=2))
    shell:
        "echo $SLURMD_NODENAME >> nodes; if [ $(wc -l < nodes) = 1 ]; then sleep 90; exit 1; fi; touch {{output}}"

rule resumable:
    output: "resumable"
    resources: **asks(Need(memory_mb=300, minutes=1))
    shell:
        "echo try >> resumable.tries; if [ $(wc -l < resumable.tries) = 1 ]; then exit {resumable} | tee -a log; fi; "
        "touch {{output}}"

rule mistaken:
    output: "mistaken"
    resources: **asks(Need(memory_mb=300, minutes=1))
    shell: "echo try >> mistaken.tries; echo Error: there is no such setting; exit 1"
"""


@pytest.fixture
def running(slurm: None) -> Iterator[daemons.Cluster]:
    with daemons.cluster(2, cpus=2, memory_mb=4000) as cluster:
        yield cluster


def start(cluster: daemons.Cluster, folder: Path, *targets: str) -> subprocess.Popen[str]:
    rules = SNAKEFILE.format(root=str(ROOT), python=sys.executable, resumable=RESUMABLE)
    (folder / "Snakefile").write_text(rules + daemons.POLLING)
    command = [
        "snakemake",
        "--executor",
        "slurm",
        "--jobs",
        "2",
        "--retries",
        "3",
        "--keep-going",
        "--latency-wait",
        "5",
    ]
    command += ["--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2", "--slurm-requeue"]
    path = f"{Path(sys.executable).parent}:{cluster.environment['PATH']}"
    return subprocess.Popen(
        [*command, *targets], cwd=folder, env={**cluster.environment, "PATH": path}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.mark.slurm
@pytest.mark.slow
@pytest.mark.slurm_long  # Slurm lets a job that it starts again wait for two minutes
@pytest.mark.parametrize("how", ["as preemption does it", "as a lost node does it"])
def test_a_job_that_slurm_starts_again_is_waited_for(running: daemons.Cluster, tmp_path: Path, how: str) -> None:
    process = start(running, tmp_path, "interrupted")
    running.wait_for("the job", (tmp_path / "nodes").exists)
    node = (tmp_path / "nodes").read_text().strip()
    if how == "as preemption does it":
        running.run("scontrol", "requeue", *[job for job, state in running.jobs().items() if state == "RUNNING"])
    else:
        running.lose_node(node)
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    assert process.returncode == 0 and (tmp_path / "interrupted").exists(), output
    assert "Trying to restart" not in output  # it was one attempt: no more memory is asked for
    first, second = (tmp_path / "nodes").read_text().split()
    assert how == "as preemption does it" or second != first


@pytest.mark.slurm
@pytest.mark.slow
def test_which_failed_jobs_are_retried(running: daemons.Cluster, tmp_path: Path) -> None:
    process = start(running, tmp_path, "greedy", "resumable", "mistaken")
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    assert process.returncode == 1, output
    assert (tmp_path / "greedy").exists(), output
    assert 2 <= len((tmp_path / "greedy.tries").read_text().split()) <= 4
    assert (tmp_path / "resumable").exists() and len((tmp_path / "resumable.tries").read_text().split()) == 2, output
    assert (tmp_path / "mistaken.tries").read_text().split() == ["try"], output
