"""A busy cluster: sbatch and squeue fail, the controller forgets or is away, Snakemake sleeps or ends."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm import daemons
from tests.slurm.small_workflow import flaky_sbatch, start, tries
from tests.waiting import WORKFLOW_LIMIT

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("slurm")]


@pytest.fixture(scope="module")
def running() -> Iterator[daemons.Cluster]:
    with daemons.cluster(2, cpus=4, extra="MinJobAge=2\nPartitionName=all Nodes=ALL Default=YES") as cluster:
        yield cluster


def test_a_refused_sbatch_costs_no_job_and_makes_none_twice(running: daemons.Cluster, tmp_path: Path) -> None:
    path, _ = flaky_sbatch(running, tmp_path, plan=(2, 4))
    process = start(running, tmp_path, 5, "sleep 1", path)
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    assert process.returncode == 0, output
    assert tries(tmp_path) == [1] * 5, output
    assert output.count("Slurm takes no job just now") == 2, output


@pytest.mark.parametrize("status", [pytest.param(0, marks=pytest.mark.long), 3])
def test_jobs_that_ended_and_were_forgotten_while_snakemake_slept(
    running: daemons.Cluster, tmp_path: Path, status: int
) -> None:
    process = start(running, tmp_path, 2, f"sleep 5; (exit {status})")
    running.wait_for("the jobs", lambda: len(tries(tmp_path)) == 2)
    process.send_signal(signal.SIGSTOP)
    running.wait_for("the end of the jobs", lambda: not running.jobs())
    process.send_signal(signal.SIGCONT)
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    assert process.returncode == (1 if status else 0), output
    assert tries(tmp_path) == [1, 1] and len([*(tmp_path / "made").glob("*")]) == (0 if status else 2)


@pytest.mark.parametrize("seconds", [12, pytest.param(150, marks=pytest.mark.slurm_long)])
def test_a_controller_that_is_away_for_a_while(running: daemons.Cluster, tmp_path: Path, seconds: int) -> None:
    process = start(running, tmp_path, 2, "sleep 8")
    running.wait_for("the jobs", lambda: len(tries(tmp_path)) == 2)
    running.stop("slurmctld", signal.SIGKILL)
    time.sleep(seconds)
    running.start_controller()
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    assert process.returncode == 0 and tries(tmp_path) == [1, 1], output


# squeue does as the file says: fails, or answers after four seconds.
UNSTEADY_SQUEUE = """#!/bin/sh
case "$(cat {mood})" in
    fails) echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1;;
    slow) sleep 4;;
