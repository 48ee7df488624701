"""What of a GPU environment can be tried without a GPU: run by that environment's own Python, as a job starts it.

    make rehearse                                                      # every environment for GPUs, in turn
    env -i PATH=/usr/bin:/bin .envs/trl-cuda-…/bin/python -m cluster.rehearsal --framework trl

It compiles a kernel with the locked nvcc, imports what the commands of full scale import, has the installed release's
parser read them, loads each attention implementation, compares the estimated memory with the run file's GPUs and nodes,
and compiles what is otherwise compiled at run time: DeepSpeed's optimisers, and with --evaluation FlashInfer's sampler.
With --evaluation it has vLLM's own parser read the engine's arguments, too. One line per check; exit status 1 if one is
wrong. It cannot tell what a kernel computes.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from cluster import gpu_memory
from cluster.gpu_smoke import table
from contracts.run_file import Run
from envs import build
from eval import vllm_settings
from frameworks import adapter
from recipes.runs import load_run, run_names, smoke_run_names
from system import toolchain
from system.command_line import argument_parser
from system.errors import UserError, run_command

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
# What eval.generate passes on besides: its options, with values that differ from vLLM's defaults.
EVALUATION_OPTIONS = {"max_model_len": 4096, "max_num_seqs": 64, "tensor_parallel_size": 2}
HOST_SHARE = 0.75  # of a node's memory for weights; the rest is Ray's object store, vLLM's buffers, the system's
# Compiled when a training or an engine first starts; this compiles them without a GPU. DeepSpeed would then compile the
# CPU's sources under the same name, so this code and DS_ACCELERATOR say that there is a GPU.
DEEPSPEED = "import torch; torch.cuda.is_available = lambda: True; from deepspeed.ops import op_builder as ops; "
OPS = {
    "FusedAdam": f"{DEEPSPEED} ops.FusedAdamBuilder().jit_load(verbose=False)",
    "CPUAdam": f"{DEEPSPEED} ops.CPUAdamBuilder().jit_load(verbose=False)",
    "sampler": "from flashinfer.jit.sampling import gen_sampling_module as op; op().build(verbose=False)",
}
HOST_OPS = ("CPUAdam",)  # without a kernel
KERNELS = ("flash_attn_2_cuda",)  # that `envs/build.py --without-kernels` does not compile
Line = tuple[bool | None, str, str]  # whether it is well (None: left out), what, and how it is


def check_compilers(environment: dict[str, str]) -> Iterator[Line]:
    """Whether a job finds ninja, nvcc and g++, and nvcc's CUDA is that of the headers."""
    for program in ("ninja", "nvcc", "g++"):
        path = shutil.which(program, path=environment["PATH"])
        yield bool(path), program, path or "not on the PATH of a job"
    home = Path(environment.get("CUDA_HOME", ""))
    if not environment.get("CUDA_HOME"):
        yield False, "CUDA_HOME", "not set: the environment has no nvcc"
        return
    command = [str(home / "bin" / "nvcc"), "--version"]
    said = re.search(
        r"release (\d+)\.(\d+)", subprocess.run(command, capture_output=True, text=True, check=False).stdout
    )
    header = home / "include" / "cuda_runtime_api.h"
    named = (
        re.search(r"define CUDART_VERSION\s+(\d+)", header.read_text(errors="replace")) if header.is_file() else None
    )
    nvcc = f"{said[1]}.{said[2]}" if said else "unknown"
    headers = f"{int(named[1]) // 1000}.{int(named[1]) % 1000 // 10}" if named else "missing"
    yield nvcc == headers, "CUDA", f"nvcc {nvcc}, headers {headers}"


