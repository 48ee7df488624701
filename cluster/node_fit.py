"""Whether jobs fit the nodes of a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cluster.job_resources import ATTEMPTS, Need, resources_for_attempt
from cluster.slurm import Node, Partition
from system.unknown_names import meant

FILE = "profiles/slurm/cluster.yaml"


def misfits(need: Need, settings: Mapping[str, Any], partition: Partition, nodes: Sequence[Node]) -> list[str]:
    """What a job requests and the partition cannot provide.

    Args:
        need: of the job.
        settings: `cluster` of the configuration.
        partition: where the job is submitted.
        nodes: of the cluster.

    Returns:
        Sentences that continue the job's name.
    """
    inside = [node for node in nodes if partition.name in node.partitions]
    if not inside:
        return [f"is submitted to partition {partition.name}, which has no nodes"]
    if need.gpus and (wrong := gpu_type_problem(settings["gpu_type"], partition, inside)):
        return [wrong]
    gpus, cpus = need.gpus // need.nodes, int(resources_for_attempt(need, settings)["cpus_per_task"] or 1)
    most_gpus = max(gpu_count(node, settings["gpu_type"]) for node in inside)
    fitting = [node for node in inside if gpu_count(node, settings["gpu_type"]) >= gpus]
    if not fitting:
        return [
            f"requests {gpus} GPUs per node, but partition {partition.name} has at most {most_gpus}: set "
            f"full.hardware.nodes: {-(-need.gpus // max(most_gpus, 1))} in its run file"
        ]
    most_mb = max(node.memory_mb for node in fitting)
    problems = over_limits(need, settings, partition, most_mb)
    if cpus > (most := max(node.cpus for node in fitting)):
        problems.append(
            f"requests {cpus} CPUs per node, but partition {partition.name} has at most {most}: set "
            f"max_cpus: {most} in {FILE}"
        )
    if not problems and len(fitting) < need.nodes:
        problems.append(f"requests {need.nodes} nodes, but partition {partition.name} has only {len(fitting)} that fit")
    if not problems and not any(node.usable for node in fitting):
        problems.append(f"would wait: all nodes of partition {partition.name} that fit are down or drained (see sinfo)")
    # The last attempt requests the most, and would be refused after the others have run.
    return problems or over_limits(need, settings, partition, most_mb, ATTEMPTS)


def over_limits(
    need: Need, settings: Mapping[str, Any], partition: Partition, most_mb: int, attempt: int = 1
) -> list[str]:
    """Requests for more time or memory than the partition allows.

    Args:
        need: of the job.
        settings: `cluster` of the configuration.
        partition: where the job is submitted.
        most_mb: memory of the partition's largest fitting node, in MB.
        attempt: from 1; later ones request more.
    """
    request, problems = resources_for_attempt(need, settings, attempt), []
    minutes, memory_mb = int(request["runtime"] or 0), int(request["mem_mb"] or 0)
    requests = "requests" if attempt == 1 else f"requests, at its {attempt}th attempt,"
    if partition.max_minutes is not None and minutes > partition.max_minutes:
        # Round down to one decimal: a limit that is rounded up would be refused again.
        key, limit = "gpu_max_hours" if need.gpus else "max_hours", int(partition.max_minutes / 6) / 10
        resumes = "; training resumes from its checkpoint" if need.gpus else ""
        problems.append(
            f"{requests} {minutes / 60:.4g} h, but partition {partition.name} allows "
            f"{partition.max_minutes / 60:.4g} h: set {key}: {limit:g} in {FILE}{resumes}"
        )
    if memory_mb > most_mb:
        problems.append(
            f"{requests} {memory_mb / 1000:g} GB per node, but partition {partition.name} has at most "
            f"{most_mb / 1000:g} GB: set max_memory_gb: {most_mb // 1000} in {FILE}"
        )
    return problems


def gpu_count(node: Node, kind: str | None) -> int:
    """Number of the node's GPUs of a type, or of any type."""
    return sum(number for name, number in node.gpus.items() if kind is None or name == kind)


def gpu_type_problem(kind: str | None, partition: Partition, nodes: Sequence[Node]) -> str:
    """Why the partition has no GPUs of the type; empty if it has."""
    there = sorted({name for node in nodes for name in node.gpus})
    if not there:
        return f"needs GPUs, but no node of partition {partition.name} has any: set gpu_partition in {FILE}"
    if kind is None or kind in there:
        return ""
    if there == [""]:
        return f"requests GPUs of type {kind}, but this cluster names no types: set gpu_type: null in {FILE}"
    named = [name for name in there if name]
    return (
        f"requests GPUs of type {kind}, but partition {partition.name} has {', '.join(named)}"
        f"{meant(kind, named, 1) or '.'} Set gpu_type in {FILE}"
    )
