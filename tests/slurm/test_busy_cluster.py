"""A busy cluster: sbatch that fails, a controller that forgets, goes away and comes back, a Snakemake that slept."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from tests.slurm import daemons

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

SNAKEFILE = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from cluster import ended_jobs, retry_interrupted, submission
import snakemake_executor_plugin_slurm
submission.FIRST_PAUSE = 0.5
if workflow.is_main_process:
    retry_interrupted.retry_only_interrupted(snakemake_executor_plugin_slurm.Executor, Path("work"))
    ended_jobs.notice_ended(snakemake_executor_plugin_slurm, Path("work"))
    submission.be_patient(snakemake_executor_plugin_slurm, logger.warning)
else:
    shell.prefix("set -euo pipefail; " + retry_interrupted.record_exit_status(Path("work")))

rule all:
    input: expand("made/{{n}}", n=range({count}))

rule job:
    output: "made/{{n}}"
    resources: mem_mb=300, runtime=5
    shell: "echo try >> tries-{{wildcards.n}}; {command}; touch {{output}}"
"""
# The second call is refused; the fourth, too, after the job was taken.
FLAKY_SBATCH = """#!{python}
import fcntl, subprocess, sys
with open({calls!r}, "a+") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write("call\\n")
    file.seek(0)
    number = len(file.readlines())
if number == 2:
    done = None
else:
    done = subprocess.run([{sbatch!r}, *sys.argv[1:]], capture_output=True, text=True)
if number in (2, 4):
    sys.exit("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation")
print(done.stdout, end="")
print(done.stderr, end="", file=sys.stderr)
sys.exit(done.returncode)
"""


@pytest.fixture(scope="module")
def running() -> Iterator[daemons.Cluster]:
    with daemons.cluster(2, cpus=4, extra="MinJobAge=2\nPartitionName=all Nodes=ALL Default=YES") as cluster:
        yield cluster


def start(cluster: daemons.Cluster, folder: Path, count: int, command: str, path: str = "") -> subprocess.Popen[str]:
    rules = SNAKEFILE.format(root=str(ROOT), count=count, command=command)
    (folder / "Snakefile").write_text(rules + daemons.POLLING)
    options = ["--executor", "slurm", "--jobs", "40", "--retries", "3", "--keep-going", "--latency-wait", "5"]
    options += ["--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2"]
    environment = cluster.environment
    return subprocess.Popen(
        ["snakemake", *options, "all"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**environment, "PATH": f"{path}:{Path(sys.executable).parent}:{environment['PATH']}"},
    )  # fmt: skip


def tries(folder: Path) -> list[int]:
    return sorted(len(file.read_text().split()) for file in folder.glob("tries-*"))


def test_a_refused_sbatch_costs_no_job_and_makes_none_twice(running: daemons.Cluster, tmp_path: Path) -> None:
    (program := tmp_path / "bin" / "sbatch").parent.mkdir()
    sbatch = shutil.which("sbatch", path=running.environment["PATH"])
    program.write_text(FLAKY_SBATCH.format(python=sys.executable, sbatch=sbatch, calls=str(tmp_path / "calls")))
    program.chmod(0o755)
    process = start(running, tmp_path, 5, "sleep 1", str(program.parent))
    output, _ = process.communicate(timeout=400)
    assert process.returncode == 0, output
    assert tries(tmp_path) == [1] * 5, output
    assert output.count("Slurm takes no job just now") == 2, output


@pytest.mark.parametrize("status", [0, 3])
def test_jobs_that_ended_and_were_forgotten_while_snakemake_slept(
    running: daemons.Cluster, tmp_path: Path, status: int
) -> None:
    process = start(running, tmp_path, 2, f"sleep 5; (exit {status})")
    running.wait_for("the jobs", lambda: len(tries(tmp_path)) == 2)
    process.send_signal(signal.SIGSTOP)
    running.wait_for("the end of the jobs", lambda: not running.jobs())
    process.send_signal(signal.SIGCONT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == (1 if status else 0), output
    assert tries(tmp_path) == [1, 1] and len([*(tmp_path / "made").glob("*")]) == (0 if status else 2)


def test_a_controller_that_is_away_for_a_while(running: daemons.Cluster, tmp_path: Path) -> None:
    process = start(running, tmp_path, 2, "sleep 8")
    running.wait_for("the jobs", lambda: len(tries(tmp_path)) == 2)
    running.stop("slurmctld", signal.SIGKILL)
    time.sleep(12)
    running.start_controller()
    output, _ = process.communicate(timeout=200)
    assert process.returncode == 0 and tries(tmp_path) == [1, 1], output
