"""The whole workflow in miniature through sbatch: cancelled, killed, stopped, a lost node; nothing lost or repeated."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from cluster import interrupt
from contracts import tables
from tests import needs
from tests.slurm import daemons
from tests.slurm.small_workflow import flaky_sbatch
from tests.waiting import WORKFLOW_LIMIT
from tests.workflow import miniature

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.slurm_long,
    pytest.mark.workflow,
    pytest.mark.slow,
    pytest.mark.usefixtures("slurm"),
]
RUN = f"demo/runs/{miniature.RUN}/seed-0"
TARGETS = {
    "training": f"results/{RUN}/training_log.parquet",
    "samples": f"results/{RUN}/samples",
    "report": "results/demo/report/all/index.html",
}
MEMORY_GB = 6  # of each node
PROBLEMS, REPEATS, BENCHMARKS = 12, 8, 2


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the miniature project, set up for a small cluster."""
    needs.skip_without("trl", "eval")
    folder = miniature.copy(tmp_path_factory.mktemp("project"))
    (folder / "slurm").symlink_to("profiles/slurm")
    profile = folder / "profiles" / "slurm" / "config.yaml"
    settings = profile.read_text(encoding="utf-8")
    for quick in ("slurm-init-seconds-before-status-checks: 2", "latency-wait: 10"):
        key = quick.split(":")[0]
        settings = "".join(line for line in settings.splitlines(True) if not line.startswith(key)) + f"{quick}\n"
    profile.write_text(settings, encoding="utf-8")
    with (folder / "Snakefile").open("a", encoding="utf-8") as file:
        file.write(daemons.POLLING)
    run = folder / "recipes" / f"{miniature.RUN}.yaml"
    run.write_text(run.read_text(encoding="utf-8").replace("repeats: 2", f"repeats: {REPEATS}"), encoding="utf-8")
    limits = profile.with_name("cluster.yaml")
    text = limits.read_text(encoding="utf-8")
    limits.write_text(text.replace("max_memory_gb: null", f"max_memory_gb: {MEMORY_GB}"), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def running() -> Iterator[daemons.Cluster]:
    with daemons.cluster(2, cpus=1, memory_mb=1000 * MEMORY_GB) as cluster:
        yield cluster


def start(project: Path, cluster: daemons.Cluster, *targets: str, **config: str) -> subprocess.Popen[str]:
    """`snakemake --profile slurm` at demo scale, as on a login node."""
    settings = [f"{key}={value}" for key, value in {"scale": "demo", **config}.items()]
    path = f"{Path(sys.executable).parent}:{cluster.environment['PATH']}"
    return subprocess.Popen(
        ["snakemake", "--profile", "slurm", *targets, "--config", *settings],
        cwd=project, env={**cluster.environment, "PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True,
    )  # fmt: skip


def snakemake(project: Path, cluster: daemons.Cluster, *targets: str, **config: str) -> tuple[int, str]:
    process = start(project, cluster, *targets, **config)
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    return process.returncode, output


def wait_for(process: subprocess.Popen[str], what: str, condition: Callable[[], object]) -> None:
    """Wait for a condition while a workflow runs."""
    deadline = time.monotonic() + WORKFLOW_LIMIT
    while not condition():
        if process.poll() is not None:
            raise AssertionError((what, process.stdout.read() if process.stdout else ""))
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def holds(project: Path, pattern: str, word: str) -> bool:
    return any(word in file.read_text(errors="replace") for file in project.glob(pattern))


def samples_made(project: Path) -> list[tuple[str, str]]:
    """Benchmark and checkpoint, and problem and repeat, of every partial sample."""
    keys = []
    with suppress(FileNotFoundError):  # the work is done, and removed
        for file in project.glob(f"work/{RUN}/samples/**/*.jsonl"):
            for line in file.read_text().splitlines(True):
                if line.endswith("\n"):
                    sample = json.loads(line)
                    keys.append((str(file.parent), f"{sample['problem_id']} {sample['repeat']}"))
    return keys


def running_jobs(cluster: daemons.Cluster) -> list[str]:
    return [job for job, state in cluster.jobs().items() if state in ("RUNNING", "PENDING", "COMPLETING")]


def processes_in(project: Path, read: str = "cmdline") -> list[str]:
    """Command lines (or environments) of processes whose working directory is the project's folder."""
    processes = psutil.process_iter(["cwd", read])
    return [str(process.info[read]) for process in processes if process.info["cwd"] == str(project.resolve())]


def test_preflight_then_the_run_cancelled_in_training(project: Path, running: daemons.Cluster) -> None:
    status, output = snakemake(project, running, "preflight")
    assert status == 0 and "ready:" in output, output
    process = start(project, running, TARGETS["training"])
    checkpoint = f"work/{RUN}/stage-1-*/native/checkpoint-3/trainer_state.json"
    wait_for(process, "a checkpoint", lambda: holds(project, checkpoint, "global_step"))
    running.run("scancel", *running_jobs(running))
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    assert process.returncode != 0 and "CANCELLED" in output and "Trying to restart" not in output, output
    lines = (rf"train {miniature.RUN}/seed-0 stage 1: submitted$", r"problems train \w+: started$", "SLURM jobid")
    assert all(re.search(line, output, re.MULTILINE) for line in lines), output
    running.wait_for("the end of what was cancelled", lambda: not processes_in(project))

    status, output = snakemake(project, running, TARGETS["training"])
    assert status == 0, output
    said = (project / f"logs/demo/train/{miniature.RUN}/seed-0/stage-1.log").read_text()
    assert re.search("from step [345]", said), said  # scancel asks before it kills: TRL saves the step it is at
    log = tables.read(project / TARGETS["training"], tables.TRAINING_LOG).to_pydict()
    assert log["step"] == list(range(1, miniature.STEPS + 1))


def test_a_training_stops_in_time_and_its_next_job_resumes_it(project: Path, running: daemons.Cluster) -> None:
    """Two minutes are reserved for saving, so the first job (two minutes) stops after a step; the second has four."""
    other = TARGETS["training"].replace("seed-0", "seed-1")
    status, output = snakemake(project, running, other, "--set-resources", "train:runtime=2*attempt", seeds="[1]")
    assert status == 0, output
    assert f"stopped after step 1 of {miniature.STEPS}" in output and "Trying to restart" in output, output
    text = (project / f"logs/demo/train/{miniature.RUN}/seed-1/stage-1.log").read_text()
    assert "from step 1" in text
    log = tables.read(project / other, tables.TRAINING_LOG).to_pydict()
    assert log["step"] == list(range(1, miniature.STEPS + 1))


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_cancels_and_says_so(project: Path, running: daemons.Cluster, times: int) -> None:
    process = start(project, running, TARGETS["training"].replace("seed-0", "seed-2"), seeds="[2]")
    wait_for(process, "a running job", lambda: "RUNNING" in running.jobs().values())
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(1)
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    assert process.returncode == interrupt.INTERRUPTED and "This continues: " in output, output
    assert all(text in output for text in interrupt.ON_A_CLUSTER[:times])
    running.wait_for("the end of what was cancelled", lambda: not running_jobs(running))


def test_the_submitting_snakemake_killed_and_a_node_lost_in_generation(project: Path, running: daemons.Cluster) -> None:
    process = start(project, running, TARGETS["samples"])
    partial = f"work/{RUN}/samples/**/*.jsonl"
    wait_for(process, "samples", lambda: holds(project, partial, "problem_id"))
    assert any("'HF_HUB_OFFLINE': '1'" in text for text in processes_in(project, "environ"))  # no node needs a network
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # Slurm restarts the job of the lost node; the next command must neither run beside it nor lose its samples.
    node = running.run("squeue", "--noheader", "--states=RUNNING", "--format=%N").split()[0]
    running.lose_node(node)
    samples = samples_made(project)
    process, most = start(project, running, TARGETS["samples"]), samples
    while True:
        try:
            output, _ = process.communicate(timeout=0.1)
            break
        except subprocess.TimeoutExpired:
            most = max(most, samples_made(project), key=len)
    running.start_node(node)
    running.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)
    assert process.returncode == 0 and "jobs of a snakemake that ended before them" in output, output
    assert (
        samples and set(samples) <= set(most) and len(most) == len(set(most)) > len(samples)
    )  # none was made a second time
    for file in (project / TARGETS["samples"]).glob("step-*/*.parquet"):
        rows = pq.read_table(file).to_pylist()
        assert len({(row["problem_id"], row["repeat"]) for row in rows}) == len(rows) == PROBLEMS * REPEATS


def test_the_whole_line_with_refusals_and_a_controller_that_restarts(
    project: Path, running: daemons.Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, log = flaky_sbatch(running, tmp_path)
    monkeypatch.setitem(running.environment, "PATH", f"{path}:{running.environment['PATH']}")
    process = start(project, running, "reproduce_all")
    wait_for(process, "a running job", lambda: "RUNNING" in running.jobs().values())
    running.stop("slurmctld")
    time.sleep(5)
    assert process.poll() is None
    running.start_controller()
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    assert process.returncode == 0, output
    scores = tables.read(project / f"results/{RUN}/scores.parquet", tables.SCORE).to_pylist()
    assert len(scores) == BENCHMARKS * (1 + len(miniature.CHECKPOINTS))
    assert miniature.RUN in (project / TARGETS["report"]).read_text(encoding="utf-8")
    status, output = snakemake(project, running, "reproduce_all")
    assert status == 0 and "Nothing to be done" in output, output
    assert not running_jobs(running) and not processes_in(project)
    calls = [json.loads(line) for line in log.open()]
    ran = [call["comment"] for call in calls if [*project.glob(f"work/**/exit_status/{call['job'] or '-'}")]]
    assert len(ran) == len(set(ran)) > 3, ran  # no job ran twice
