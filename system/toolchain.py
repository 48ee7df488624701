"""What a process needs to find the compilers and caches of its environment, however it was started.

Jobs call an environment's Python by its path, and a Slurm job may start with an empty PATH. vLLM, DeepSpeed, FlashInfer
and torch compile at run time: they call `ninja` by name, and `nvcc` by CUDA_HOME or by name. Both are in the locks.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path


def environment() -> dict[str, str]:
    """PATH with the programs of this interpreter's environment first, and vLLM's cache in that environment; with CUDA's
    wheels, CUDA_HOME and nvcc, too."""
    cuda = Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13"
    folders, variables = [Path(sys.prefix, "bin")], dict[str, str]()
    if (cuda / "bin" / "nvcc").is_file():
        folders.append(cuda / "bin")
        variables["CUDA_HOME"] = str(cuda)
        # By default vLLM compiles a sampler when an engine starts. It is used for top-p and top-k alone, and not where
        # requests have seeds: no evaluation loses anything without it, and the few runs with top-p some speed.
        variables["VLLM_USE_FLASHINFER_SAMPLER"] = os.environ.get("VLLM_USE_FLASHINFER_SAMPLER", "0")
    # What vLLM keeps of its models' classes has no release in its name: in the home folder, where it is by default, two
    # releases overwrite each other's, and each time another process imports vLLM to make it again.
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        variables["VLLM_CACHE_ROOT"] = os.environ.get("VLLM_CACHE_ROOT") or str(Path(sys.prefix, "cache", "vllm"))
    others = (os.environ.get("PATH") or os.defpath).split(os.pathsep)
    variables["PATH"] = os.pathsep.join(dict.fromkeys([*map(str, folders), *others]))
    return variables
