"""The partitions, nodes and configuration of a Slurm cluster, read from `scontrol`."""

from __future__ import annotations

import getpass
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Partition:
    """A partition; `max_minutes` is None if it has no time limit, `qos` empty if it has no QOS."""

    name: str
    default: bool
    up: bool
    max_minutes: int | None
    qos: str = ""


@dataclass(frozen=True)
class Node:
    """One machine; `gpus` maps each GPU type ("" if the cluster names no types) to its number."""

    name: str
    host: str
    partitions: tuple[str, ...]
    cpus: int
    memory_mb: int
    gpus: dict[str, int]
    usable: bool


def run(command: Sequence[str], timeout: float = TIMEOUT_SECONDS) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command; status 127 if it is not installed, 124 after a time-out."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    except FileNotFoundError:
        return 127, "", f"{command[0]} is not installed"
    except subprocess.TimeoutExpired:
        return 124, "", f"no answer within {timeout:.0f} s"
    return done.returncode, done.stdout, done.stderr.strip()


def submit_limit(account: str | None, qos: str | None, partitions: Sequence[str]) -> int | None:
    """How many jobs this user may have in the queue at a time, by Slurm's accounting; None if it says nothing.

    The limits are those of the user's association, of the account, and of the QOS of the job and of the partitions.

    Args:
        account: the configured one, None for the default.
        qos: the configured one, None for the default.
        partitions: of the jobs, "" for the default.
    """
    user = getpass.getuser()
    account = account or "".join(_accounts("user", user, "format=defaultaccount")[:1])
    own = [line.split("|") for line in _accounts("assoc", f"user={user}", "format=account,defaultqos,maxsubmitjobs")]
    own = [row for row in own if len(row) == 3 and account.lower() in ("", row[0].lower())]
    shared = [line.split("|") for line in _accounts("assoc", f"account={account}", "format=user,grpsubmitjobs")]
    numbers = [row[2] for row in own] + [row[1] for row in shared if len(row) == 2 and not row[0]]
    listed = read_partitions(run(["scontrol", "show", "partition", "--oneliner"])[1]) if numbers else []
    names = {qos} if qos else {row[1] for row in own}
    names |= {one.qos for one in listed if one.name in partitions or (one.default and "" in partitions)}
    for name in names - {""}:
        limits = _accounts("qos", name, "format=maxsubmitjobsperuser,maxsubmitjobsperaccount,grpsubmitjobs")
        numbers += [number for line in limits for number in line.split("|")]
    return min((int(number) for number in numbers if number.isdigit()), default=None)


def partitions_of(settings: Mapping[str, Any]) -> list[str]:
    """The partitions of jobs by `cluster` of the configuration; empty text for the cluster's default."""
    return [settings["partition"] or "", settings["gpu_partition"] or settings["partition"] or ""]


def _accounts(*query: str) -> list[str]:
    """Lines of what sacctmgr shows; none without accounting."""
    return [line for line in run(["sacctmgr", "-nP", "show", *query])[1].split("\n") if line]


def failure_reason(status: int, error: str) -> str:
    """Why a command failed, from its exit status and its stderr: the last line, if there is one."""
    return error.split("\n")[-1] or f"status {status}"


def limit_minutes(limit: str) -> int | None:
    """Slurm's time limit (`30`, `2:00:00`, `3-00:00:00`, UNLIMITED) in minutes, rounded down; None without a limit.

    Raises:
        ValueError: `limit` is not a time limit.
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


def line_fields(line: str) -> dict[str, str]:
    """The `Key=value` words of a line of `scontrol show … --oneliner`; the values used here contain no spaces."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def read_partitions(output: str) -> list[Partition]:
    """Parse the output of `scontrol show partition --oneliner`."""
    partitions = []
    for line in filter(str.strip, output.split("\n")):
        values = line_fields(line)
        if "PartitionName" in values:
            limit = limit_minutes(values.get("MaxTime", "UNLIMITED"))
            up, default = values.get("State") == "UP", values.get("Default") == "YES"
            qos = values.get("QoS", "").removeprefix("N/A")
            partitions.append(Partition(values["PartitionName"], default, up, limit, qos))
    return partitions


def read_nodes(output: str) -> list[Node]:
    """Parse the output of `scontrol show node --oneliner`."""
    nodes = []
    for line in filter(str.strip, output.split("\n")):
        values = line_fields(line)
        if "NodeName" not in values:
            continue
        down = any(word in values.get("State", "") for word in ("DOWN", "DRAIN", "FAIL", "INVAL", "FUTURE"))
        nodes.append(
            Node(
                name=values["NodeName"],
                host=values.get("NodeHostName", values["NodeName"]),
                partitions=tuple(filter(None, values.get("Partitions", "").split(","))),
                cpus=int(values.get("CPUEfctv", values.get("CPUTot", 0))),
                memory_mb=int(values.get("RealMemory", 0)) - int(values.get("MemSpecLimit", 0)),
                gpus=read_gres(values.get("Gres", "")),
                usable=not down,
            )
        )
    return nodes


def read_gres(text: str) -> dict[str, int]:
    """Number of GPUs by type from a node's Gres, such as `gpu:h100:8(S:0-1),shard:16`."""
    gpus: dict[str, int] = {}
    for part in re.sub(r"\([^)]*\)", "", text).split(","):
        name, *rest = part.split(":")
        if name == "gpu" and rest and rest[-1].isdigit():
            kind = rest[0] if len(rest) > 1 else ""
            gpus[kind] = gpus.get(kind, 0) + int(rest[-1])
    return gpus


def read_configuration(output: str) -> dict[str, str]:
    """Parse the output of `scontrol show config`."""
    pairs = (line.split("=", 1) for line in output.split("\n") if " = " in line or line.rstrip().endswith("="))
    return {key.strip(): value.strip() for key, value in pairs}
