"""What runs on this machine, and what to change where something does not: one line per check.

snakemake doctor

Three things can run: the demo (no GPU), one GPU (training and evaluation of small models), and runs at full scale on
this node's GPUs. Exit status 1 means that not even the demo runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cluster import capacity, gpu_memory
from cluster.machine import Machine, inspect_machine
from contracts.run_file import Run
from recipes.runs import load_run
from system.command_line import argument_parser
from system.errors import ROOT, UserError, run_command

DEMO, GPU, FULL = "demo", "one GPU", "full scale"
OK, WARNING, WRONG = "ok", "warning", "wrong"
DRIVERS = {"12": 525, "13": 580}  # the least one for a major version of CUDA: its release notes, table 3
GLIBC = (2, 28)  # envs/lock.py: PLATFORM
DEMO_NEEDS = {"cores": 2, "memory": 12.0, "disk": 10.0}  # README.md
GPU_MEMORY = 16.0  # GB: a small model with vLLM beside it
GPU_DISK, ENVIRONMENT_DISK = (
    40.0,
    10.0,
)  # GB: four environments of 9 to 11 GB, and each of them (docs/how-to/first-gpu.md)
CAPABILITY = 8.0  # bfloat16 and flash-attn
COMPILED_FOR = (8, 9)  # generations for which envs/build.py compiles flash-attn


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, how it is, and what it stops."""

    what: str
    text: str
    state: str = OK
    stops: tuple[str, ...] = ()


def problem(what: str, text: str, *stops: str) -> Finding:
    """Something to change before these goals can be reached."""
    return Finding(what, text, WRONG, stops)


def check_python(machine: Machine) -> list[Finding]:
    """The system, Python, and the compiler that extensions are compiled with when a job starts."""
    findings = [Finding("system", machine.system)]
    if machine.architecture != "x86_64" or machine.libc < GLIBC:
        needed = f"the locks are for x86_64 with glibc {GLIBC[0]}.{GLIBC[1]} or later: use such a machine"
        findings = [problem("system", f"{machine.system}, but {needed}", DEMO, GPU, FULL)]
    if machine.python.startswith("3.11."):
        findings.append(Finding("python", machine.python))
    else:
        text = f"{machine.python}, but the locks are for 3.11: install Python 3.11"
        findings.append(problem("python", text, DEMO, GPU, FULL))
    if not machine.headers:
        text = "Python.h is missing, which DeepSpeed and Triton compile with: install python3.11-dev"
        findings.append(problem("headers", text, GPU, FULL))
    if not machine.compiler:
        text = "no g++: install one (Debian: g++; on a cluster: a gcc module), or name one in CXX"
        return [*findings, problem("compiler", text, GPU, FULL)]
    return [*findings, Finding("compiler", machine.compiler)]


def environments_disk(machine: Machine) -> float:
    """GB that those GPU environments need which are not built yet."""
    return max(0.0, GPU_DISK - ENVIRONMENT_DISK * len(machine.toolkits))


def check_room(machine: Machine) -> list[Finding]:
    """Cores, memory, disk, shared memory and limits."""
    findings = []
    for what, needed in DEMO_NEEDS.items():
        has = getattr(machine, what)
        unit = "" if what == "cores" else " GB"
        if has < needed:
            text = f"{has:.0f}{unit}, the demo needs {needed:.0f}{unit}: free some, or use another machine"
            findings.append(problem(what, text, DEMO, GPU, FULL))
        elif what == "disk" and has < (least := environments_disk(machine)):
            text = f"{has:.0f} GB free, the GPU environments that are not built need {least:.0f}: free some"
            findings.append(problem(what, text, GPU, FULL))
        else:
            findings.append(Finding(what, f"{has:.0f}{unit}{' free' if what == 'disk' else ''}"))
    if machine.shared_memory < 1:
        text = f"{machine.shared_memory:.2f} GB in /dev/shm, NCCL and vLLM need some: docker run --shm-size 16g"
        findings.append(problem("shared memory", text, GPU, FULL))
    else:
        findings.append(Finding("shared memory", f"{machine.shared_memory:.0f} GB in /dev/shm"))
    for what, has, least, option in (
        ("open files", machine.open_files, 4096, "-n"), ("processes", machine.processes, 4096, "-u"),
    ):  # fmt: skip
        if has < least:
            text = f"{has} at most, Ray and vLLM may need {least}: ulimit {option} {least}"
            findings.append(Finding(what, text, WARNING))
        else:
            findings.append(Finding(what, "enough"))
    return findings


def check_gpus(machine: Machine) -> list[Finding]:
    """Driver and GPUs against the locks, and the compilers of the environments that are built."""
    if not machine.gpus:
        text = "none found by nvidia-smi: the demo needs none; elsewhere install NVIDIA's driver, or run on such a node"
        return [Finding("GPUs", text, WARNING, (GPU, FULL))]
    least = DRIVERS.get(machine.cuda.partition(".")[0], 0)
    names = ", ".join(sorted({gpu.name for gpu in machine.gpus}))
    smallest = min(machine.gpus, key=lambda gpu: gpu.memory_gb)
    findings = [Finding("GPUs", f"{len(machine.gpus)}: {names}, {smallest.memory_gb:.0f} GB each")]
    if int(machine.driver.partition(".")[0] or 0) < least:
        text = f"{machine.driver}, but the locks are for CUDA {machine.cuda}: install driver {least} or later"
        findings.append(problem("driver", text, GPU, FULL))
    else:
        findings.append(Finding("driver", f"{machine.driver}, CUDA {machine.cuda} needs {least} or later"))
    if smallest.memory_gb < GPU_MEMORY:
        text = f"{smallest.memory_gb:.0f} GB, at least {GPU_MEMORY:.0f} are needed: use a larger GPU"
        findings.append(problem("GPU memory", text, GPU, FULL))
    capability = min(gpu.capability for gpu in machine.gpus)
    newest = max(gpu.capability for gpu in machine.gpus)
    if capability < CAPABILITY:
        text = f"compute capability {capability}, bfloat16 and flash-attn need {CAPABILITY}: use an A100, H100 or later"
        findings.append(problem("GPU type", text, GPU, FULL))
    elif int(newest) not in COMPILED_FOR:
        text = f"compute capability {newest}: set FLASH_ATTN_CUDA_ARCHS={newest * 10:.0f} before environments are built"
        findings.append(Finding("GPU type", text, WARNING))
    for name, complete in machine.toolkits.items():
        if complete:
            findings.append(Finding(f"{name} on GPUs", "built, with nvcc and ninja"))
        else:
            text = f"has no nvcc or no ninja: delete .envs/{name}-cuda-*, and it is built again"
            findings.append(problem(f"{name} on GPUs", text, GPU, FULL))
    return findings


