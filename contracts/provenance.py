"""The record beside an artefact: what it was made by and from, so that every number can be traced."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from contracts import paths
from system import durable
from system.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
OF_WEIGHTS = ("code", "quantised")  # what a model's record says of whatever is trained or copied from it, too
ALWAYS = {"torch", "transformers", "vllm", "accelerate", "deepspeed", "datasets", "pyarrow"}  # if installed
KIND = ("cpu family", "model", "CPU implementer", "CPU part")  # of a processor, by x86 and by ARM


def sha256(path: Path) -> str:
    """Hash of a file, or of a folder's files and their names, without hidden files and provenance records."""
    digest = hashlib.sha256()
    if path.is_file():
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()
    for member in sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith(".")):
        if not member.name.endswith("provenance.json"):
            digest.update(f"{member.relative_to(path)}\0{sha256(member)}\n".encode())
    return digest.hexdigest()


def _git(*arguments: str) -> str | None:
    try:
        return subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _packages() -> list[str]:
    """The packages whose versions are recorded: those that envs/*/requirements.in pin, and ALWAYS."""
    pinned = (
        re.findall(r"^([\w.-]+)==", file.read_text(), re.MULTILINE) for file in ROOT.glob("envs/*/requirements.in")
    )
    return sorted(ALWAYS.union(*pinned))


def _versions() -> dict[str, str]:
    versions = {}
    for name in _packages():
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _devices() -> list[str]:
    try:
        listing = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, check=True, timeout=20,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return [f"cpu ({platform.machine()})"]
    return listing.strip().splitlines()


def used_gpus(record: Mapping[str, Any], otherwise: int | None = None) -> list[str]:
    """The GPUs that a training used, on all nodes, by name.

    Args:
        record: of its log, with those of its first node.
        otherwise: how many, where an earlier record does not say so; by default all of the node.
    """
    names = [device for device in record.get("devices", []) if not device.startswith("cpu ")]
    used = record.get("gpus", len(names) if otherwise is None else otherwise) if names else 0
    return [names[number % len(names)] for number in range(used)]


def machine() -> str:
    """This machine in words: its processor, the cores that this process may use, and its memory."""
    described = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    cores = len(os.sched_getaffinity(0))
    return f"{cores} core{'s' if cores > 1 else ''} of {processor(described)}, {memory_gb:.0f} GB"


def processor(described: str) -> str:
    """The name of the processor in a text like that of /proc/cpuinfo, and the numbers of its kind.

    A virtual machine may have no more of the name than "AMD EPYC", whose kinds differ in speed by more than twice.
    """
    values = dict(re.findall(r"(?m)^(.+?)\s*: (.+?)\s*$", described))
    numbers = [f"{key.removeprefix('cpu ').removeprefix('CPU ')} {values[key]}" for key in KIND if key in values]
    name = values.get("model name", platform.machine())
    return f"{name} ({', '.join(numbers)})" if numbers else name


def collect() -> dict[str, Any]:
    """The facts that every record has: code, environment, packages, device."""
    stamp = Path(sys.prefix) / ".stamp"
    dirty = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "git_commit": _git("rev-parse", "HEAD"),
        "git_dirty": None if dirty is None else bool(dirty),
        "environment": read_record(stamp) if stamp.is_file() else None,
        "python": platform.python_version(),
        "packages": _versions(),
        "devices": _devices(),
    }


def write(artefact: Path, **facts: Any) -> Path:
    """Write `<artefact>.provenance.json` (inside it, if it is a folder) with the shared facts and the given ones.

    A file's record has its hash, `file_sha256`. Of a folder, `sha256` is the hash if it is among the facts.
    """
    record = paths.record(artefact)
    if artefact.is_file():
        facts["file_sha256"] = sha256(artefact)
    durable.write_text(record, json.dumps({**collect(), **facts}, indent=2, default=str) + "\n")
    return record


def read(artefact: Path) -> dict[str, Any]:
    """The record of an artefact; empty where there is none."""
    record = paths.record(artefact)
    return read_record(record) if record.is_file() else {}


def of_weights(model: Path) -> dict[str, Any]:
    """What the record of a model folder says of its weights that holds for whatever is made from them."""
    return {key: value for key, value in read(model).items() if key in OF_WEIGHTS}


def quantisation(record: Mapping[str, Any]) -> str:
    """How weights came quantised, such as Q4_1, by the record of a model, of samples or of verdicts; empty if not."""
    sampling = record.get("samples")
    return str(record.get("quantised") or (sampling.get("quantised") if isinstance(sampling, dict) else None) or "")


def sampled_weights(record: Mapping[str, Any]) -> str | None:
    """The hash of the model folder that was sampled, by the record of verdicts; None if it is not recorded."""
    sampling = record.get("samples")
    recorded = sampling.get("model_sha256") if isinstance(sampling, dict) else None
    return recorded if isinstance(recorded, str) else None


def check(artefact: Path) -> str | None:
    """The hash of an artefact, if there is one in its record.

    Raises:
        UserError: it was changed or replaced since the record was written.
    """
    recorded = read(artefact).get("file_sha256" if artefact.is_file() else "sha256")
    if recorded is None:
        return None
    status = artefact.stat()
    state = (status.st_ino, status.st_ctime_ns)  # nobody sets the second
    sha256_now = _sha256_of_state(artefact, state) if artefact.is_file() else sha256(artefact)
    if recorded != sha256_now:
        raise UserError(
            f"{artefact} should have sha256 {recorded}, as its record {paths.record(artefact).name} says, but has "
            f"{sha256_now}: it was cut, changed or replaced; make it again or, if you changed it on purpose, delete "
            "that record",
            code="artefact-changed",
            path=str(artefact),
        )
    return sha256_now


@cache
def _sha256_of_state(file: Path, state: tuple[int, int]) -> str:
    """A table is read several times, by columns."""
    return sha256(file)


def read_record(file: Path) -> dict[str, Any]:
    """The content of a record; what earlier releases called by another name has its present name.

    Raises:
        UserError: it is not a JSON object.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{file} should be JSON but is not ({error}); delete its artefact to make it again", code="damaged-record"
        ) from None
    if not isinstance(content, dict):
        raise UserError(
            f"{file} should hold a JSON object; delete its artefact to make it again", code="damaged-record"
        )
    return content
