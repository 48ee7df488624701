"""What of a GPU environment can be tried without a GPU: run by that environment's own Python, as a job starts it.

    make rehearse                                                      # every environment for GPUs, in turn
    env -i PATH=/usr/bin:/bin .envs/trl-cuda-…/bin/python -m frameworks.rehearsal --framework trl

It compiles a kernel with the locked nvcc, imports what the commands of full scale import, and has the installed
release's parser read them. One line per check; exit status 1 if one is wrong. It cannot tell what a kernel computes.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from contracts import toolchain
from contracts.errors import UserError, run_command
from frameworks import adapter
from recipes.runs import load_run, run_names

ARCHITECTURES = ("80", "90")  # A100, H100
KERNEL = """
#include <cuda_runtime.h>
#include <cub/cub.cuh>
__global__ void sum(float* x) {
  typedef cub::BlockReduce<float, 128> Reduce;
  __shared__ Reduce::TempStorage storage;
  float total = Reduce(storage).Sum(x[threadIdx.x]);
  if (!threadIdx.x) x[0] = total;
}
int main() { sum<<<1, 128>>>(nullptr); return cudaDeviceSynchronize(); }
"""
Line = tuple[bool, str, str]  # whether it is well, what, and how it is


def compilers(environment: dict[str, str]) -> Iterator[Line]:
    """Whether a job finds ninja, nvcc and g++, and nvcc's CUDA is that of the headers."""
    for program in ("ninja", "nvcc", "g++"):
        found = shutil.which(program, path=environment["PATH"])
        yield bool(found), program, found or "not on the PATH of a job"
    home = Path(environment.get("CUDA_HOME", ""))
    if not environment.get("CUDA_HOME"):
        yield False, "CUDA_HOME", "not set: the environment has no nvcc"
        return
    words = [str(home / "bin" / "nvcc"), "--version"]
    said = re.search(r"release (\d+)\.(\d+)", subprocess.run(words, capture_output=True, text=True, check=False).stdout)
    header = home / "include" / "cuda_runtime_api.h"
    named = (
        re.search(r"define CUDART_VERSION\s+(\d+)", header.read_text(errors="replace")) if header.is_file() else None
    )
    nvcc = f"{said[1]}.{said[2]}" if said else "unknown"
    headers = f"{int(named[1]) // 1000}.{int(named[1]) % 1000 // 10}" if named else "missing"
    yield nvcc == headers, "CUDA", f"nvcc {nvcc}, headers {headers}"


def compiled(environment: dict[str, str], architecture: str) -> Line:
    """Compile and link a kernel that uses CUB, for one architecture."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "kernel.cu", Path(folder) / "kernel"
        source.write_text(KERNEL)
        words = ["nvcc", f"-gencode=arch=compute_{architecture},code=sm_{architecture}", "--cudart=shared"]
        words += ["-L", f"{environment.get('CUDA_HOME', '')}/lib64", "-o", str(program), str(source)]
        started = time.monotonic()
        try:
            done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return False, f"kernel for sm_{architecture}", "no nvcc"
    errors = [line for line in done.stderr.split("\n") if "error" in line]
    text = f"compiled and linked in {time.monotonic() - started:.0f} s" if not done.returncode else errors[:1]
    return not done.returncode, f"kernel for sm_{architecture}", text if isinstance(text, str) else "".join(text)


def imported(module: str) -> Line:
    """Import a module that a command at full scale starts with."""
    started = time.monotonic()
    try:
        importlib.import_module(module)
    except BaseException as error:  # some packages exit where there is no GPU
        return False, module, f"{type(error).__name__}: {error}".split("\n")[0][:200]
    return True, module, f"imported in {time.monotonic() - started:.0f} s"


def read_commands(framework: str) -> Iterator[Line]:
    """The release's parser on every run at full scale."""
    for name in run_names():
        run = load_run(name, "full")
        if run.framework == framework:
            try:
                adapter.load(framework).check(run)
            except UserError as error:
                yield False, name, str(error)
            else:
                yield True, name, "accepted"


def rehearse(framework: str, modules: list[str]) -> Iterator[Line]:
    """Every check, in the order of the quickest.

    Args:
        framework: whose environment this is; empty for none.
        modules: to import besides those that the framework's commands start with.
    """
    environment = toolchain.environment()
    os.environ |= environment
    yield from compilers(environment)
    for architecture in ARCHITECTURES:
        yield compiled(environment, architecture)
    for module in [*(adapter.load(framework).entry_modules if framework else ()), *modules]:
        yield imported(module)
    if framework:
        yield from read_commands(framework)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m frameworks.rehearsal", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--framework", default="", help="whose environment this is")
    parser.add_argument("--import", nargs="*", default=[], dest="modules", metavar="MODULE", help="to import as well")
    arguments = parser.parse_args()
    wrong = 0
    for well, what, text in rehearse(arguments.framework, arguments.modules):
        print(f"{'ok' if well else 'wrong':<8}{what:<40}{text}", flush=True)
        wrong += not well
    if wrong:
        raise UserError(f"{wrong} checks of {sys.prefix} are wrong, see above: its runs would stop at full scale")


if __name__ == "__main__":
    run_command(main)
