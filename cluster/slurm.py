"""What a Slurm cluster says of itself, as plain data."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

PATIENCE_SECONDS = 30


@dataclass(frozen=True)
class Partition:
    """A queue; `max_minutes` is None where it has no limit."""

    name: str
    default: bool
    up: bool
    max_minutes: int | None


@dataclass(frozen=True)
class Node:
    """One machine; `gpus` holds the number of each type, under "" where the cluster names none."""

    name: str
    host: str
    partitions: tuple[str, ...]
    cpus: int
    memory_mb: int
    gpus: dict[str, int]
    usable: bool


def run(words: Sequence[str], timeout: float = PATIENCE_SECONDS) -> tuple[int, str, str]:
    """Exit status, output and error output of a command; 127 where there is none, 124 where it does not answer."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=timeout)
    except FileNotFoundError:
        return 127, "", f"{words[0]} is not installed"
    except subprocess.TimeoutExpired:
        return 124, "", f"no answer within {timeout:.0f} s"
    return done.returncode, done.stdout, done.stderr.strip()


def minutes(limit: str) -> int | None:
    """Slurm's time limit (`30`, `2:00:00`, `3-00:00:00`, UNLIMITED) in minutes, rounded down; None without a limit.

    Raises:
        ValueError: it is no time limit.
    """
    if limit in ("UNLIMITED", "INFINITE", "NONE"):
        return None
    days, dash, clock = limit.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    if dash:  # days-hours[:minutes[:seconds]]
        hours, minute, _ = (*parts, 0, 0)[:3]
        return (int(days) * 24 + hours) * 60 + minute
    if len(parts) == 3:
        return parts[0] * 60 + parts[1]
    return parts[0]  # minutes[:seconds]


def fields(line: str) -> dict[str, str]:
    """The `Key=value` words of a line of `scontrol show … --oneliner`; values have no spaces in what is read here."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def read_partitions(output: str) -> list[Partition]:
    """From `scontrol show partition --oneliner`."""
    found = []
    for line in filter(str.strip, output.splitlines()):
        said = fields(line)
        if "PartitionName" in said:
            limit = minutes(said.get("MaxTime", "UNLIMITED"))
            up, default = said.get("State") == "UP", said.get("Default") == "YES"
            found.append(Partition(said["PartitionName"], default, up, limit))
    return found


def read_nodes(output: str) -> list[Node]:
    """From `scontrol show node --oneliner`."""
    found = []
    for line in filter(str.strip, output.splitlines()):
        said = fields(line)
        if "NodeName" not in said:
            continue
        down = any(word in said.get("State", "") for word in ("DOWN", "DRAIN", "FAIL", "INVAL", "FUTURE"))
        found.append(
            Node(
                name=said["NodeName"],
                host=said.get("NodeHostName", said["NodeName"]),
                partitions=tuple(filter(None, said.get("Partitions", "").split(","))),
                cpus=int(said.get("CPUEfctv", said.get("CPUTot", 0))),
                memory_mb=int(said.get("RealMemory", 0)) - int(said.get("MemSpecLimit", 0)),
                gpus=read_gres(said.get("Gres", "")),
                usable=not down,
            )
        )
    return found


def read_gres(text: str) -> dict[str, int]:
    """GPUs by type from a node's Gres, such as `gpu:h100:8(S:0-1),shard:16`."""
    gpus: dict[str, int] = {}
    for part in re.sub(r"\([^)]*\)", "", text).split(","):
        name, *rest = part.split(":")
        if name == "gpu" and rest and rest[-1].isdigit():
            kind = rest[0] if len(rest) > 1 else ""
            gpus[kind] = gpus.get(kind, 0) + int(rest[-1])
    return gpus


def read_configuration(output: str) -> dict[str, str]:
    """From `scontrol show config`."""
    pairs = (line.split("=", 1) for line in output.splitlines() if " = " in line or line.rstrip().endswith("="))
    return {key.strip(): value.strip() for key, value in pairs}
