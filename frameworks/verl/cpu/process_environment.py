"""How verl's processes start where there is no GPU: on the platform of cpu_platform.py, with packages imported once."""

from __future__ import annotations

MODULE = "frameworks.verl.cpu.cpu_platform"  # for VERL_USE_EXTERNAL_MODULES
ENVIRONMENT = {
    "VERL_PLATFORM": "cpu",
    "VERL_ENGINE_DEVICE": "cuda",  # selects the engine classes, which do not depend on it otherwise
    "CUDA_VISIBLE_DEVICES": "0",  # Ray compares it with the GPU that it has in name
}
# What verl, transformers and vLLM import, except Ray and what imports Ray.
PRELOADED = (
    "torch", "torch.distributed.fsdp", "torch._dynamo", "transformers", "transformers.modeling_utils",
    "transformers.models.qwen2.modeling_qwen2", "tensordict", "datasets", "pandas", "hydra", "zmq", "numba", "peft",
    "aiohttp", "fastapi", "uvicorn", "vllm.v1.engine.async_llm", "vllm.v1.worker.cpu_worker",
    "vllm.model_executor.models.qwen2", "vllm.entrypoints.openai.api_server",
)  # fmt: skip
