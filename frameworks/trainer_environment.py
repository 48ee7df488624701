"""What the training processes of all frameworks share: GPUs, environment variables, Ray."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

from contracts.run_file import ROOT, Run, Stage
from frameworks import loopback, ray_patience
from frameworks.run_settings import devices
from recipes import model_tokens, rewards
from system import gpu_locks, private_folder, toolchain

LONGEST_SCRATCH = 40  # characters: below it are sockets, whose paths may have 107 bytes
CPUS_IN_NAME = 16  # without a GPU: what a framework's processes request from Ray, not what they use

# On the CPU one process of each kind trains, with one thread.
ONE_CPU = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",  # Snakemake sets it to the job's cores, and its threads would wait for each other
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "TORCH_COMPILE_DISABLE": "1",  # vLLM has a function compiled in every process, which takes ten seconds each
}


def take_gpus(run: Run) -> list[str]:
    """The GPUs of this node that a run takes, as CUDA_VISIBLE_DEVICES names them; see system.gpu_locks.take."""
    return gpu_locks.take(run.hardware["gpus"] // run.hardware.get("nodes", 1), run.name)


def variables(run: Run, stage: Stage, model: Path, scratch: Path) -> dict[str, str]:
    """Environment variables of every training: its rewards, the environment's compilers, and nothing fetched from,
    reported or open to the network.

    Args:
        run: on one node it listens on the loopback address alone.
        stage: states how long completions may be.
        model: folder that training starts from.
        scratch: folder of its temporary files and sockets.
    """
    one_node = run.hardware.get("nodes", 1) == 1
    return {
        **rewards.environment(run.rewards, rewards.extraction_of(run)),
        **model_tokens.environment(model, stage.rollout["max_response_tokens"]),
        **toolchain.environment(),
        **(loopback.environment(private_folder.make(scratch / "tmp")) if one_node else {}),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
    }


def ray_variables(run: Run, *folders: Path) -> dict[str, str]:
    """Environment variables of a training over Ray, whose processes import from the project and these folders.

    Args:
        run: on one node the trainer starts Ray, with this token; on several, ray_cluster.py does, with its own.
        folders: searched first.
    """
    one_node = run.hardware.get("nodes", 1) == 1
    return {
        # Ray's processes do not start where the trainer does
        "PYTHONPATH": loopback.python_path(*folders, *([loopback.STARTUP] if one_node else []), ROOT),
        **(loopback.ray_token() if one_node else {}),
        **ray_patience.VARIABLES,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_COLOR_PREFIX": "0",
        "RAY_DEDUP_LOGS": "0",
        "RAY_worker_niceness": "0",  # Ray's default, 15, gives way to every other process
    }


def with_ray_cluster(run: Run, scratch: Path, command: list[str]) -> list[str]:
    """A trainer's command, wrapped where Ray has to run on several nodes; on one node the trainer starts Ray itself.

    Args:
        run: states nodes, GPUs and CPUs.
        scratch: Ray's folder.
        command: the command.
    """
    count = run.hardware.get("nodes", 1)
    if count == 1:
        return command
    cpus = run.hardware["cpus"] if run.hardware["gpus"] else CPUS_IN_NAME
    of_node = ["--gpus", str(devices(run) // count), "--cpus", str(cpus)]
    launch = [sys.executable, "-m", "frameworks.ray_cluster", "--nodes", str(count), *of_node]
    return [*launch, "--scratch", str(scratch / "ray"), *command]


def empty_scratch(work: Path) -> Path:
    """The folder of a training's sockets and temporary files, one for each work folder, emptied; only the user's."""
    digest = hashlib.sha256(str(work.absolute()).encode()).hexdigest()[:10]
    own = private_folder.of_user(on_disk=True, longest=LONGEST_SCRATCH - len(digest) - 1)
    shutil.rmtree(own / digest, ignore_errors=True)
    return private_folder.make(own / digest)
