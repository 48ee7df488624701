"""Resolve the requirements of each environment into pinned locks, for the CPU and for CUDA.

    python envs/lock.py            # all of them
    python envs/lock.py eval       # one

Run it after editing a requirements file and commit the locks. They contain names and versions, no addresses.
"""

from __future__ import annotations

import sys

from build import ENVS, BuildError, cpu_torch_source, run, uv

PLATFORM = "x86_64-manylinux_2_28"  # of common clusters


def lock(name: str, device: str) -> None:
    """Write envs/<name>/<device>.lock from <device>.in, or from requirements.in if both devices use the same.

    An environment with one device's file alone has no other lock.
    """
    folder = ENVS / name
    source = next((file for file in (folder / f"{device}.in", folder / "requirements.in") if file.is_file()), None)
    if source is None:
        return
    command = [uv(), "pip", "compile", "--quiet", "--python-version", "3.11", "--no-header", "--no-annotate"]
    overrides = folder / f"{device}.overrides"
    if overrides.is_file():
        command += ["--override", overrides]
    if (folder / "uv.toml").is_file():  # build requirements of packages that are published only as source
        command += ["--config-file", folder / "uv.toml"]
    command += ["--python-platform", PLATFORM]
    if device == "cuda":
        command += ["--constraint", ENVS / "cuda.constraints"]
    if device == "cpu" and "+cpu" in source.read_text(encoding="utf-8"):
        command += cpu_torch_source()
    output = folder / f"{device}.lock"
    run([*command, source, "-o", output])
    print(f"{output.relative_to(ENVS.parent)}: {len(output.read_text().splitlines())} packages")


def main() -> None:
    """Lock the named environments, or all of them."""
    names = sys.argv[1:] or sorted({file.parent.name for file in ENVS.glob("*/*.in")})
    try:
        for name in names:
            for device in ("cpu", "cuda"):
                lock(name, device)
    except BuildError as error:
        sys.exit(f"envs/lock.py: {error}")


if __name__ == "__main__":
    main()
