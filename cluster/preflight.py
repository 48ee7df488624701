"""Find what would fail on a Slurm cluster before anything is queued: one sentence for each problem, with its fix.

    snakemake preflight --profile slurm

Compares the settings (profiles/slurm/cluster.yaml) and the jobs with the cluster's partitions, nodes and accounts.
Shows each kind of job to `sbatch --test-only`. Submits one short job that checks whether a node sees this folder, runs
this Python and receives the environment.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from cluster import probe, slurm
from cluster.job_resources import Need, resources_for_attempt
from cluster.node_fit import FILE, misfits
from cluster.slurm import Node, Partition
from system.command_line import argument_parser
from system.errors import UserError, run_command
from system.unknown_names import meant

# Types of file systems that several machines mount, as in /proc/mounts.
SHARED = re.compile("nfs|lustre|gpfs|beegfs|ceph|panfs|orangefs|pvfs|gluster|weka|cifs|smb|afs|9p|virtiofs")


@dataclass(frozen=True)
class Finding:
    """A sentence, and whether jobs would fail until it is fixed."""

    error: bool
    text: str


def all_findings(settings: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Everything that would fail or is worth knowing.

    Args:
        settings: `cluster` of the configuration.
        jobs: name and Need of each kind of job.
    """
    if slurm.run(["sbatch", "--version"])[0] == 127:
        return [
            Finding(
                True,
                "sbatch is not installed here: run this on a login node (or load Slurm's module); without a cluster, "
                "omit --profile slurm",
            )
        ]
    status, output, error = slurm.run(["scontrol", "show", "config"])
    if status:
        advice = "run this on a login node, or wait until the controller answers"
        return [Finding(True, f"Slurm's controller does not answer ({slurm.failure_reason(status, error)}): {advice}")]
    configuration = slurm.read_configuration(output)
    partitions = slurm.read_partitions(slurm.run(["scontrol", "show", "partition", "--oneliner"])[1])
    nodes = slurm.read_nodes(slurm.run(["scontrol", "show", "node", "--oneliner"])[1])
    findings = [*check_accounting(configuration), *check_account(settings, configuration)]
    limit = slurm.submit_limit(settings["account"], settings["qos"], slurm.partitions_of(settings))
    if limit is not None:
        sentence = f"you may have {limit} jobs in the queue at a time; no more are submitted"
        findings.append(Finding(limit == 0, sentence + ": ask the cluster's administrators" * (limit == 0)))
    chosen = {key: choose_partition(settings, key, partitions) for key in ("partition", "gpu_partition")}
    findings += {problem.text: problem for problem in chosen.values() if isinstance(problem, Finding)}.values()
    findings += check_export() + check_folder(Path.cwd(), nodes)
    for name, need in job_needs(jobs):
        partition = chosen["gpu_partition" if need.gpus else "partition"]
        if isinstance(partition, Partition):
            findings += [Finding(True, f"{name} {text}") for text in misfits(need, settings, partition, nodes)]
    if not any(finding.error for finding in findings):
        findings += check_submission(settings, jobs) or check_node(settings)
    return findings


def job_needs(jobs: Sequence[Mapping[str, Any]]) -> list[tuple[str, Need]]:
    """Name and Need of each kind of job, from JSON."""
    return [(job["name"], Need(**{key: value for key, value in job.items() if key != "name"})) for job in jobs]


def keeps_accounts(configuration: Mapping[str, str]) -> bool:
    """Whether the cluster runs slurmdbd, which sacct and accounts need."""
    return configuration.get("AccountingStorageType", "").endswith("slurmdbd")


def check_accounting(configuration: Mapping[str, str]) -> list[Finding]:
    """What is missing without accounting."""
    if keeps_accounts(configuration):
        return []
    text = "this cluster keeps no accounting (no sacct): job states come from squeue and from files that the jobs write"
    return [Finding(False, f"{text}; there is no efficiency report")]


def check_account(settings: Mapping[str, Any], configuration: Mapping[str, str]) -> list[Finding]:
    """Whether the user may charge jobs to the configured account, or has a default account."""
    wanted = settings["account"]
    if not keeps_accounts(configuration):
        text = f"{FILE}: account: {wanted} is set, but this cluster keeps no accounts and sbatch would refuse it"
        return [Finding(True, f"{text}: set it to null")] if wanted else []
    user = getpass.getuser()
    status, output, _ = slurm.run(["sacctmgr", "-nP", "show", "assoc", f"user={user}", "format=account"])
    accounts = sorted({line.strip() for line in output.split("\n") if line.strip()})
    if status or (wanted and wanted.lower() in (name.lower() for name in accounts)):
        return []
    if wanted:
        listed = f"{', '.join(accounts) or 'none at all'}{meant(wanted, accounts, 1)}"
        return [Finding(True, f"{FILE}: account: {wanted} is not an account of {user}, who has: {listed}")]
    _, output, _ = slurm.run(["sacctmgr", "-nP", "show", "user", user, "format=defaultaccount"])
    if not output.strip() and "associations" in configuration.get("AccountingStorageEnforce", ""):
        listed = ", ".join(accounts) or "none: ask the cluster's administrators for one"
        return [Finding(True, f"{FILE}: account is not set, and {user} has no default account; accounts: {listed}")]
    return []