esac
echo poll >> {mood}.polls
exec {squeue} "$@"
"""


@pytest.mark.slurm_long
@pytest.mark.parametrize("mood", ["fails", "slow"])
def test_a_queue_that_fails_or_is_slow_loses_no_job(running: daemons.Cluster, tmp_path: Path, mood: str) -> None:
    """The plugin forgets its jobs when squeue has failed five times."""
    (program := tmp_path / "bin" / "squeue").parent.mkdir()
    (moods := tmp_path / "mood").write_text("well")
    squeue = shutil.which("squeue", path=running.environment["PATH"])
    program.write_text(UNSTEADY_SQUEUE.format(mood=moods, squeue=squeue))
    program.chmod(0o755)
    process = start(running, tmp_path, 2, "sleep 1; while [ ! -e go ]; do sleep 0.2; done", str(program.parent))
    running.wait_for("the jobs", lambda: len(tries(tmp_path)) == 2)
    moods.write_text(mood)
    time.sleep(20)
    (tmp_path / "go").touch()
    running.wait_for("the end of the jobs", lambda: not live(running))
    moods.write_text("well")
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    assert process.returncode == 0 and tries(tmp_path) == [1, 1], output
    assert output.count("squeue does not answer") == output.count("squeue answers again") == 1, output


@pytest.mark.slurm_long
def test_a_job_that_the_site_requeues_is_waited_for(running: daemons.Cluster, tmp_path: Path) -> None:
    process = start(running, tmp_path, 2, "while [ ! -e go ]; do sleep 0.2; done")
    running.wait_for("the jobs", lambda: len(tries(tmp_path)) == 2)
    requeued = sorted(job for job, state in running.jobs().items() if state == "RUNNING")[-1]
    running.run("scontrol", "requeue", requeued)
    (tmp_path / "go").touch()
    running.wait_for("the requeued job", lambda: running.jobs()[requeued] == "PENDING")
    running.run("scontrol", "update", f"jobid={requeued}", "starttime=now")  # else Slurm waits for two minutes
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    assert process.returncode == 0 and tries(tmp_path) == [1, 2] and "Trying to restart" not in output, output


def live(cluster: daemons.Cluster) -> list[str]:
    """Ids of the jobs that wait or run."""
    return [job for job, state in cluster.jobs().items() if state in ("PENDING", "CONFIGURING", "RUNNING")]


def numbers(text: str, output: str) -> list[str]:
    """Ids of the jobs in a line of the output."""
    match = re.search(rf"^{text} ([\d, ]+): jobs of a snakemake", output, re.MULTILINE)
    return match[1].split(", ") if match else []


@pytest.mark.parametrize(
    ("number", "count"), [(signal.SIGHUP, 3), pytest.param(signal.SIGKILL, 10, marks=pytest.mark.slurm_long)]
)
def test_jobs_of_a_closed_terminal_are_picked_up(
    running: daemons.Cluster, tmp_path: Path, number: int, count: int
) -> None:
    """Eight jobs run at a time, of which one ends meanwhile; others wait in the queue."""
    command = "while [ ! -e go ] && [ ! -e go-{wildcards.n} ]; do sleep 0.2; done"
    process = start(running, tmp_path, count, command)
    running.wait_for("the jobs", lambda: len(live(running)) == count and len(tries(tmp_path)) == min(count, 8))
    process.send_signal(number)
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    first = live(running)
    (tmp_path / "settled").unlink()
    (tmp_path / f"go-{next(iter(tmp_path.glob('tries-*'))).name.removeprefix('tries-')}").touch()
    running.wait_for("an end", lambda: len(live(running)) < count)
    second = start(running, tmp_path, count, command)
    running.wait_for("the second Snakemake", (tmp_path / "settled").exists)
    (tmp_path / "go").touch()
    output, _ = second.communicate(timeout=WORKFLOW_LIMIT)
    assert second.returncode == 0 and tries(tmp_path) == [1] * count, output
    picked_up = numbers("Picked up", output)  # what has ended meanwhile needs nobody
    assert len(picked_up) == count - 1 and set(picked_up) < set(first), output


@pytest.mark.slurm_long
def test_jobs_of_another_command_are_cancelled(running: daemons.Cluster, tmp_path: Path) -> None:
    process = start(running, tmp_path, 2, "sleep 600")
    running.wait_for("the jobs", lambda: len(tries(tmp_path)) == 2)
    process.kill()
    process.communicate(timeout=WORKFLOW_LIMIT)
    output, _ = start(running, tmp_path, 2, "sleep 1").communicate(timeout=WORKFLOW_LIMIT)
    assert len(numbers("Cancelled", output)) == 2 and tries(tmp_path) == [2, 2], output


@pytest.mark.slurm_long
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_cancels_the_jobs(running: daemons.Cluster, tmp_path: Path, times: int) -> None:
    process = start(running, tmp_path, 10, "sleep 600")
    running.wait_for("the jobs", lambda: len(live(running)) == 10 and len(tries(tmp_path)) == 8)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    assert process.returncode, output
    running.wait_for("the end of the jobs", lambda: not live(running))


@pytest.mark.slurm_long
def test_more_jobs_than_the_controller_takes(tmp_path: Path) -> None:
    """A limit that nobody can ask for beforehand: MaxJobCount counts the jobs of all users."""
    lines = "MaxJobCount=4\nMinJobAge=2\nPartitionName=all Nodes=ALL Default=YES"
    with daemons.cluster(1, cpus=4, extra=lines) as cluster:
        output, _ = (process := start(cluster, tmp_path, 12, "sleep 1")).communicate(timeout=WORKFLOW_LIMIT)
    assert process.returncode == 0 and tries(tmp_path) == [1] * 12, output
