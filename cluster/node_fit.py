"""Whether jobs fit the nodes of a partition."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from cluster.resources import ATTEMPTS, Need, resources_of
from cluster.slurm import Node, Partition

FILE = "profiles/slurm/cluster.yaml"


def nearest(word: str, names: Sequence[str]) -> str:
    """A question after the name that was meant, if one is near."""
    close = difflib.get_close_matches(word, names, 1)
    return f"; did you mean {close[0]}?" if close else ""


def misfits(need: Need, settings: Mapping[str, Any], partition: Partition, nodes: Sequence[Node]) -> list[str]:
    """What a job asks for and the partition cannot give, in sentences that follow the job's name."""
    asked, said = resources_of(need, settings), []
    minutes = int(asked["runtime"] or 0)
    if partition.max_minutes is not None and minutes > partition.max_minutes:
        said.append(too_long("asks", minutes, partition, need))
    inside = [node for node in nodes if partition.name in node.partitions]
    if not inside:
        return [*said, f"goes to partition {partition.name}, which has no nodes"]
    if need.gpus and (wrong := wrong_type(settings["gpu_type"], partition, inside)):
        return [*said, wrong]
    gpus, cpus, memory = need.gpus // need.nodes, int(asked["cpus_per_task"] or 1), int(asked["mem_mb"] or 0)
    most_gpus = max(gpus_of(node, settings["gpu_type"]) for node in inside)
    fitting = [node for node in inside if gpus_of(node, settings["gpu_type"]) >= gpus]
    if not fitting:
        said.append(
            f"asks for {gpus} GPUs of one node, but partition {partition.name} has at most {most_gpus}: set "
            f"full.hardware.nodes: {-(-need.gpus // max(most_gpus, 1))} in its run file"
        )
        return said
    if cpus > (most := max(node.cpus for node in fitting)):
        said.append(
            f"asks for {cpus} CPUs of one node, but partition {partition.name} has at most {most}: set "
            f"max_cpus: {most} in {FILE}"
        )
    if memory > (most := max(node.memory_mb for node in fitting)):
        said.append(too_much_memory("asks", memory, most, partition))
    if not said and len(fitting) < need.nodes:
        said.append(f"asks for {need.nodes} nodes, but partition {partition.name} has {len(fitting)} that fit")
    if not said and not any(node.usable for node in fitting):
        said.append(f"waits for nodes of partition {partition.name} that are all down or drained (sinfo says so)")
    return said or grown(need, settings, partition, most)


def too_long(asks: str, minutes: int, partition: Partition, need: Need) -> str:
    """What is wrong with a time limit, and what to set."""
    allowed = partition.max_minutes or 0
    # One decimal down: the limit itself, rounded up, would be refused again.
    key, limit = "gpu_max_hours" if need.gpus else "max_hours", int(allowed / 6) / 10
    goes_on = "; a training goes on from its checkpoint" if need.gpus else ""
    return (
        f"{asks} for {minutes / 60:g} h, but partition {partition.name} allows {allowed / 60:.4g} h: set "
        f"{key}: {limit:g} in {FILE}{goes_on}"
    )


def too_much_memory(asks: str, memory_mb: int, most_mb: int, partition: Partition) -> str:
    """What is wrong with the memory, and what to set."""
    return (
        f"{asks} for {memory_mb / 1000:g} GB of one node, but partition {partition.name} has at most "
        f"{most_mb / 1000:g} GB: set max_memory_gb: {most_mb // 1000} in {FILE}"
    )


def grown(need: Need, settings: Mapping[str, Any], partition: Partition, most_mb: int) -> list[str]:
    """What is wrong with the last attempt of a job that fits at first: it would be refused, and the run be lost."""
    asked, said = resources_of(need, settings, ATTEMPTS), []
    minutes, memory = int(asked["runtime"] or 0), int(asked["mem_mb"] or 0)
    if partition.max_minutes is not None and minutes > partition.max_minutes:
        said.append(too_long(f"asks, at its {ATTEMPTS}th attempt,", minutes, partition, need))
    if memory > most_mb:
        said.append(too_much_memory(f"asks, at its {ATTEMPTS}th attempt,", memory, most_mb, partition))
    return said


def gpus_of(node: Node, kind: str | None) -> int:
    """GPUs of a type, or of any."""
    return sum(number for name, number in node.gpus.items() if kind is None or name == kind)


def wrong_type(kind: str | None, partition: Partition, nodes: Sequence[Node]) -> str:
    """What is wrong with the GPU type, if anything."""
    there = sorted({name for node in nodes for name in node.gpus})
    if not there:
        return f"needs GPUs, but no node of partition {partition.name} has any: set gpu_partition in {FILE}"
    if kind is None or kind in there:
        return ""
    if there == [""]:
        return f"asks for GPUs of type {kind}, but this cluster names no types: set gpu_type: null in {FILE}"
    named = [name for name in there if name]
    return (
        f"asks for GPUs of type {kind}, but partition {partition.name} has {', '.join(named)}"
        f"{nearest(kind, named) or '.'} Set gpu_type in {FILE}"
    )
