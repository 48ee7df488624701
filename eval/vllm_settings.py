"""How vLLM is set up on a device: the environment, set before vLLM is imported, and the engine.

All that the CPU needs is here. Without a GPU vLLM runs in float32, without compilation, in the calling process (its
usual second process takes minutes to start on a busy machine), and on one OpenMP thread: two threads on busy cores are
many times slower than one.
"""

from __future__ import annotations

from typing import Any

from system import toolchain

DEVICES = ("cpu", "cuda")
# What a process without a GPU imports, for system.fork_server.
PRELOADED = (
    "torch", "transformers", "datasets", "lm_eval.models.vllm_causallms", "vllm.v1.engine.llm_engine",
    "vllm.v1.worker.cpu_worker", "vllm.model_executor.models.qwen2",
)  # fmt: skip

_QUIET = {
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "LMEVAL_LOG_LEVEL": "WARNING",
    "TQDM_DISABLE": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
_CPU = {
    # It warns a dozen times per model, always about settings made below or about the missing GPU.
    "VLLM_LOGGING_LEVEL": "ERROR",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "PYTHONWARNINGS": "ignore::FutureWarning",
    "CUDA_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}


def environment(device: str) -> dict[str, str]:
    """Environment variables for a process that uses vLLM."""
    # Checkpoints are folders: evaluation never needs the hub.
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    return {**_QUIET, **offline, **toolchain.environment(), **(_CPU if device == "cpu" else {})}


def engine(device: str) -> dict[str, Any]:
    """Arguments of vLLM's engine."""
    if device == "cuda":
        return {"dtype": "bfloat16", "use_tqdm_on_load": False}
    # Without a GPU, vLLM 0.31 cannot process a prompt in parts when each request has a seed: it resets its generator
    # after each part, and "CPU Generator does not use offset".
    return {"dtype": "float32", "enforce_eager": True, "enable_chunked_prefill": False, "use_tqdm_on_load": False}
