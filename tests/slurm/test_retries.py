"""Jobs that were cut off are tried again with more; jobs that ended by themselves are not: through real sbatch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import retries
from contracts.run_file import ROOT
from tests.slurm import daemons

SNAKEFILE = """
import sys
sys.path.insert(0, {root!r})
from cluster import retries
from cluster.resources import KEYS, Need, resources_of
import snakemake_executor_plugin_slurm
CLUSTER = dict.fromkeys(
    "account partition gpu_partition qos gpu_type gpu_constraint max_hours gpu_max_hours max_cpus max_memory_gb extra"
    .split())
if workflow.is_main_process:
    retries.only_where_cut_off(snakemake_executor_plugin_slurm.Executor)

def asks(need):
    def one(key):
        return lambda wildcards, attempt: resources_of(need, CLUSTER, attempt).get(key)
    return {{key: one(key) for key in KEYS}}

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
    (folder / "Snakefile").write_text(SNAKEFILE.format(root=str(ROOT), python=sys.executable))
    words = ["snakemake", "--executor", "slurm", "--jobs", "2", "--retries", "3", "--keep-going", "--latency-wait", "5"]
    words += ["--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2", "--slurm-requeue"]
    path = f"{Path(sys.executable).parent}:{cluster.environment['PATH']}"
    return subprocess.Popen(
        [*words, *targets], cwd=folder, env={**cluster.environment, "PATH": path}, stdout=subprocess.PIPE,
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
    output, _ = process.communicate(timeout=400)
    assert process.returncode == 0 and (tmp_path / "interrupted").exists(), output
    assert "Trying to restart" not in output  # it was one attempt: no more memory is asked for
    first, second = (tmp_path / "nodes").read_text().split()
    assert how == "as preemption does it" or second != first


@pytest.mark.slurm
@pytest.mark.slow
def test_out_of_memory_is_tried_again_with_more_and_a_mistake_is_not(running: daemons.Cluster, tmp_path: Path) -> None:
    process = start(running, tmp_path, "greedy", "mistaken")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 1, output
    assert (tmp_path / "greedy").exists(), output
    assert 2 <= len((tmp_path / "greedy.tries").read_text().split()) <= 4
    assert (tmp_path / "mistaken.tries").read_text().split() == ["try"], output


@given(st.sampled_from(retries.CUT_OFF), st.text())
def test_what_slurm_ended_is_worth_another_attempt(state: str, output: str) -> None:
    assert retries.worth_retrying(f"SLURM-job '7' failed, SLURM status is: '{state}'. Reason: Unknown.", output)


@pytest.mark.parametrize(
    ("state", "output", "worth"),
    [
        ("FAILED", "slurmstepd: error: Detected 1 oom_kill event in StepId=5.0. Some of the step tasks …", True),
        ("FAILED", "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=5.0 cgroup.", True),
        ("FAILED", "srun: error: n1: task 0: Out Of Memory", True),
        (
            "FAILED",
            "slurmstepd-n1: error: StepId=2.0 exceeded memory limit (323444736 > 104857600), being killed",
            True,
        ),
        ("FAILED", "Error: training r/x stopped after step 7 of 9, in time before its job's end; the same …", True),
        ("FAILED", "Error: there is no run 'openr2'; there are: openr1", False),
        ("FAILED", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", False),
        ("CANCELLED", "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***", False),
    ],
)
def test_what_a_job_and_its_output_say(state: str, output: str, worth: bool) -> None:
    message = f"SLURM-job '5' failed, SLURM status is: '{state}'. Detailed failure reason unavailable"
    assert retries.worth_retrying(message, output) == worth