def compile_kernel(environment: dict[str, str], architecture: str) -> Line:
    """Compile and link a kernel that uses CUB, for one architecture."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "kernel.cu", Path(folder) / "kernel"
        source.write_text(KERNEL)
        command = ["nvcc", f"-gencode=arch=compute_{architecture},code=sm_{architecture}", "--cudart=shared"]
        command += ["-L", f"{environment.get('CUDA_HOME', '')}/lib64", "-o", str(program), str(source)]
        started = time.monotonic()
        try:
            done = subprocess.run(
                command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            return False, f"kernel for sm_{architecture}", "no nvcc"
    errors = [line for line in done.stderr.split("\n") if "error" in line]
    text = f"compiled and linked in {time.monotonic() - started:.0f} s" if not done.returncode else errors[:1]
    return not done.returncode, f"kernel for sm_{architecture}", text if isinstance(text, str) else "".join(text)


def compile_op(name: str) -> Line:
    """Compile one of OPS, its kernels for each architecture, into an empty folder, in a process of its own."""
    dotted = [f"{architecture[:-1]}.{architecture[-1]}" for architecture in ARCHITECTURES]
    with tempfile.TemporaryDirectory() as folder:
        # It is linked against the driver's library, which only a machine with a GPU has.
        subprocess.run(["g++", "-shared", "-o", f"{folder}/libcuda.so", "-x", "c", os.devnull], check=True)
        settings = {
            "TORCH_CUDA_ARCH_LIST": ";".join(dotted),
            "FLASHINFER_CUDA_ARCH_LIST": " ".join(dotted).replace("9.0", "9.0a"),  # FlashInfer's name of Hopper
            "TORCH_EXTENSIONS_DIR": folder,
            "FLASHINFER_WORKSPACE_BASE": folder,
            "LIBRARY_PATH": folder,
            "DS_ACCELERATOR": "cuda",
        }
        started, command = time.monotonic(), [sys.executable, "-c", OPS[name]]
        done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
        took = time.monotonic() - started
        ninja = "".join(file.read_text() for file in Path(folder).rglob("build.ninja"))
    if done.returncode:
        return False, f"compile {name}", table.first_error(done.stdout, done.stderr)
    if name in HOST_OPS:
        return True, f"compile {name}", f"for the host in {took:.0f} s"
    targets = [f"sm_{architecture}" for architecture in ARCHITECTURES]
    missing = [target for target in targets if f"code={target}" not in ninja]
    text = f"not compiled for {', '.join(missing)}" if missing else f"for {', '.join(targets)} in {took:.0f} s"
    return not missing, f"compile {name}", text


def stub_missing_kernels() -> Iterator[Line]:
    """Put empty modules in the place of kernels that this environment was built without, so that the rest is seen."""
    for name in KERNELS if sys.prefix.endswith(build.WITHOUT_KERNELS) else ():
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = ModuleType(name)
            yield None, name, "not compiled in this environment (--without-kernels)"


def check_import(module: str) -> Line:
    """Import a module that a command at full scale starts with."""
    started = time.monotonic()
    try:
        importlib.import_module(module)
    except BaseException as error:  # some packages exit where there is no GPU
        return False, module, f"{type(error).__name__}: {error}".split("\n")[0][:200]
    return True, module, f"imported in {time.monotonic() - started:.0f} s"


def runs_of(framework: str) -> list[Run]:
    """Its runs at full scale, and those of `make gpu-smoke`."""
    runs = [load_run(name, "full") for name in (*run_names(), *smoke_run_names())]
    return [run for run in runs if run.framework == framework]


def check_commands(framework: str) -> Iterator[Line]:
    """Have the installed release's parser read the commands of each run at full scale."""
    for run in runs_of(framework):
        try:
            adapter.load(framework).check(run)
        except UserError as error:
            yield False, run.name, str(error)
        else:
            yield True, run.name, "accepted"


def check_attention(implementation: str) -> Line:
    """Whether transformers has an attention implementation, and the package behind it can be imported."""
    try:
        if implementation.startswith("flash_attention"):  # what transformers takes of it; it asks for a GPU first
            package = importlib.import_module("flash_attn")
            missing = [name for name in ("flash_attn_func", "flash_attn_varlen_func") if not hasattr(package, name)]
        else:
            from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

            missing = [] if implementation in ("eager", *ALL_ATTENTION_FUNCTIONS.valid_keys()) else [implementation]
    except Exception as error:
        return False, f"attention {implementation}", f"{type(error).__name__}: {error}".split("\n")[0][:200]
    return not missing, f"attention {implementation}", f"has no {', '.join(missing)}" if missing else "resolves"


