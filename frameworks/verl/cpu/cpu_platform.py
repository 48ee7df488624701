"""A CPU platform for verl 0.9.1, through its own hooks, and replacements for functions that assume a GPU or chance.

VERL_USE_EXTERNAL_MODULES loads it in each of verl's processes, and VERL_PLATFORM=cpu selects it; neither is set where
there is a GPU. A function is replaced when its module is imported, so that small processes need not import all of them;
a missing function is an error.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry

from frameworks import import_hooks
from frameworks.verl.cpu import repeatable_requests

RELEASE = "0.9.1"

if importlib.metadata.version("verl") != RELEASE:
    raise RuntimeError(
        f"frameworks/verl/cpu/cpu_platform.py is made for verl {RELEASE}, but {importlib.metadata.version('verl')} "
        "is installed: compare what it replaces with that release, test it, and set RELEASE"
    )


class CpuDevice:
    """What verl calls on torch.cuda, without a GPU: memory and streams do nothing, the rest is torch.cpu's."""

    def __getattr__(self, name: str) -> Any:
        """Everything that is not defined below."""
        return getattr(torch.cpu, name)

    def is_available(self) -> bool:
        """No accelerator."""
        return False

    def current_device(self) -> int:
        """The only one."""
        return 0

    def device_count(self) -> int:
        """One."""
        return 1

    def nothing(self, *_: Any) -> None:
        """For calls that manage a GPU's memory and queues."""

    set_device = synchronize = empty_cache = ipc_collect = reset_peak_memory_stats = nothing

    def no_bytes(self, *_: Any) -> int:
        """For questions about a GPU's memory."""
        return 0

    memory_allocated = memory_reserved = max_memory_allocated = max_memory_reserved = no_bytes

    def mem_get_info(self, *_: Any) -> tuple[int, int]:
        """Free and total bytes."""
        return (0, 1)

    def manual_seed(self, seed: int) -> None:
        """Seed torch."""
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def set_rng_state(self, state: torch.Tensor) -> None:
        """Restore torch's random state from a checkpoint."""
        torch.set_rng_state(state)

    def get_device_name(self, *_: Any) -> str:
        """For logs."""
        return "CPU"


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):
    """The platform interface of verl for a machine without a GPU."""

    device_name = "cpu"
    vendor_name = "generic"
    device_module = CpuDevice()

    def is_available(self) -> bool:  # noqa: D102
        return True

    def current_device(self) -> torch.device:  # noqa: D102  # verl hands it to .to(…)
        return torch.device("cpu")

    def device_count(self) -> int:  # noqa: D102
        return 1

    def nothing(self, *_: Any) -> None:  # noqa: D102
        pass

    set_device = synchronize = set_allocator_settings = empty_cache = profiler_start = profiler_stop = cudart = nothing

    def manual_seed(self, seed: int) -> None:  # noqa: D102
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_device_capability(self, *_: Any) -> tuple[None, None]:  # noqa: D102
        return (None, None)

    def communication_backend_name(self) -> str:  # noqa: D102
        return "gloo"

    def visible_devices_envvar(self) -> str:  # noqa: D102
        return "CUDA_VISIBLE_DEVICES"

    @contextlib.contextmanager
    def nvtx_range(self, _: str) -> Iterator[None]:  # noqa: D102
        yield

    def ray_resource_name(self) -> str:  # noqa: D102  # in name only: ray.init(num_gpus=1)
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:  # noqa: D102
        return []

    def is_ipc_supported(self) -> bool:  # noqa: D102  # weights go to the engine through shared memory
        return False


def one_process_group(module: ModuleType) -> None:
    """verl asks for "cpu:gloo,<device>:<backend>"; torch refuses to be given the CPU twice."""
    original = module.initialize_global_process_group_ray

    def initialize(timeout_second: float | None = None, backend: str | None = None) -> None:
        original(timeout_second, backend or "cpu:gloo")

    module.initialize_global_process_group_ray = initialize  # type: ignore[attr-defined]


def attention_without_flash(module: ModuleType) -> None:
    """verl loads the critic with flash attention, whatever is configured."""
    original = module.PreTrainedModel.get_correct_attn_implementation

    def choose(self: Any, requested: str | None, *rest: Any, **named: Any) -> str:
        chosen: str = original(self, "sdpa" if requested and "flash" in requested else requested, *rest, **named)
        return chosen

    module.PreTrainedModel.get_correct_attn_implementation = choose


def offload_unpinned(module: ModuleType) -> None:
    """verl pins the reference policy's memory, which needs an accelerator."""

    class CPUOffloadPolicy(module.CPUOffloadPolicy):  # type: ignore[name-defined]
        def __init__(self, pin_memory: bool = False) -> None:
            super().__init__(pin_memory=False)

    module.CPUOffloadPolicy = CPUOffloadPolicy  # type: ignore[attr-defined]


def keep_weights(module: ModuleType) -> None:
    """vLLM packs linear weights for the CPU and drops the parameter, so that it could not be updated."""
    assert callable(module.dispatch_cpu_unquantized_gemm)

    def plain_linear(layer: Any, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    module.dispatch_cpu_unquantized_gemm = plain_linear  # type: ignore[attr-defined]


def wait_for_messages(module: ModuleType) -> None:
    """vLLM's processes look for messages in a loop without a pause, for a second after each one: that takes a core."""
    assert callable(module.sched_yield)
    module.sched_yield = lambda: time.sleep(0.0002)  # type: ignore[attr-defined]


REPLACEMENTS: dict[str, import_hooks.Change] = {
    "verl.utils.distributed": one_process_group,
    "transformers.modeling_utils": attention_without_flash,
    "torch.distributed.fsdp": offload_unpinned,
    "verl.experimental.agent_loop.agent_loop": repeatable_requests.seed_requests,
    "verl.trainer.ppo.v1.trainer_base": repeatable_requests.name_prompts,
    "vllm.distributed.device_communicators.shm_broadcast": wait_for_messages,
    "vllm.model_executor.layers.utils": keep_weights,
    "vllm.v1.engine.async_llm": repeatable_requests.hold_requests,
}


import_hooks.after_import(REPLACEMENTS)
