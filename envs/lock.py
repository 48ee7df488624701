"""Resolve the requirements of each environment into pinned locks, for the CPU and for CUDA.

    python envs/lock.py            # all of them
    python envs/lock.py eval       # one
    python envs/lock.py --hashes   # the same versions, and the hashes of their files as the package index has them now

Run it after editing a requirements file and commit the locks. They contain names, versions and hashes, no addresses.
"""

from __future__ import annotations

import re
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from build import ENVS, BuildError, cpu_torch_source, run, uv

PLATFORM = "x86_64-manylinux_2_28"  # of common clusters
NEWER = "x86_64-manylinux_2_40"  # some wheels want a newer C library; where there is one, they are installed
OTHERS = ("aarch64-manylinux_2_28", "aarch64-apple-darwin", "x86_64-apple-darwin")  # where tables and reports are made
TOOLS = ("uv", "pip", "audit", "models")  # envs/<name>.lock, for machines of any kind; models: wheels with weights
COMPILE = ("pip", "compile", "--quiet", "--python-version", "3.11", "--no-header", "--no-annotate")


def lock(name: str, device: str, resolve: bool = True) -> None:
    """Write envs/<name>/<device>.lock from <device>.in, or from requirements.in if both devices use the same.

    An environment with one device's file alone has no other lock.

    Args:
        name: of the environment.
        device: cpu or cuda.
        resolve: whether to choose versions; otherwise those of the lock stay.
    """
    folder = ENVS / name
    source = next((file for file in (folder / f"{device}.in", folder / "requirements.in") if file.is_file()), None)
    if source is None:
        return
    command: list[str | Path] = [uv(), *COMPILE]
    if (folder / "uv.toml").is_file():  # build requirements of packages that are published only as source
        command += ["--config-file", folder / "uv.toml"]
    if device == "cpu" and "+cpu" in source.read_text(encoding="utf-8"):
        command += cpu_torch_source()
    output = folder / f"{device}.lock"
    if resolve:
        overrides = ["--override", folder / f"{device}.overrides"] if (folder / f"{device}.overrides").is_file() else []
        constraints = ["--constraint", ENVS / "cuda.constraints"] if device == "cuda" else []
        run([*command, "--python-platform", PLATFORM, *overrides, *constraints, source, "-o", output])
    add_hashes(output, command, (PLATFORM, NEWER, *OTHERS) if name == "base" else (PLATFORM, NEWER))
    print(f"{output.relative_to(ENVS.parent)}: {len(output.read_text().splitlines())} packages")


def lock_tool(name: str, resolve: bool) -> None:
    """Write envs/<name>.lock, from envs/<name>.in where there is one; otherwise its versions are edited by hand."""
    output, source = ENVS / f"{name}.lock", ENVS / f"{name}.in"
    if resolve and source.is_file():
        run([uv(), *COMPILE, source, "-o", output])
    add_hashes(output, [uv(), *COMPILE], (PLATFORM, NEWER, *OTHERS))


def add_hashes(output: Path, command: Sequence[str | Path], platforms: Sequence[str]) -> None:
    """Write behind each version of a lock the hashes of its files that fit the platforms, and of its source.

    Args:
        output: the lock; what it has of hashes is replaced.
        command: of uv, with where packages come from.
        platforms: as uv names them.
    """
    versions = [line.split()[0] for line in output.read_text(encoding="utf-8").splitlines()]
    hashes: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        pinned, listed = Path(folder, "pinned.in"), Path(folder, "pylock.toml")
        pinned.write_text("\n".join(versions) + "\n", encoding="utf-8")
        for platform in platforms:
            run([*command, "--python-platform", platform, pinned, "--no-deps", "--format", "pylock.toml", "-o", listed])
            for package in tomllib.loads(listed.read_text(encoding="utf-8"))["packages"]:  # PEP 751
                files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else [])]
                hashes.setdefault(package["name"], set()).update(file["hashes"]["sha256"] for file in files)
    lines = []
    for version in versions:
        name = re.sub(r"[-_.]+", "-", re.split(r"[=\[]", version)[0]).lower()  # PEP 503
        lines.append(" ".join([version, *(f"--hash=sha256:{value}" for value in sorted(hashes[name]))]) + "\n")
    output.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Lock the named environments, or all of them."""
    resolve, chosen = "--hashes" not in sys.argv, [name for name in sys.argv[1:] if name != "--hashes"]
    names = chosen or [*TOOLS, *sorted({file.parent.name for file in ENVS.glob("*/*.in")})]
    try:
        for name in names:
            if name in TOOLS:
                lock_tool(name, resolve)
                continue
            for device in ("cpu", "cuda"):
                lock(name, device, resolve)
    except BuildError as error:
        sys.exit(f"envs/lock.py: {error}")


if __name__ == "__main__":
    main()
