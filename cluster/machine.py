"""What this machine has, as `snakemake doctor` judges it: facts alone."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from envs.build import WITHOUT_KERNELS
from tasks import sandbox

GB = 1e9
ANSWER_SECONDS = 5.0
SHARED_MEMORY = Path("/dev/shm")
# Variables that name the package index of uv, and of pip, which installs uv. Their own files are not read.
INDEX_VARIABLES, DEFAULT_INDEX = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"), "pypi.org"


@dataclass(frozen=True)
class GPU:
    """One GPU, as nvidia-smi describes it."""

    name: str
    memory_gb: float
    capability: float  # such as 9.0


@dataclass(frozen=True)
class Machine:
    """What the checks look at; sizes in GB."""

    architecture: str
    libc: tuple[int, ...]  # version of glibc; empty for another C library
    python: str
    headers: bool  # Python.h, which torch's, DeepSpeed's and Triton's extensions include
    compiler: str  # its first line; empty for none
    cores: int
    memory: float
    disk: float  # free in the project's folder
    shared_memory: float
    open_files: int
    processes: int
    driver: str  # of NVIDIA; empty for none
    gpus: tuple[GPU, ...]
    cuda: str  # of the locks, such as 13.0
    toolkits: dict[str, bool]  # GPU environments that are built: whether nvcc and ninja are in them
    reachable: dict[str, bool]  # by host
    hub_cache: Path
    hub_cache_writable: bool
    hub_disk: float  # free in the hub's cache
    slurm: str  # its version; empty for none
    sandbox: str | None = None  # why programs of a model cannot be run here; None if they can
    cold_sandbox: str | None = None  # why each of them starts its own sandbox; None if sandboxes are kept warm

    @property
    def system(self) -> str:
        """Architecture and C library in words."""
        return f"{self.architecture}, glibc {'.'.join(map(str, self.libc)) or 'not found'}"


def inspect_machine(project: Path) -> Machine:
    """Look at this machine; takes seconds where the network does not answer."""
    driver, gpus = nvidia()
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME", "~/.cache/huggingface")) / "hub")
    existing = next(folder for folder in (cache.expanduser(), *cache.expanduser().parents) if folder.exists())
    index = next((os.environ[name] for name in INDEX_VARIABLES if os.environ.get(name)), f"https://{DEFAULT_INDEX}")
    addresses = [index, os.environ.get("HF_ENDPOINT", "https://huggingface.co")]
    library, version = platform.libc_ver()
    return Machine(
        architecture=platform.machine(),
        libc=tuple(int(part) for part in version.split(".") if part.isdecimal()) if library == "glibc" else (),
        python=platform.python_version(),
        headers=(Path(sysconfig.get_path("include")) / "Python.h").is_file(),
        compiler=_output_of(os.environ.get("CXX", "g++"), "--version").partition("\n")[0],
        cores=len(os.sched_getaffinity(0)),
        memory=psutil.virtual_memory().total / GB,
        disk=shutil.disk_usage(project).free / GB,
        shared_memory=shutil.disk_usage(SHARED_MEMORY).total / GB if SHARED_MEMORY.is_dir() else 0.0,
        open_files=_limit(resource.RLIMIT_NOFILE),
        processes=_limit(resource.RLIMIT_NPROC),
        driver=driver,
        gpus=gpus,
        cuda=_cuda(project),
        toolkits=_toolkits(project),
        reachable={urlsplit(address).hostname or address: _answers(address) for address in addresses},
        hub_cache=cache,
        hub_cache_writable=os.access(existing, os.W_OK),
        hub_disk=shutil.disk_usage(existing).free / GB,
        slurm=_output_of("sbatch", "--version").strip(),
        sandbox=sandbox.why_unavailable(),
        cold_sandbox=sandbox.why_not_warm(),
    )


def read_gpus(listing: str) -> tuple[str, tuple[GPU, ...]]:
    """Driver and GPUs from the lines of nvidia-smi: name, memory in MiB, compute capability, driver."""
    rows = [[cell.strip() for cell in line.split(",")] for line in listing.strip().split("\n") if line.strip()]
    known = [row for row in rows if len(row) == 4 and row[1].isdigit()]
    gpus = tuple(GPU(name, int(size) * 2**20 / GB, float(capability)) for name, size, capability, _ in known)
    return known[0][3] if known else "", gpus


def nvidia() -> tuple[str, tuple[GPU, ...]]:
    """NVIDIA's driver and the GPUs of this machine."""
    options = ("--query-gpu=name,memory.total,compute_cap,driver_version", "--format=csv,noheader,nounits")
    return read_gpus(_output_of("nvidia-smi", *options))


def _output_of(program: str, *arguments: str) -> str:
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _limit(kind: int) -> int:
    soft, _ = resource.getrlimit(kind)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _cuda(project: Path) -> str:
    locks: Sequence[Path] = sorted(project.glob("envs/*/cuda.lock"))
    lines = [line for lock in locks for line in lock.read_text(encoding="utf-8").split("\n")]
    versions = [line.partition("==")[2] for line in lines if line.startswith("nvidia-cuda-runtime==")]
    return max(versions, default="0.0").rpartition(".")[0]


def _toolkits(project: Path) -> dict[str, bool]:
    toolkits = {}
    for stamp in sorted(project.glob(".envs/*-cuda-*/.stamp")):
        env, name = stamp.parent, stamp.parent.name.partition("-")[0]
        if name != "base" and not env.name.endswith(WITHOUT_KERNELS):  # one compiles nothing, no run uses the other
            nvcc = any(env.glob("lib/python3*/site-packages/nvidia/cu*/bin/nvcc"))
            toolkits[name] = nvcc and (env / "bin" / "ninja").exists()
    return toolkits


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=ANSWER_SECONDS):
            return True
    except urllib.error.HTTPError:
        return True  # it answered
    except (OSError, ValueError):
        return False
