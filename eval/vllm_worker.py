"""One generating process: it takes its share of a plan that eval.generate wrote, checkpoint after checkpoint.

Importing vLLM takes a quarter of a minute on a CPU, so a process serves all benchmarks and all checkpoints of a run.
For each checkpoint the engine is built anew: that takes seconds, and nothing of the last model can stay behind in it.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contracts.errors import UserError, run_command
from eval import benchmark, protocols, sample_journal, vllm_settings

if TYPE_CHECKING:
    from eval.benchmark_task import BenchmarkTask
    from eval.vllm_model import CrossZeroVLLM

OUT_OF_MEMORY = 75  # exit status; the supervisor tries again with smaller batches
SECONDS_BETWEEN_HEARTBEATS = 2.0


def end_with_supervisor() -> None:
    """End this process and the ones that vLLM started in it when the supervisor ends, however it ends.

    The supervisor holds the other end of this process's standard input, and has made it the leader of a process group.
    vLLM's engine process would otherwise stay behind and keep its GPU.
    """

    def wait() -> None:
        os.read(0, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def quiet() -> None:
    """Keep the warnings of lm-eval and drop their chatter."""
    logging.getLogger("lm_eval").setLevel(logging.WARNING)
    # Warns, before vLLM's own level holds, that Triton has no CPU backend.
    logging.getLogger("vllm.triton_utils").setLevel(logging.ERROR)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a smaller batch may help: CUDA or the allocator says so, or vLLM's engine process died of it."""
    import torch
    from vllm.v1.engine.exceptions import EngineDeadError

    if isinstance(error, MemoryError | torch.OutOfMemoryError | EngineDeadError):
        return True
    signs = (
        "out of memory",
        "can't allocate memory",
        "no available memory for the cache",
        "engine core initialization",
    )
    return any(sign in str(error).lower() for sign in signs)


def build_requests(
    tasks: dict[str, BenchmarkTask], model: CrossZeroVLLM, missing: dict[str, list[sample_journal.Key]]
) -> list[Any]:
    """The requests, through lm-eval's tasks, for the missing samples of this process."""
    from eval.vllm_model import requests_of

    found = []
    for name, keys in missing.items():
        wanted = set(keys)
        tasks[name].build_all_requests(
            apply_chat_template=model.protocol.chat_template,
            chat_template=model.apply_chat_template,
            tokenizer_name=model.tokenizer_name,
            fewshot_as_multiturn=True,
        )
        copies = [i for i in tasks[name].instances for _ in range(i.repeats or 1)]
        found += [r for r in requests_of(copies, model.base_seed) if (r.problem_id, r.repeat) in wanted]
    return found


def serve(
    job: dict[str, Any], plan: dict[str, Any], tasks: dict[str, BenchmarkTask], index: int, beat: Callable[[], None]
) -> None:
    """Make this process's share of the missing samples of one checkpoint."""
    from eval.vllm_model import CrossZeroVLLM

    share = plan["processes"]
    missing = {name: [tuple(key) for key in keys][index::share] for name, keys in job["missing"].items()}
    missing = {name: keys for name, keys in missing.items() if keys}
    if not missing:
        return
    model = CrossZeroVLLM(
        job["checkpoint"],
        device=plan["device"],
        protocol=protocols.load(plan["protocol"], plan["overrides"]),
        seed=plan["seed"],
        **plan["engine"],
    )
    beat()
    requests = build_requests(tasks, model, missing)
    writers = {name: sample_journal.Writer(Path(job["folders"][name])) for name in missing}
    facts = {
        "context_tokens": model.max_length,
        "chat_template_sha256": hashlib.sha256((model.hf_chat_template or "").encode()).hexdigest()
        if model.protocol.needs_chat_template()
        else None,
        "vllm_engine": {k: v for k, v in model.model_args.items() if k not in ("model", "seed") and v is not None},
    }

    def emit(samples: list[dict[str, Any]]) -> None:
        for sample in samples:
            writers[sample["benchmark"]].write([sample])
        beat()

    for name in missing:
        (Path(job["folders"][name]) / "engine.json").write_text(json.dumps(facts, default=str))
    model.generate(requests, emit)
    for writer in writers.values():
        writer.close()
    model.close()


def main() -> None:
    """Serve the plan: `python -m eval.vllm_worker PLAN INDEX`."""
    plan_file, index = Path(sys.argv[1]), int(sys.argv[2])
    plan = json.loads(plan_file.read_text())
    end_with_supervisor()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    for name, value in vllm_settings.environment(plan["device"]).items():
        if os.environ.get(name) != value:
            raise UserError(f"{name} has to be '{value}' in the environment before vLLM is imported")
    quiet()
    heartbeat = plan_file.with_name(f"heartbeat-{index}")
    last = 0.0

    def beat() -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS_BETWEEN_HEARTBEATS:
            heartbeat.touch()
            last = time.monotonic()

    settings = {key: plan[key] for key in ("data", "protocol", "overrides")}
    tasks = benchmark.load_tasks(plan["benchmarks"], **settings)
    beat()
    for job in plan["jobs"]:
        try:
            serve(job, plan, tasks, index, beat)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            print(f"out of memory at step {job['step']}: {error}", file=sys.stderr)
            sys.exit(OUT_OF_MEMORY)
        gc.collect()


if __name__ == "__main__":
    run_command(main)