def check_attentions(framework: str) -> Iterator[Line]:
    """Each attention implementation that a framework's runs load models with."""
    implementations = adapter.load(framework).attention_implementations
    named = {name for run in runs_of(framework) for stage in run.stages for name in implementations(run, stage)}
    yield from (check_attention(name) for name in sorted(named))


def check_memory(run: Run) -> Line:
    """Whether a run fits its GPUs and nodes with room to spare, by the formula of `snakemake capacity`."""
    size, host = run.hardware["gpu_memory_gb"], run.hardware["memory_gb"]
    need = gpu_memory.fullest_stage(run, size)
    if need is None:
        return False, f"memory {run.name}", f"cluster/models.yaml has no shape of {run.model}"
    text = f"{need.peak:.0f} of {size} GB a GPU, {need.host:.0f} of {host} GB a node"
    return gpu_memory.fit_verdict(need, size, HOST_SHARE * host) == "yes", f"memory {run.name}", text


def check_engine_arguments(arguments: dict[str, object]) -> Iterator[Line]:
    """Whether vLLM's own parser knows each argument of the evaluation's engine and takes its value."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.platforms import current_platform

    # Without a GPU vLLM for CUDA knows no device, and its parser ends before it reads anything.
    current_platform.device_type = current_platform.device_type or "cuda"

    def refuse(message: str) -> None:
        raise ValueError(message)

    parser = EngineArgs.add_cli_args(argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False))
    parser.error = refuse
    for name, value in arguments.items():
        flag = f"--{name.replace('_', '-')}"
        command_line = (
            [flag] if value is True else [flag.replace("--", "--no-", 1)] if value is False else [flag, str(value)]
        )
        try:
            taken = getattr(parser.parse_args(command_line), name)
        except (ValueError, argparse.ArgumentError, AttributeError) as error:
            yield False, f"vLLM {name}", str(error).split("\n")[0][:200]
        else:
            yield taken == value, f"vLLM {name}", f"{value}"


def all_checks(framework: str, modules: list[str], evaluation: bool = False) -> Iterator[Line]:
    """Every check, in the order of the quickest.

    Args:
        framework: whose environment this is; empty for none.
        modules: to import besides those that the framework's commands start with.
        evaluation: this environment's vLLM evaluates.
    """
    environment = toolchain.environment()
    os.environ |= environment
    yield from check_compilers(environment)
    yield from stub_missing_kernels()
    for architecture in ARCHITECTURES:
        yield compile_kernel(environment, architecture)
    for module in [*(adapter.load(framework).entry_modules if framework else ()), *modules]:
        yield check_import(module)
    if evaluation:
        yield from check_engine_arguments({**vllm_settings.engine("cuda"), **EVALUATION_OPTIONS})
    if framework:
        yield from check_commands(framework)
        yield from check_attentions(framework)
        yield from (check_memory(run) for run in runs_of(framework))
    yield from map(
        compile_op, (*(adapter.load(framework).compiled_ops if framework else ()), *["sampler"][:evaluation])
    )


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--framework", default="", help="whose environment this is")
    parser.add_argument("--import", nargs="*", default=[], dest="modules", metavar="MODULE", help="to import as well")
    parser.add_argument("--evaluation", action="store_true", help="have vLLM read the evaluation's engine arguments")
    arguments = parser.parse_args()
    wrong = 0
    for well, what, text in all_checks(arguments.framework, arguments.modules, arguments.evaluation):
        print(f"{'left out' if well is None else 'ok' if well else 'wrong':<10}{what:<52}{text}", flush=True)
        wrong += well is False
    if wrong:
        sentence = f"{wrong} checks of {sys.prefix} are wrong, see above: its runs would stop at full scale"
        raise UserError(sentence, code="rehearsal-failed", wrong=wrong)


if __name__ == "__main__":
    run_command(main)
