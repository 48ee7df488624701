"""One vLLM process of the generation stage: it makes its share of the plan that eval/generate.py wrote.

It works checkpoint after checkpoint, and appends each completion to its journal as soon as it is finished.

Importing vLLM takes 15 seconds on a CPU, so one process serves all benchmarks and all checkpoints of a run. Each
checkpoint gets a new engine: that takes seconds, and nothing of the last model can remain in it.
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

from contracts import seeds
from eval import benchmark, protocols, sample_journal, vllm_settings
from system import durable
from system.errors import UserError, run_command
from tasks import prompts

if TYPE_CHECKING:
    from eval.vllm_model import CrossZeroVLLM, Request

OUT_OF_MEMORY = 77  # exit status, for the supervisor alone: it tries again with smaller batches
SECONDS_BETWEEN_HEARTBEATS = 2.0


def end_with_supervisor() -> None:
    """Kill this process and those that vLLM started from it when the supervisor ends, however it ends.

    The supervisor holds the other end of this process's standard input and has made it the leader of a process group.
    Otherwise vLLM's engine process would live on and keep its GPU.
    """

    def wait() -> None:
        os.read(0, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def quiet() -> None:
    """Keep lm-eval's warnings and drop the rest of its log."""
    logging.getLogger("lm_eval").setLevel(logging.WARNING)
    # It warns that Triton has no CPU backend, before vLLM's own log level is set.
    logging.getLogger("vllm.triton_utils").setLevel(logging.ERROR)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a smaller batch may help: CUDA or the allocator ran out of memory, or vLLM's engine process died."""
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
    problems: dict[str, dict[str, str]], model: CrossZeroVLLM, missing: dict[str, list[sample_journal.Key]]
) -> list[Request]:
    """The requests for missing samples.

    Args:
        problems: by benchmark, the questions by problem_id.
        model: loaded, for its tokenizer, protocol and base seed.
        missing: by benchmark, what to generate.
    """
    from eval.vllm_model import Request

    requests = []
    for name, keys in missing.items():
        wanted = dict.fromkeys(problem_id for problem_id, _ in keys)
        rendered = benchmark.render_all([problems[name][pid] for pid in wanted], model.protocol, model.tokenizer)
        texts = dict(zip(wanted, rendered, strict=True))
        requests += [
            Request(name, pid, repeat, seeds.sampling_seed(model.base_seed, name, pid, repeat), texts[pid])
            for pid, repeat in keys
        ]
    return requests


def share_of(missing: dict[str, list[list[Any]]], index: int, processes: int) -> dict[str, list[sample_journal.Key]]:
    """This process's share of what is missing.

    Args:
        missing: by benchmark, pairs of problem_id and repeat.
        index: of this process, from 0.
        processes: how many share the work.
    """
    shares = {name: [(pid, repeat) for pid, repeat in keys][index::processes] for name, keys in missing.items()}
    return {name: keys for name, keys in shares.items() if keys}


def check_prompt(checkpoint: str, protocol: protocols.Protocol, question: str) -> None:
    """Raise UserError, before an engine is built, for a prompt that the model's template or tokenizer does not suit."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    (text,) = benchmark.render_all([question], protocol, tokenizer)
    prompts.check_tokens(text, tokenizer)


def serve(
    job: dict[str, Any],
    plan: dict[str, Any],
    problems: dict[str, dict[str, str]],
    index: int,
    beat: Callable[[], None],
) -> None:
    """Generate this process's share of the missing samples of one checkpoint.

    Args:
        job: one of the plan's: the checkpoint, and what is missing by benchmark.
        plan: as eval.generate.make_plan wrote it.
        problems: by benchmark, the questions by problem_id.
        index: of this process, from 0.
        beat: reports that this process is alive.
    """
    missing = share_of(job["missing"], index, plan["processes"])
    if not missing:
        return
    protocol = protocols.load(plan["protocol"], plan["overrides"])
    check_prompt(job["checkpoint"], protocol, next(iter(problems[next(iter(missing))].values())))
    from eval.vllm_model import CrossZeroVLLM

    model = CrossZeroVLLM(
        job["checkpoint"],
        device=plan["device"],
        protocol=protocol,
        seed=plan["seed"],
        **plan["engine"],
    )
    beat()
    requests = build_requests(problems, model, missing)
    writers = {name: sample_journal.Writer(Path(job["folders"][name])) for name in missing}
    facts = engine_facts(model)

    def emit(samples: list[dict[str, Any]]) -> None:
        for sample in samples:
            writers[sample["benchmark"]].write([sample])
        beat()

    for name in missing:
        durable.write_text(Path(job["folders"][name]) / "engine.json", json.dumps(facts, default=str))
    model.generate(requests, emit)
    for writer in writers.values():
        writer.close()
    model.close()


def engine_facts(model: CrossZeroVLLM) -> dict[str, Any]:
    """What the record of the samples says of the engine: context, chat template, options."""
    template = hashlib.sha256((model.hf_chat_template or "").encode()).hexdigest()
    return {
        "context_tokens": model.max_length,
        "chat_template_sha256": template if model.protocol.needs_chat_template() else None,
        "vllm_engine": {k: v for k, v in model.model_args.items() if k not in ("model", "seed") and v is not None},
    }


def main() -> None:
    """Work off the plan: `python -m eval.vllm_worker PLAN INDEX`."""
    plan_file, index = Path(sys.argv[1]), int(sys.argv[2])
    plan = json.loads(plan_file.read_text())
    end_with_supervisor()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    for name, value in vllm_settings.environment(plan["device"]).items():
        if os.environ.get(name) != value:
            raise UserError(
                f"the environment variable {name} must be '{value}' before vLLM is imported",
                code="wrong-environment-variable",
                name=name,
            )
    quiet()
    heartbeat = plan_file.with_name(f"heartbeat-{index}")
    last = 0.0

    def beat() -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS_BETWEEN_HEARTBEATS:
            heartbeat.touch()
            last = time.monotonic()

    problems = {name: benchmark.questions(Path(plan["data"]), name) for name in plan["benchmarks"]}
    for job in plan["jobs"]:
        try:
            serve(job, plan, problems, index, beat)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            print(f"out of memory at step {job['step']}: {error}", file=sys.stderr)
            sys.exit(OUT_OF_MEMORY)
        gc.collect()


if __name__ == "__main__":
    run_command(main)
