"""What a job needs, as Snakemake's resources: on a cluster those that its Slurm executor makes options of sbatch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contracts.errors import UserError

# Resources that a request may hold; one that a job has no use for is None, and Snakemake leaves it out.
KEYS = (
    "gpu", "gres", "nodes", "tasks", "cpus_per_task", "mem_mb", "runtime",
    "slurm_account", "slurm_partition", "qos", "constraint", "slurm_extra",
)  # fmt: skip
ATTEMPTS = 4  # the first, and `retries` in profiles/slurm/config.yaml
SNAKEMAKE_MB = 500  # what Snakemake itself takes of a job's memory: once for the job, once for its step


@dataclass(frozen=True)
class Need:
    """What one job needs; CPUs and memory are of each of its nodes, GPUs of all of them."""

    memory_mb: int
    minutes: int
    gpus: int = 0
    nodes: int = 1
    cpus: int = 1


def resources_of(need: Need, cluster: Mapping[str, Any] | None, attempt: int = 1) -> dict[str, int | str | None]:
    """The resources of a job: more memory and time with each attempt, up to what the cluster's settings allow.

    Args:
        need: what the run file says.
        cluster: profiles/slurm/cluster.yaml; None on a machine without Slurm.
        attempt: from 1.

    Raises:
        UserError: the GPUs do not divide evenly over the nodes.
    """
    if need.gpus % need.nodes:
        raise UserError(f"{need.gpus} GPUs do not divide over {need.nodes} nodes: set hardware.gpus or hardware.nodes")
    memory, minutes = need.memory_mb * attempt, need.minutes * attempt
    if cluster is None:
        return {"gpu": need.gpus, "nodes": need.nodes, "mem_mb": memory, "runtime": minutes}
    memory += SNAKEMAKE_MB
    queue = "gpu_" if need.gpus else ""
    hours = cluster[f"{queue}max_hours"]
    per_node = need.gpus // need.nodes
    # By node (--gres) and not in all (--gpus): every node of a job has the same number then, and so has the step that
    # starts the job's command on its first node.
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
