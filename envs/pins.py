"""The versions that requirements files pin by name: which environments hold a package, and the same with another."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

PIN = re.compile(r"^([\w.-]+)(\[[\w,.-]*\])?==([\w.!+]+)", re.MULTILINE)
CPU_BUILD = "-cpu"  # ends the name of the same code, built for CPUs


class Pin(NamedTuple):
    """A line of a requirements file."""

    environment: str
    file: Path
    name: str
    version: str


def canonical(name: str) -> str:
    """A package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(envs: Path) -> list[Pin]:
    """Every version that a requirements file of the environments pins.

    Args:
        envs: the folder envs/ of a copy of the project.
    """
    return [
        Pin(file.parent.name, file, canonical(match[1]), match[3])
        for file in sorted(envs.glob("*/*.in"))
        for match in PIN.finditer(file.read_text(encoding="utf-8"))
    ]


def pins_of(envs: Path, package: str) -> list[Pin]:
    """Those of a package, or of its build for CPUs."""
    names = {canonical(package), canonical(package) + CPU_BUILD}
    return [pin for pin in pins(envs) if pin.name in names]


def set_version(envs: Path, package: str, version: str, environments: Collection[str]) -> None:
    """Pin another version of a package in the requirements files of some environments.

    A local part such as `+cpu` stays.

    Args:
        envs: the folder envs/ of a copy of the project.
        package: its name.
        version: the new one.
        environments: folders of envs/.
    """
    for pin in pins_of(envs, package):
        if pin.environment in environments:
            local = "" if "+" in version else "".join(pin.version.partition("+")[1:])
            text = pin.file.read_text(encoding="utf-8")
            pin.file.write_text(_with_version(text, pin.name, version + local), encoding="utf-8")


def _with_version(text: str, name: str, version: str) -> str:
    def line(match: re.Match[str]) -> str:
        return f"{match[1]}{match[2] or ''}=={version}" if canonical(match[1]) == name else match[0]

    return PIN.sub(line, text)


def locked_versions(lock: Path) -> dict[str, str]:
    """The packages of a lock and their versions; none where there is no lock."""
    if not lock.is_file():
        return {}
    with lock.open(encoding="utf-8") as lines:
        named = [line.split()[0].split("==") for line in lines]
    return {canonical(re.sub(r"\[.*", "", name)): version for name, version in named}
