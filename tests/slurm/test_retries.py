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
from cluster.request import KEYS, Need, resources_of
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

rule mistaken:
    output: "mistaken"
    resources: **asks(Need(memory_mb=300, minutes=1))
    shell: "echo try >> mistaken.tries; echo Error: there is no such setting; exit 1"
"""


@pytest.fixture
def running(slurm: None) -> Iterator[daemons.Cluster]:
    with daemons.cluster(1, cpus=2, memory_mb=4000) as cluster:
        yield cluster


@pytest.mark.slurm
@pytest.mark.slow
def test_out_of_memory_is_tried_again_with_more_and_a_mistake_is_not(running: daemons.Cluster, tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE.format(root=str(ROOT), python=sys.executable))
    words = ["snakemake", "--executor", "slurm", "--jobs", "2", "--retries", "3", "--keep-going", "--latency-wait", "5"]
    words += ["--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2"]
    path = f"{Path(sys.executable).parent}:{running.environment['PATH']}"
    done = subprocess.run(
        [*words, "greedy", "mistaken"], cwd=tmp_path, env={**running.environment, "PATH": path}, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    output = done.stdout + done.stderr
    assert done.returncode == 1, output
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
        ("FAILED", "Error: there is no run 'openr2'; there are: openr1", False),
        ("FAILED", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", False),
        ("CANCELLED", "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***", False),
    ],
)
def test_what_a_job_and_its_output_say(state: str, output: str, worth: bool) -> None:
    message = f"SLURM-job '5' failed, SLURM status is: '{state}'. Detailed failure reason unavailable"
    assert retries.worth_retrying(message, output) == worth
