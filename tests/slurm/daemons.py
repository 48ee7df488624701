"""A Slurm cluster on one machine: munged, slurmctld and several slurmd, in a folder of their own."""

from __future__ import annotations

import getpass
import os
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from frameworks.slurm_nodes import free_ports
from tests.slurm import accounting
from tests.waiting import LIMIT

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "squeue", "sinfo", "scontrol")
INSTALL = "apt-get install -y --no-install-recommends slurmctld slurmd slurm-client munge"
# Lines of a Snakefile. The plugin looks ten seconds later each time that no job has ended; here always after two.
POLLING = """
import snakemake_executor_plugin_slurm
snakemake_executor_plugin_slurm.Executor.next_seconds_between_status_checks = property(lambda self: 2, lambda *_: None)
"""
# Debian installs daemons where only root's PATH looks.
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"


def missing() -> str:
    """The programs that are not installed and how to install them; empty if a cluster can be started."""
    absent = [program for program in PROGRAMS if shutil.which(program, path=PATH) is None]
    return f"{', '.join(absent)} not installed: {INSTALL}" if absent else ""


@dataclass
class Cluster:
    """A running cluster; Slurm's commands use it if started with `environment`."""

    folder: Path
    environment: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *command: str) -> None:
        """Start a daemon in the foreground; its output goes to `<name>.out`."""
        with (self.folder / f"{name}.out").open("ab") as output:
            self.processes[name] = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip

    def stop(self, name: str, number: int = signal.SIGTERM) -> None:
        """Stop one daemon; it can be started again."""
        process = self.processes.pop(name)
        process.send_signal(number)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def start_controller(self) -> None:
        self.start("slurmctld", "slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))

    def start_node(self, name: str) -> None:
        self.start(name, "slurmd", "-D", "-N", name, "-f", str(self.folder / "slurm.conf"))

    def lose_node(self, name: str) -> None:
        """Kill a node's daemon and the processes of its jobs, and report the node as down."""
        self.stop(name, signal.SIGKILL)
        self.run("scontrol", "update", f"nodename={name}", "state=down", "reason=test")
        for process in psutil.process_iter(["environ"]):
            environment = process.info["environ"] or {}
            if environment.get("SLURMD_NODENAME") == name and str(self.folder) in str(environment):
                with suppress(psutil.NoSuchProcess):
                    process.kill()

    def call(self, *command: str) -> subprocess.CompletedProcess[str]:
        """One of Slurm's commands, ended."""
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=LIMIT)

    def run(self, *command: str, check: bool = True) -> str:
        """Standard output of one of Slurm's commands."""
        done = self.call(*command)
        assert not check or done.returncode == 0, (command, done.returncode, done.stdout, done.stderr, self.logs())
        return done.stdout

    def jobs(self) -> dict[str, str]:
        """State of every job that the controller remembers, by job id; a busy one may not answer the first time."""
        listing, deadline = ("squeue", "--noheader", "--states=all", "--format=%i|%T"), time.monotonic() + LIMIT
        while (done := self.call(*listing)).returncode:
            assert time.monotonic() < deadline, (listing, done.returncode, done.stderr, self.logs())
            time.sleep(0.5)
        return dict(line.split("|") for line in done.stdout.splitlines())

    def wait_for(self, what: str, condition: object) -> None:
        """Wait until a function without arguments returns something true."""
        deadline = time.monotonic() + LIMIT
        while not condition():  # type: ignore[operator]
            assert time.monotonic() < deadline, (what, self.logs())
            time.sleep(0.2)

    def logs(self) -> str:
        """The last lines of every daemon."""
        files = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        return "\n".join(f"== {file.name}\n" + "\n".join(file.read_text().splitlines()[-15:]) for file in files)


