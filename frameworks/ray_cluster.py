"""Ray over the nodes of a Slurm job, for as long as a command runs.

    python -m frameworks.ray_cluster --nodes 4 --gpus 8 COMMAND…

One step of the job starts Ray on every node, the head on this one. When all nodes and their GPUs have joined, the
command runs here with RAY_ADDRESS. When it has ended, in whatever way, the step is ended too, and on each node
system/subreaper.py ends the processes that Ray has started and detached.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from frameworks import loopback, slurm_nodes
from frameworks.ray_patience import WAIT_SECONDS
from system import interruptible, private_folder
from system.command_line import argument_parser
from system.errors import UserError, run_command

LOOK_SECONDS = 1.0


def start_node(arguments: argparse.Namespace) -> None:
    """Run Ray on this node until it is ended; the step calls it on every node."""
    slurm_nodes.end_on_signals()
    rank, job = slurm_nodes.this_node()
    command = [sys.executable, "-m", "frameworks.ray_patience", "start", "--block", "--disable-usage-stats"]
    command += [f"--node-ip-address={job[rank].address}", f"--num-gpus={arguments.gpus}"]
    os.environ["TMPDIR"] = str(private_folder.make(arguments.scratch / "tmp"))
    if arguments.cpus:
        command.append(f"--num-cpus={arguments.cpus}")
    if rank == 0:
        command += ["--head", f"--port={arguments.port}", "--include-dashboard=false"]
        command.append(f"--temp-dir={arguments.scratch}")
    else:
        command.append(f"--address={job[0].address}:{arguments.port}")
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True)
    try:
        sys.exit(interruptible.wait(process))
    finally:
        slurm_nodes.end_process(process)
        shutil.rmtree(arguments.scratch, ignore_errors=True)


def node_resources(address: str, step: subprocess.Popen[str]) -> list[dict[str, float]]:
    """The resources of each of Ray's nodes as Ray sees them now; empty while Ray does not answer.

    Another process asks, because this one could not be ended while it waits for the answer. It answers in a file,
    because Ray prints to standard output, too.
    """
    with tempfile.TemporaryFile("w+") as answer:
        code = (
            "import json, ray; ray.init(log_to_driver=False, logging_level='error'); json.dump("
            f"[node['Resources'] for node in ray.nodes() if node['Alive']], open({answer.fileno()}, 'w'))"
        )
        query = subprocess.Popen(
            [sys.executable, "-c", code], env={**os.environ, "RAY_ADDRESS": address}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[answer.fileno()],
        )  # fmt: skip
        try:
            while query.poll() is None and step.poll() is None:
                time.sleep(LOOK_SECONDS)
            answered = query.poll() == 0
        finally:
            slurm_nodes.end_process(query)
        answer.seek(0)
        resources: list[dict[str, float]] = json.loads(answer.read() or "[]") if answered else []
    return resources


def wait_for_nodes(address: str, count: int, gpus: int, step: subprocess.Popen[str]) -> None:
    """Return when Ray has all nodes and GPUs.

    Args:
        address: of Ray's head.
        count: number of nodes.
        gpus: of each node.
        step: that runs Ray on the nodes.

    Raises:
        UserError: the step has ended, or ten minutes have passed.
    """
    deadline, state = time.monotonic() + WAIT_SECONDS, "none"
    while time.monotonic() < deadline:
        if step.poll() is not None:
            sentence = f"Ray did not start on every node (status {step.returncode}); its output is above"
            raise UserError(sentence, code="ray-did-not-start", status=step.returncode)
        joined = node_resources(address, step)
        gpus_there = int(sum(node.get("GPU", 0) for node in joined))
        state = f"{len(joined)} nodes with {gpus_there} GPUs"
        if len(joined) == count and gpus_there >= count * gpus:
            print(f"Ray: {state} at {address}", flush=True)
            return
        time.sleep(LOOK_SECONDS)
    raise UserError(
        f"Ray should have {count} nodes with {count * gpus} GPUs, has {state} after {WAIT_SECONDS / 60:.0f} minutes",
        code="nodes-did-not-join",
        nodes=count,
        gpus=count * gpus,
    )


def run_with_ray(command: Sequence[str], count: int, gpus: int, cpus: int, scratch: Path) -> int:
    """Start Ray, run the command, end Ray; returns the command's exit status.

    Args:
        command: to run on this node.
        count: number of nodes.
        gpus: of each node.
        cpus: of each node; 0 for as many as Ray finds.
        scratch: folder of Ray's sockets and logs on each node.

    Raises:
        UserError: there is no job of so many nodes, Ray did not start on all of them, or one was lost.
    """
    job, port = slurm_nodes.job_nodes(count), slurm_nodes.free_port()
    address = f"{job[0].address}:{port}"
    node_command = [sys.executable, "-m", "frameworks.ray_cluster", "--node", "--gpus", str(gpus), "--cpus", str(cpus)]
    # Without a token anybody who reaches the port could run code as this user.
    os.environ |= loopback.ray_token()
    step = slurm_nodes.run_on_each(job, [*node_command, "--port", str(port), "--scratch", str(scratch)])
    process: subprocess.Popen[str] | None = None
    try:
        wait_for_nodes(address, count, gpus, step)
        environment = {**os.environ, "RAY_ADDRESS": address, "TMPDIR": str(scratch / "tmp")}
        process = subprocess.Popen(command, env=environment, text=True)
        while process.poll() is None:
            if step.poll() is not None:
                sentence = f"Ray was lost on a node (status {step.returncode}); its output is above"
                raise UserError(sentence, code="ray-lost", status=step.returncode)
            time.sleep(LOOK_SECONDS)
        return process.returncode
    finally:
        if process is not None:
            slurm_nodes.end_process(process)
        slurm_nodes.end_process(step)
        shutil.rmtree(scratch, ignore_errors=True)  # files that were written while the step ended


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--gpus", type=int, required=True, help="of each node")
    parser.add_argument("--cpus", type=int, default=0, help="of each node; 0: as many as Ray finds")
    parser.add_argument("--scratch", type=Path, help="a short path for Ray's sockets and logs, on each node")
    parser.add_argument("--node", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if arguments.node:
        start_node(arguments)
    slurm_nodes.end_on_signals()
    scratch = arguments.scratch
    if scratch is None:
        job = os.environ.get("SLURM_JOB_ID")  # with its id in the name the path is the same on each node
        scratch = private_folder.of_user(on_disk=True) / f"ray-{job}" if job else private_folder.new("ray")
    sys.exit(run_with_ray(arguments.command, arguments.nodes, arguments.gpus, arguments.cpus, scratch))


if __name__ == "__main__":
    run_command(main)
