"""Ray on the nodes of a real Slurm job: it starts, the command uses it, and no process is left however that ends."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from envs.build import python
from frameworks import ray_patience
from system import subreaper
from tests import needs
from tests.slurm import daemons
from tests.waiting import WORKFLOW_LIMIT

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("slurm")]
USES_BOTH_NODES = """
import ray
ray.init(log_to_driver=False)
@ray.remote(num_gpus=1)
class Holder:  # an actor, so that all four hold their GPU at the same time
    def where(self):
        import os
        return ray.get_runtime_context().get_node_id(), os.environ["MARK"], os.environ["CUDA_VISIBLE_DEVICES"]
holders = [Holder.remote() for _ in range(4)]
used = ray.get([holder.where.remote() for holder in holders])
print("NODES", len({node for node, _, _ in used}), "MARK", {mark for _, mark, _ in used})
print("GPUS", sorted(gpu for _, _, gpu in used), flush=True)
"""


@pytest.fixture(scope="module")
def running() -> Iterator[daemons.Cluster]:
    needs.skip_without("verl")
    with daemons.cluster(2, gpus=2) as cluster:
        yield cluster


def submit(cluster: daemons.Cluster, script: Path, *options: str, nodes: int = 2) -> str:
    """Queue a job as the workflow does, with a step on the first node that starts the launcher; return its id."""
    launch = f"{python('verl')} -m frameworks.ray_cluster --nodes {nodes} --gpus 2 --cpus 2"
    launch += f" --scratch {script.parent}/ray"
    return queue(cluster, script, f"{launch} {python('verl')} {script}", *options)


def queue(cluster: daemons.Cluster, script: Path, command: str, *options: str) -> str:
    """Queue a job of two nodes for a command, under the subreaper, as `frameworks` starts it."""
    wrapped = f"MARK=handed-on srun -n1 -N1 {python('verl')} {subreaper.__file__} {command}"
    arguments = [
        "sbatch",
        "--parsable",
        "--nodes=2",
        "--gres=gpu:2",
        f"--output={script}.out",
        f"--chdir={ROOT}",
        *options,
    ]
    return cluster.run(*arguments, "--wrap", wrapped).strip()


def ended(cluster: daemons.Cluster, job: str) -> str:
    """State of a job that has ended."""
    deadline = time.monotonic() + WORKFLOW_LIMIT
    while (state := cluster.jobs()[job]) in ("PENDING", "RUNNING", "COMPLETING"):
        assert time.monotonic() < deadline, cluster.logs()
        time.sleep(0.5)
    return state


def left_over(folder: Path) -> list[str]:
    """Command lines of processes that mention this test's folder, where Ray's sockets are."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [line for line in listed if str(folder) in line]


def test_a_node_waits_for_the_head_as_long_as_the_launcher(running: daemons.Cluster) -> None:
    code = "from ray._private import ray_constants; print(ray_constants.NUM_REDIS_GET_RETRIES)"
    environment = {**running.environment, **ray_patience.VARIABLES}
    times = subprocess.run([str(python("verl")), "-c", code], env=environment, capture_output=True, check=True).stdout
    assert 2 * int(times) == ray_patience.WAIT_SECONDS


def test_a_command_uses_all_nodes_and_then_nothing_is_left(running: daemons.Cluster, short: Path) -> None:
    (script := short / "uses.py").write_text(USES_BOTH_NODES)
    job = submit(running, script)
    assert ended(running, job) == "COMPLETED", (short / "uses.py.out").read_text()
    output = (short / "uses.py.out").read_text()
    assert "Ray: 2 nodes with 4 GPUs" in output and "NODES 2 MARK {'handed-on'}" in output
    assert "GPUS ['0', '0', '1', '1']" in output  # as Slurm gave each node two
    assert not left_over(short) and not (short / "ray").exists()


@pytest.mark.slurm_long
def test_a_command_that_fails(running: daemons.Cluster, short: Path) -> None:
    (script := short / "fails.py").write_text("import ray, sys\nray.init(log_to_driver=False)\nsys.exit(7)\n")
    job = submit(running, script)
    assert ended(running, job) == "FAILED"
    assert running.run("scontrol", "show", "job", job).count("ExitCode=7:0"), (short / "fails.py.out").read_text()
    assert not left_over(short) and not (short / "ray").exists()


@pytest.mark.long
def test_cancelled(running: daemons.Cluster, short: Path) -> None:
    (script := short / "waits.py").write_text(
        "import ray, time\nray.init(log_to_driver=False)\nprint('WAITS', flush=True)\ntime.sleep(600)\n"
    )
    job, output = submit(running, script), short / "waits.py.out"
    deadline = time.monotonic() + WORKFLOW_LIMIT
    while not (output.exists() and "WAITS" in output.read_text()):
        assert time.monotonic() < deadline, output.read_text()
        time.sleep(0.5)
    assert left_over(short)
    running.run("scancel", job)
    assert ended(running, job) == "CANCELLED"
    running.wait_for("the end of Ray", lambda: not left_over(short))


def test_a_job_of_too_few_nodes_and_no_job_at_all(running: daemons.Cluster, short: Path) -> None:
    (script := short / "never.py").write_text("print('RAN')\n")
    job = submit(running, script, nodes=3)
    assert ended(running, job) == "FAILED"
    output = (short / "never.py.out").read_text()
    assert "a run on 3 nodes needs a Slurm job on as many, but this one has 2 nodes (n1, n2)" in output
    assert "RAN" not in output
    command = [str(python("verl")), "-m", "frameworks.ray_cluster", "--nodes", "2", "--gpus", "1", "true"]
    alone = subprocess.run(command, cwd=ROOT, env=running.environment, capture_output=True, text=True, check=False)
    assert alone.returncode == 1 and "needs a Slurm job" in alone.stderr and "Traceback" not in alone.stderr


EACH = """
import os, pathlib, sys, time
what, rank, head, port = sys.argv[1:]
folder = pathlib.Path(__file__).parent
(folder / f"rank-{rank}").write_text(f"{os.environ['SLURMD_NODENAME']} {os.environ['MARK']} {head}:{port}")
if what == "fails" and rank == "1":
    while not (folder / "rank-0").exists():  # the first node's is ended with this one
        time.sleep(0.05)
    sys.exit(5)
time.sleep(0 if what == "ends" else 600)
"""


@pytest.mark.parametrize(
    ("what", "state"),
    [
        ("fails", "FAILED"),
        pytest.param("ends", "COMPLETED", marks=pytest.mark.long),
        pytest.param("is cancelled", "CANCELLED", marks=pytest.mark.long),
    ],
)
def test_a_command_on_each_node(running: daemons.Cluster, short: Path, what: str, state: str) -> None:
    (script := short / "each.py").write_text(EACH)
    each = f"{python('verl')} -m frameworks.slurm_nodes each 2 {python('verl')} {script}"
    job = queue(running, script, f"{each} '{what}' {{rank}} {{head}} {{port}}")
    running.wait_for("both", lambda: len(list(short.glob("rank-*"))) == 2)
    if what == "is cancelled":
        running.run("scancel", job)
    assert ended(running, job) == state, (short / "each.py.out").read_text()
    running.wait_for("the end on both nodes", lambda: not left_over(short))
    first, second = ((short / f"rank-{rank}").read_text().split() for rank in (0, 1))
    assert {first[0], second[0]} == {"n1", "n2"} and first[1:] == second[1:] and first[1] == "handed-on"
