"""The nodes of a Slurm job, and running a command on each of them.

    python -m frameworks.slurm_nodes each 2 COMMAND…

runs the command on both nodes, as accelerate needs it. In its words {rank}, {head} and {port} stand for the node's
number, the first node's address and a free port there. When one command fails, all are ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from types import FrameType

from frameworks.free_ports import bind_outside
from system import interruptible, subreaper
from system.errors import UserError, run_command

PATIENCE_SECONDS = 8.0  # between asking a step to end and killing it; less than system/subreaper.py waits
# Variables that name the job. Slurm's other variables describe this process's step, and would change a new one.
LISTED = "CROSSZERO_NODES"
KEPT = ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_CONF", "SLURM_CLUSTER_NAME")


@dataclass(frozen=True)
class Node:
    """A node of the job and its address, which the other nodes can reach."""

    name: str
    address: str


def job_nodes(needed: int) -> list[Node]:
    """The job's nodes, this one first.

    Raises:
        UserError: there is no Slurm job, or it has another number of nodes.
    """
    if "SLURM_JOB_ID" not in os.environ:
        sentence = f"a run on {needed} nodes needs a Slurm job: snakemake --profile slurm, or hardware.nodes: 1"
        raise UserError(sentence, code="no-slurm-job", nodes=needed)
    own_name = os.environ.get("SLURMD_NODENAME") or socket.gethostname().split(".")[0]
    job = _scontrol("show", "job", os.environ["SLURM_JOB_ID"], "--oneliner")
    node_list = re.search(r" NodeList=(\S+)", job)
    names = _scontrol("show", "hostnames", node_list[1]).split() if node_list else []
    if len(names) != needed or own_name not in names:
        raise UserError(
            f"a run on {needed} nodes needs a Slurm job on as many, but this one has {len(names)} nodes "
            f"({', '.join(names) or 'none'})",
            code="other-number-of-nodes",
            nodes=needed,
            has=len(names),
        )
    return [Node(name, _address(name)) for name in sorted(names, key=lambda name: (name != own_name, name))]


def job_end_time() -> float | None:
    """When Slurm will end this job, in seconds since 1970; None without a job or a limit, or if scontrol fails."""
    if "SLURM_JOB_ID" not in os.environ:
        return None
    try:
        listed = re.search(r" EndTime=(\d\S+)", _scontrol("show", "job", os.environ["SLURM_JOB_ID"], "--oneliner"))
    except UserError as error:
        print(f"WARNING: no checkpoint will be saved just before the job's time limit: {error}", flush=True)
        return None
    return datetime.fromisoformat(listed[1]).timestamp() if listed else None


def _address(name: str) -> str:
    """The address at which Slurm's own daemons reach a node."""
    listed = re.search(r" NodeAddr=(\S+)", _scontrol("show", "node", name, "--oneliner"))
    try:
        return socket.gethostbyname(listed[1] if listed else name)
    except OSError as error:
        sentence = f"node {name} has no address that this node can look up ({error})"
        raise UserError(sentence, code="unknown-node-address", node=name) from None


def _scontrol(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["scontrol", *arguments], capture_output=True, text=True, check=False, env=environment_without_step()
        )
    except FileNotFoundError:
        sentence = "scontrol is not on PATH: jobs on several nodes need Slurm's commands on each node"
        raise UserError(sentence, code="missing-program", program="scontrol") from None
    if done.returncode:
        sentence = f"scontrol {' '.join(arguments)} failed: {done.stderr.strip()}"
        raise UserError(sentence, code="scontrol-failed", status=done.returncode)
    return done.stdout


def environment_without_step() -> dict[str, str]:
    """This process's environment without the variables that describe its Slurm step."""
    shaped = re.compile("SLURM_|SRUN_|SBATCH_|SLURMD_")
    return {name: value for name, value in os.environ.items() if name in KEPT or not shaped.match(name)}


def free_ports(count: int) -> list[int]:
    """Different ports of this node that are not in use now, and that no connection gets by chance."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for free in sockets:
            bind_outside(socket.socket.bind, free, ("", 0))
        return [int(free.getsockname()[1]) for free in sockets]


def free_port() -> int:
    """A port of this node that is not in use now."""
    return free_ports(1)[0]


def run_on_each(job: Sequence[Node], command: Sequence[str]) -> subprocess.Popen[str]:
    """Start a command once on every node, in a step that shares the job's CPUs, memory and GPUs with others.

    When one of them fails, all are ended. `here` tells a command where it runs.
    """
    srun = ["srun", "--overlap", f"--nodes={len(job)}", f"--ntasks={len(job)}", "--ntasks-per-node=1", "--mem=0"]
    srun += ["--cpu-bind=none", "--kill-on-bad-exit=1", "--export=ALL", "--unbuffered"]
    listed = json.dumps([asdict(node) for node in job])
    return subprocess.Popen(
        [*srun, sys.executable, subreaper.__file__, *command],
        env={**environment_without_step(), LISTED: listed},
        stdin=subprocess.DEVNULL,
        text=True,
    )


def this_node() -> tuple[int, list[Node]]:
    """In a command that `on_each` started: this node's number, and all nodes."""
    job = [Node(**node) for node in json.loads(os.environ[LISTED])]
    return [node.name for node in job].index(os.environ["SLURMD_NODENAME"]), job


def end_process(process: subprocess.Popen[str]) -> None:
    """End a step or a command of this node: with signals that it can handle, then with SIGKILL."""
    # srun forwards SIGUSR1 to its tasks, but kills them at SIGTERM.
    first = [signal.SIGUSR1] if process.args[0] == "srun" else []  # type: ignore[index]
    for number in (*first, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                continue
    process.wait()


def end_on_signals() -> None:
    """Have these signals end this process as sys.exit does, so that it can end what it started."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, leave)


def main() -> None:
    """Command line."""
    end_on_signals()
    verb, number, *command = sys.argv[1:]
    if verb == "here":
        rank, job = this_node()
        filled = {"{rank}": str(rank), "{head}": job[0].address, "{port}": number}
        arguments = [filled.get(word, word) for word in command]
        os.execvp(arguments[0], arguments)
    step = run_on_each(
        job_nodes(int(number)), [sys.executable, "-m", __spec__.name, "here", str(free_port()), *command]
    )
    try:
        sys.exit(interruptible.wait(step))
    finally:
        end_process(step)


if __name__ == "__main__":
    run_command(main)