def check_network(machine: Machine, offline: bool) -> list[Finding]:
    """Package index, hub and the hub's cache.

    Args:
        machine: this one.
        offline: data sets come from a mirror.
    """
    findings = []
    for host, answers in machine.reachable.items():
        if answers:
            findings.append(Finding("network", f"{host} answers"))
        else:
            text = (
                f"{host} does not answer: what is not here can come from data_mirror, model_mirror or the hub's cache"
            )
            findings.append(Finding("network", f"{text}{'; data_mirror is set' if offline else ''}", WARNING))
    if not machine.hub_cache_writable:
        text = f"{machine.hub_cache} cannot be written to: set HF_HOME to a folder that can"
        return [*findings, problem("hub cache", text, GPU, FULL)]
    return [*findings, Finding("hub cache", f"{machine.hub_cache}, {machine.hub_disk:.0f} GB free")]


def check_sandbox(machine: Machine) -> Finding:
    """Whether programs of a model can be run, which only some tasks need."""
    if machine.sandbox:
        return Finding("sandbox", f"{machine.sandbox}; only answers that are programs need it", WARNING)
    if machine.cold_sandbox:
        return Finding(
            "sandbox", f"starts for each program, which takes longer: none kept warm, {machine.cold_sandbox}"
        )
    return Finding("sandbox", "starts, and is kept warm")


def missing_for(run: Run, machine: Machine) -> list[str]:
    """What of this machine is too small for a run at full scale, by the run file and the estimates."""
    hardware, needs = run.hardware, []
    nodes = hardware.get("nodes", 1)
    if nodes > 1:
        needs.append(f"{nodes} nodes (snakemake --profile slurm)")
    if len(machine.gpus) < hardware["gpus"] // nodes:
        needs.append(f"{hardware['gpus'] // nodes} GPUs")
    size = min((gpu.memory_gb for gpu in machine.gpus), default=0.0)
    need = gpu_memory.fullest_stage(run, size) if size else None
    if need and gpu_memory.fit_verdict(need, size).startswith("no"):
        needs.append(f"GPUs of {hardware['gpu_memory_gb']} GB")
    host = need.host if need else hardware["memory_gb"]
    if machine.memory < host:
        needs.append(f"{host:.0f} GB of memory")
    disk = environments_disk(machine) + sum(capacity.disk_gb(run))
    if machine.disk < disk:
        needs.append(f"{disk:.0f} GB of disk")
    return needs


def all_findings(machine: Machine, runs: Sequence[Run], offline: bool = False) -> list[Finding]:
    """Every line but the last ones.

    Args:
        machine: this one.
        runs: at full scale, to be told which of them this machine can train.
        offline: data sets come from a mirror.
    """
    findings = [*check_python(machine), *check_room(machine), *check_gpus(machine), *check_network(machine, offline)]
    findings.append(check_sandbox(machine))
    slurm = f"{machine.slurm}: snakemake preflight --profile slurm checks it" if machine.slurm else "not here"
    findings.append(Finding("Slurm", slurm))
    for run in runs if machine.gpus else ():
        needs = missing_for(run, machine)
        text = f"needs {', '.join(needs)}" if needs else "fits this machine"
        findings.append(Finding(run.name, text, WARNING if needs else OK))
    return findings


def what_runs(findings: Sequence[Finding], runs: Sequence[Run]) -> list[str]:
    """The last lines: whether demo, one GPU and full scale run here."""
    lines = []
    for goal in (DEMO, GPU, FULL):
        stopped = [finding.what for finding in findings if goal in finding.stops]
        if goal == FULL and not stopped:
            names = [run.name for run in runs]
            fits = [finding.what for finding in findings if finding.what in names and finding.state == OK]
            lines.append(f"{goal}: {len(fits)} of {len(names)} runs: {', '.join(fits) or 'see what they need above'}")
        else:
            lines.append(f"{goal}: {'no: ' + ', '.join(stopped) if stopped else 'runs here'}")
    return lines


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--run", nargs="+", default=[], metavar="RUN", help="asked for at full scale")
    parser.add_argument("--mirror", action="store_true", help="data sets come from a mirror")
    arguments = parser.parse_args()
    runs = [load_run(name, "full") for name in arguments.run]
    findings = all_findings(inspect_machine(ROOT), runs, arguments.mirror)
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        print(f"{finding.state:<8}{finding.what:<{width + 2}}{finding.text}")
    print("", *what_runs(findings, runs), sep="\n")
    if stopping := [finding.what for finding in findings if DEMO in finding.stops]:
        sentence = f"not even the demo runs here: see {', '.join(stopping)} above"
        raise UserError(sentence, code="unsuitable-machine", problems=stopping)


if __name__ == "__main__":
    run_command(main)