def write_gpus(folder: Path, names: list[str], gpus: int) -> None:
    """Write gres.conf with simulated GPUs, and their devices."""
    for number in range(gpus):  # slurmd counts character devices and does not open them
        os.mknod(folder / f"gpu{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    device = f"File={folder}/gpu[0-{gpus - 1}]" if gpus > 1 else f"File={folder}/gpu0"
    (folder / "gres.conf").write_text(
        "AutoDetect=off\n" + "".join(f"NodeName={name} Name=gpu Type=demo {device}\n" for name in names)
    )


def configuration(folder: Path, nodes: int, *, gpus: int, cpus: int, memory_mb: int, extra: str) -> str:
    """Write slurm.conf and gres.conf; return the path of slurm.conf."""
    host, (controller, *ports) = socket.gethostname(), free_ports(nodes + 1)
    names = [f"n{number}" for number in range(1, nodes + 1)]
    user = getpass.getuser()
    lines = [
        "ClusterName=crosszero",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={controller}",
        f"SlurmUser={user}",
        f"SlurmdUser={user}",
        "AuthType=auth/munge",
        "CredType=cred/munge",
        f"AuthInfo=socket={folder}/munge.socket",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool-%n",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/slurmd-%n.pid",
        f"SlurmctldLogFile={folder}/slurmctld.log",
        f"SlurmdLogFile={folder}/slurmd-%n.log",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "MpiDefault=none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "GresTypes=gpu",
        "JobAcctGatherType=jobacct_gather/linux",
        "JobAcctGatherFrequency=task=1",
        "JobAcctGatherParams=OverMemoryKill,UsePss",  # shared memory counts once, as in a cgroup
        "SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0",
        "SlurmdParameters=config_overrides",
        "ReturnToService=2",
        "SlurmdTimeout=10",
        "SlurmctldTimeout=30",
        "KillWait=5",
        "MessageTimeout=30",
    ]
    for name, port in zip(names, ports, strict=True):
        size = f"CPUs={cpus} RealMemory={memory_mb}" + (f" Gres=gpu:demo:{gpus}" if gpus else "")
        lines.append(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} {size} State=UNKNOWN")
    if "AccountingStorageType=" not in extra:
        lines.append("AccountingStorageType=accounting_storage/none")
    if "PartitionName=" not in extra:
        lines.append("PartitionName=short Nodes=ALL Default=YES MaxTime=1-0 State=UP")
    (folder / "slurm.conf").write_text("\n".join([*lines, extra, ""]))
    if gpus:
        write_gpus(folder, names, gpus)
    return str(folder / "slurm.conf")


def write_munge_key(folder: Path) -> Path:
    """Write a new key that this user alone can read."""
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    return key


def write_wrappers(folder: Path, conf: str) -> None:
    """Slurm's programs that know the cluster: Snakemake removes SLURM_CONF from the environment of a job's srun."""
    folder.mkdir()
    for program in ("sbatch", "srun", "scancel", "squeue", "sinfo", "scontrol", "sacct", "sacctmgr", "sshare"):
        command = folder / program
        command.write_text(f'#!/bin/sh\nSLURM_CONF={conf} exec {shutil.which(program, path=PATH)} "$@"\n')
        command.chmod(0o755)


@contextmanager
def cluster(
    nodes: int = 2, *, gpus: int = 0, cpus: int = 2, memory_mb: int = 8000, extra: str = "", accounts: str | None = None
) -> Iterator[Cluster]:
    """A cluster with idle nodes; its daemons and jobs are ended afterwards.

    Args:
        nodes: number of slurmd.
        gpus: simulated GPUs per node, of type `demo`.
        cpus: simulated processors per node.
        memory_mb: memory per node.
        extra: lines of slurm.conf, such as other partitions.
        accounts: AccountingStorageEnforce of a cluster with accounting; None: without accounting.
    """
    folder = Path(tempfile.mkdtemp(prefix="cz-slurm-", dir="/tmp"))  # short: sockets' paths may have 107 bytes
    folder.chmod(0o755)
    key = write_munge_key(folder)
    database = free_ports(2)
    if accounts is not None:
        extra += "\n" + accounting.settings(folder, database[0], accounts)
    conf = configuration(folder, nodes, gpus=gpus, cpus=cpus, memory_mb=memory_mb, extra=extra)
    (folder / "state").mkdir()
    write_wrappers(folder / "bin", conf)
    inherited = {name: value for name, value in os.environ.items() if not re.match("SLURM|SBATCH|SRUN", name)}
    running = Cluster(folder, {**inherited, "PATH": f"{folder}/bin:{PATH}"})
    try:
        munge = [f"--{word}" for word in ("foreground", "force", f"socket={folder}/munge.socket", f"key-file={key}")]
        munge += [f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/seed"]
        running.start("munged", "munged", *munge)
        running.wait_for("munged", (folder / "munge.socket").exists)
        if accounts is not None:
            accounting.start(running, *database)
        running.start_controller()
        for number in range(1, nodes + 1):
            running.start_node(f"n{number}")
        running.wait_for(
            "idle nodes", lambda: running.run("sinfo", "-hN", "-o", "%N %T", check=False).count(" idle") >= nodes
        )
        yield running
    finally:
        if "slurmctld" in running.processes:
            running.run("scancel", "--state=pending", "--user", getpass.getuser(), check=False)
            running.run("scancel", "--user", getpass.getuser(), check=False)
            deadline = time.monotonic() + 20
            while running.run("squeue", "-h", check=False).strip() and time.monotonic() < deadline:
                time.sleep(0.2)
        for name in [*(name for name in reversed(running.processes) if name != "munged"), "munged"]:
            if name in running.processes:
                running.stop(name)
        shutil.rmtree(folder, ignore_errors=True)
