"""What would go wrong on a Slurm cluster, found before anything is queued: one sentence each, and what to do.

    snakemake preflight --profile slurm

Settings (profiles/slurm/cluster.yaml) and jobs are compared with what Slurm says of itself; each kind of job is shown
to `sbatch --test-only`; and one short job tries whether a node sees this folder, runs this Python, and gets the
environment.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import probe, slurm
from cluster.node_fit import misfits, nearest
from cluster.resources import Need, resources_of
from cluster.slurm import Node, Partition
from contracts.errors import UserError, run_command

FILE = "profiles/slurm/cluster.yaml"
# File systems that several machines mount (the words of /proc/mounts); what they hold is seen everywhere.
SHARED: tuple[str, ...] = (
    "nfs",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "panfs",
    "orangefs",
    "pvfs",
    "gluster",
    "weka",
    "cifs",
    "smb",
    "afs",
)
SHARED += ("9p", "virtiofs")
EARLY_LOOKS = 3  # after this many times the first interval the executor trusts squeue (its `dynamic_check_threshold`)


@dataclass(frozen=True)
class Finding:
    """A sentence, and whether jobs cannot work before it is mended."""

    grave: bool
    text: str


def found(settings: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]], first_look: int) -> list[Finding]:
    """Everything that is wrong or worth knowing.

    Args:
        settings: `cluster` of the configuration.
        jobs: name and Need of each kind of job.
        first_look: seconds after which the executor first asks for a job's state.
    """
    if slurm.run(["sbatch", "--version"])[0] == 127:
        return [
            Finding(True, "there is no sbatch here: give the command on a login node of the cluster (or load Slurm's "
                    "module); without a cluster, leave --profile slurm away")
        ]  # fmt: skip
    status, output, error = slurm.run(["scontrol", "show", "config"])
    if status:
        said = error.splitlines()[-1] if error else f"status {status}"
        advice = "give the command on a login node of the cluster, or wait until it answers"
        return [Finding(True, f"Slurm's controller does not answer ({said}): {advice}")]
    configuration = slurm.read_configuration(output)
    partitions = slurm.read_partitions(slurm.run(["scontrol", "show", "partition", "--oneliner"])[1])
    nodes = slurm.read_nodes(slurm.run(["scontrol", "show", "node", "--oneliner"])[1])
    findings = [*accounting(configuration, first_look), *account(settings, configuration)]
    queues = {key: queue(settings, key, partitions) for key in ("partition", "gpu_partition")}
    findings += {said.text: said for said in queues.values() if isinstance(said, Finding)}.values()
    findings += exporting() + working_folder(Path.cwd(), nodes)
    for job in jobs:
        need = Need(**{key: value for key, value in job.items() if key != "name"})
        partition = queues["gpu_partition" if need.gpus else "partition"]
        if isinstance(partition, Partition):
            findings += [Finding(True, f"{job['name']} {said}") for said in misfits(need, settings, partition, nodes)]
    if not any(finding.grave for finding in findings):
        findings += refused(settings, jobs) or tried(settings)
    return findings


def accounting(configuration: Mapping[str, str], first_look: int) -> list[Finding]:
    """Whether finished jobs are remembered, and what works otherwise where they are not."""
    age = configuration.get("MinJobAge", "300").split()[0]
    kept = configuration.get("AccountingStorageType", "").endswith("slurmdbd")
    if not kept and age.isdigit() and int(age) < EARLY_LOOKS * first_look:
        return [
            Finding(True, f"this cluster keeps no accounting, and forgets finished jobs after {age} s (MinJobAge), "
                    f"sooner than they are asked after: set slurm-init-seconds-before-status-checks: "
                    f"{max(1, int(age) // EARLY_LOOKS)} in profiles/slurm/config.yaml, or have MinJobAge raised")
        ]  # fmt: skip
    if not kept:
        return [
            Finding(False, "this cluster keeps no accounting (no sacct): jobs are asked after with squeue, which "
                    f"forgets them {age} s after their end, so leave snakemake running; there is no efficiency report")
        ]  # fmt: skip
    return []


def account(settings: Mapping[str, Any], configuration: Mapping[str, str]) -> list[Finding]:
    """Whether jobs may be charged to the account that is set, or to a default one."""
    wanted = settings["account"]
    if not configuration.get("AccountingStorageType", "").endswith("slurmdbd"):
        said = (
            f"{FILE}: account: {wanted} is set, but this cluster keeps no accounts and the submission would be refused"
        )
        return [Finding(True, f"{said}: set it to null")] if wanted else []
    user = getpass.getuser()
    status, output, _ = slurm.run(["sacctmgr", "-nP", "show", "assoc", f"user={user}", "format=account"])
    accounts = sorted({line.strip() for line in output.splitlines() if line.strip()})
    if status or (wanted and wanted.lower() in (name.lower() for name in accounts)):
        return []
    if wanted:
        listed = ", ".join(accounts) or "none at all"
        return [Finding(True, f"{FILE}: account: {wanted} is not one of {user}'s: {listed}{nearest(wanted, accounts)}")]
    _, output, _ = slurm.run(["sacctmgr", "-nP", "show", "user", user, "format=defaultaccount"])
    if not output.strip() and "associations" in configuration.get("AccountingStorageEnforce", ""):
        listed = ", ".join(accounts) or "none: ask the cluster's administrators for one"
        return [Finding(True, f"{FILE}: account is not set, and {user} has no default account; there are {listed}")]
    return []


def queue(settings: Mapping[str, Any], key: str, partitions: Sequence[Partition]) -> Partition | Finding:
    """The partition that a setting means, or what is wrong with it."""
    wanted = settings[key] or settings["partition"]
    named = [partition for partition in partitions if (partition.name == wanted if wanted else partition.default)]
    names = [partition.name for partition in partitions]
    key = key if settings[key] else "partition"
    if not named and wanted:
        said = f"{key}: {wanted} is no partition of this cluster"
        return Finding(True, f"{FILE}: {said}; there are {', '.join(names) or 'none'}{nearest(wanted, names)}")
    if not named:
        return Finding(True, f"{FILE}: {key} is not set, and this cluster has no default; there are {', '.join(names)}")
    if not named[0].up:
        return Finding(True, f"{FILE}: partition {named[0].name} is closed now (sinfo says so); take another, or wait")
    return named[0]


def exporting() -> list[Finding]:
    """Whether this shell tells Slurm to start jobs with an empty environment."""
    told = [f"{name}={os.environ[name]}" for name in ("SBATCH_EXPORT", "SLURM_EXPORT_ENV") if os.environ.get(name)]
    if not [word for word in told if word.endswith("=NONE")]:
        return []
    text = f"this shell sets {' and '.join(told)}: jobs are submitted with --export=ALL in spite of it"
    return [Finding(False, f"{text}; what they need from modules belongs into modules in {FILE} all the same")]


def working_folder(folder: Path, nodes: Sequence[Node]) -> list[Finding]:
    """Whether the file system of this folder is one that nodes share; the short job then tries it."""
    import socket

    here = socket.gethostname().split(".")[0]
    if all(node.host.split(".")[0] == here for node in nodes):
        return []
    point, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, mounted, type_, *_ = line.split()
        if folder.is_relative_to(mounted) and len(mounted) >= len(point):
            point, kind = mounted, type_
    if any(word in kind for word in SHARED):
        return []
    text = f"{folder} lies on {kind} at {point}, which is seldom shared between machines"
    return [Finding(False, f"{text}: if nodes do not see it, put the project where they do")]


def refused(settings: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """What sbatch itself says against each kind of job, without queueing it."""
    said: dict[str, str] = {}
    for job in jobs:
        need = Need(**{key: value for key, value in job.items() if key != "name"})
        words = probe.options(resources_of(need, settings))
        status, _, error = slurm.run(["sbatch", "--test-only", *words, "--wrap", "true"])
        if status and error not in said:
            said[error] = f"{job['name']} would be refused by sbatch {' '.join(words)}: {error.splitlines()[-1]}"
    return [Finding(True, text) for text in said.values()]


def tried(settings: Mapping[str, Any]) -> list[Finding]:
    """What one short job finds on a node."""
    words = probe.options(resources_of(Need(memory_mb=200, minutes=1), settings))
    grave, text = probe.run(words, Path.cwd(), Path(sys.executable))
    return [Finding(grave, text)] if text else []


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m cluster.preflight", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("asked", type=Path, help="JSON: cluster, as configured, and jobs, each a name and a Need")
    parser.add_argument("--first-look", type=int, default=40, help="slurm-init-seconds-before-status-checks")
    arguments = parser.parse_args()
    asked = json.loads(arguments.asked.read_text())
    if asked["cluster"] is None:
        raise UserError("preflight is for a cluster: snakemake preflight --profile slurm")
    findings = found(asked["cluster"], asked["jobs"], arguments.first_look)
    for finding in findings:
        print(f"{'WRONG' if finding.grave else 'note'}: {finding.text}")
    grave = sum(finding.grave for finding in findings)
    if grave:
        raise UserError(f"{grave} thing{'s' * (grave > 1)} would keep jobs from working: mend what is WRONG above")
    print(f"ready: {len(asked['jobs'])} kinds of jobs fit this cluster; nothing of them was queued")


if __name__ == "__main__":
    run_command(main)