def choose_partition(settings: Mapping[str, Any], key: str, partitions: Sequence[Partition]) -> Partition | Finding:
    """The partition that a setting selects, or why it selects none.

    Args:
        settings: `cluster` of the configuration.
        key: `partition` or `gpu_partition`.
        partitions: of the cluster.
    """
    wanted = settings[key] or settings["partition"]
    named = [partition for partition in partitions if (partition.name == wanted if wanted else partition.default)]
    names = [partition.name for partition in partitions]
    listed = ", ".join(names) or "none"
    key = key if settings[key] else "partition"
    if not named and wanted:
        text = f"{key}: {wanted} is not a partition of this cluster"
        return Finding(True, f"{FILE}: {text}; partitions: {listed}{meant(wanted, names, 1)}")
    if not named:
        return Finding(True, f"{FILE}: {key} is not set, and this cluster has no default; partitions: {listed}")
    if not named[0].up:
        return Finding(True, f"{FILE}: partition {named[0].name} is closed (see sinfo): choose another, or wait")
    return named[0]


def check_export() -> list[Finding]:
    """Whether this shell makes Slurm start jobs with an empty environment."""
    variables = [f"{name}={os.environ[name]}" for name in ("SBATCH_EXPORT", "SLURM_EXPORT_ENV") if os.environ.get(name)]
    if not any(variable.endswith("=NONE") for variable in variables):
        return []
    text = f"this shell sets {' and '.join(variables)}, but jobs are submitted with --export=ALL"
    return [Finding(False, f"{text}; still, list the modules that jobs need under modules in {FILE}")]


def check_folder(folder: Path, nodes: Sequence[Node]) -> list[Finding]:
    """Whether the folder is on a type of file system that nodes share; the short job then tests it."""
    here = socket.gethostname().split(".")[0]
    if all(node.host.split(".")[0] == here for node in nodes):
        return []
    mounts = [mount for mount in psutil.disk_partitions(all=True) if folder.is_relative_to(mount.mountpoint)]
    mount = sorted(mounts, key=lambda mount: len(mount.mountpoint))[-1]  # the last of several mounts hides the others
    if SHARED.search(mount.fstype):
        return []
    text = f"{folder} is on {mount.fstype} at {mount.mountpoint}, which machines seldom share"
    return [Finding(False, f"{text}: if nodes do not see it, move the project to a shared file system")]


def check_submission(settings: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Why sbatch would refuse a kind of job; nothing is queued."""
    refusals: dict[str, str] = {}
    for name, need in job_needs(jobs):
        options = probe.sbatch_options(resources_for_attempt(need, settings))
        status, _, error = slurm.run(["sbatch", "--test-only", *options, "--wrap", "true"])
        if status and error not in refusals:
            refusals[error] = (
                f"{name} would be refused by sbatch {' '.join(options)}: {slurm.failure_reason(status, error)}"
            )
    return [Finding(True, text) for text in refusals.values()]


def check_node(settings: Mapping[str, Any]) -> list[Finding]:
    """What one short job finds on a node."""
    options = probe.sbatch_options(resources_for_attempt(Need(memory_mb=200, minutes=1), settings))
    error, text = probe.run_probe(options, Path.cwd(), Path(sys.executable))
    return [Finding(error, text)]


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("jobs", type=Path, help="JSON: the configured cluster, and name and Need of each kind of job")
    arguments = parser.parse_args()
    try:
        content = json.loads(arguments.jobs.read_text(encoding="utf-8"))
        content = {"cluster": content["cluster"], "jobs": content["jobs"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(
            f"{arguments.jobs} should hold the cluster and the jobs, but is damaged ({error}): delete it, and run "
            "snakemake preflight --profile slurm",
            code="damaged-file",
            path=str(arguments.jobs),
        ) from None
    if content["cluster"] is None:
        sentence = "preflight needs a cluster: run snakemake preflight --profile slurm"
        raise UserError(sentence, code="missing-cluster")
    findings = all_findings(content["cluster"], content["jobs"])
    for finding in findings:
        print(f"{'ERROR' if finding.error else 'note'}: {finding.text}")
    if errors := sum(finding.error for finding in findings):
        sentence = f"preflight found {errors} error{'s' * (errors > 1)}: fix them before jobs are submitted"
        raise UserError(sentence, code="preflight-failed", errors=errors)
    print(f"ready: all {len(content['jobs'])} kinds of jobs fit this cluster; none was queued")


if __name__ == "__main__":
    run_command(main)
