"""What a job asks of Slurm or of this machine, and how much more memory and time each retry asks for.

The Slurm executor turns these resources of Snakemake into options of sbatch. Which failed jobs are retried at all is in
retry_interrupted.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from system.errors import UserError

ATTEMPTS = 4  # the first one and `retries` in profiles/slurm/config.yaml
SNAKEMAKE_MB = 500  # memory that Snakemake itself uses in a job: one process for the job, one for its step


@dataclass(frozen=True)
class Need:
    """What one job needs: CPUs and memory of each node, GPUs of all nodes together."""

    memory_mb: int
    minutes: int
    gpus: int = 0
    nodes: int = 1
    cpus: int = 1


def resources_for_attempt(
    need: Need, cluster: Mapping[str, Any] | None, attempt: int = 1
) -> dict[str, int | str | None]:
    """The resources of a job: the second attempt asks for twice the memory and time, the third for three
    times, of whatever rule and cause, up to the limits in the cluster's settings.

    Args:
        need: from the run file.
        cluster: settings of profiles/slurm/cluster.yaml; None on a machine without Slurm.
        attempt: from 1.

    Returns:
        `mem_mb` in MB per node, `runtime` in minutes; None for resources that the job does not request, which Snakemake
        omits. The keys depend on the cluster's settings alone.

    Raises:
        UserError: the number of GPUs is not a multiple of the number of nodes.
    """
    if need.gpus % need.nodes:
        raise UserError(
            f"{need.gpus} GPUs do not divide over {need.nodes} nodes: change hardware.gpus or hardware.nodes",
            code="gpus-do-not-divide",
            gpus=need.gpus,
            nodes=need.nodes,
        )
    memory, minutes = need.memory_mb * attempt, need.minutes * attempt
    if cluster is None:
        return {"gpu": need.gpus, "nodes": need.nodes, "mem_mb": memory, "runtime": minutes}
    memory += SNAKEMAKE_MB
    queue = "gpu_" if need.gpus else ""
    hours = cluster[f"{queue}max_hours"]
    per_node = need.gpus // need.nodes
    # Per node (--gres) and not in total (--gpus), so that each node of a job gets the same number, and so does the job
    # step that starts the command on the first node.
    kind = f"gpu:{cluster['gpu_type']}" if cluster["gpu_type"] else "gpu"
    return {
        "gres": f"{kind}:{per_node}" if need.gpus else None,
        "nodes": need.nodes,
        "tasks": need.nodes if need.nodes > 1 and not need.gpus else None,
        "cpus_per_task": min(need.cpus, cluster["max_cpus"] or need.cpus),
        "mem_mb": min(memory, 1000 * cluster["max_memory_gb"]) if cluster["max_memory_gb"] else memory,
        "runtime": min(minutes, int(60 * hours) if hours else minutes),
        "slurm_account": cluster["account"],
        "slurm_partition": cluster[f"{queue}partition"] or cluster["partition"],
        "qos": cluster["qos"],
        "constraint": cluster["gpu_constraint"] if need.gpus else None,
        "slurm_extra": cluster["extra"],
    }
