"""`crosszero-vllm`: lm-eval's vLLM model, with a seed for each completion, finish reasons, and samples as they finish.

On a plain lm-eval command line (see eval/lm_eval.py):

    --model crosszero-vllm --model_args pretrained=PATH,protocol=report,work=FOLDER --device cpu --apply_chat_template
"""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.registry import register_model
from lm_eval.models.vllm_causallms import VLLM
from vllm import SamplingParams, TokensPrompt
from vllm.sampling_params import RequestOutputKind

from contracts.errors import UserError
from eval import protocols, sample_journal, vllm_settings
from eval.benchmark import TASK_PREFIX
from eval.completion import Completion
from tasks import prompts

PROMPT_TOO_LONG = "prompt_too_long"


@dataclass(frozen=True)
class Request:
    """One completion to be made: the `repeat`-th of a problem, sampled with `seed`."""

    benchmark: str
    problem_id: str
    repeat: int
    seed: int
    prompt: str


def requests_of(instances: Iterable[Instance], base_seed: int) -> list[Request]:
    """Requests of lm-eval instances; lm-eval asks for k repeats by giving an instance k times."""
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for instance in instances:
        benchmark = str(instance.task_name).removeprefix(TASK_PREFIX)
        problem_id = str(instance.doc.get("problem_id", instance.doc_id))
        repeat = seen[benchmark, problem_id]
        seen[benchmark, problem_id] += 1
        seed = sample_journal.seed_of(base_seed, benchmark, problem_id, repeat)
        found.append(Request(benchmark, problem_id, repeat, seed, instance.args[0]))
    return found


@register_model("crosszero-vllm")
class CrossZeroVLLM(VLLM):
    """lm-eval's vLLM model under one of our protocols.

    Args:
        pretrained: folder of a checkpoint in Hugging Face format.
        device: `cpu`, or anything else for GPUs (which ones is for CUDA_VISIBLE_DEVICES to say).
        protocol: name of an evaluation protocol, or the protocol itself. It decides the decoding; the tasks' own
            generation_kwargs do not.
        seed: base seed, from which each completion's own seed is derived.
        work: folder in which `generate_until` keeps samples as they finish, to go on from when called again.
        more: as lm-eval's VLLM, which gives them to vLLM's engine.
    """

    def __init__(
        self,
        pretrained: str,
        device: str = "cuda",
        protocol: str | protocols.Protocol = "report",
        seed: int = 0,
        work: str | None = None,
        data: str | None = None,
        **more: Any,
    ) -> None:
        """Build the engine; the arguments are described above."""
        self.protocol = protocol if isinstance(protocol, protocols.Protocol) else protocols.load(protocol)
        self.base_seed = int(seed)
        self.work = Path(work) if work else None
        if int(more.get("data_parallel_size", 1)) > 1:
            raise UserError(
                "crosszero-vllm is one process; data parallelism is `python -m eval.generate --data-parallel`"
            )
        super().__init__(
            pretrained, **{"add_bos_token": None, **vllm_settings.engine("cpu" if device == "cpu" else "cuda"), **more}
        )

    def generate(self, requests: list[Request], emit: Callable[[list[dict[str, Any]]], None]) -> None:
        """Make completions, giving them to `emit` as they finish (an empty list after a step in which none did).

        A prompt that fills the model's context is not cut: it gets an empty completion with the finish reason
        `prompt_too_long`. One that leaves less room than the protocol's max_tokens gets what room there is.
        """
        tokens = self._tokens_of({request.prompt for request in requests})
        stop, stop_token_ids = self._stops()
        fit, samplings, unfit = [], [], []
        for request in requests:
            prompt = tokens[request.prompt]
            room = self.max_length - len(prompt)
            if room < 1:
                unfit.append(sample_of(request, Completion("", PROMPT_TOO_LONG), len(prompt), 0))
                continue
            fit.append(request)
            samplings.append(
                SamplingParams(
                    temperature=self.protocol.temperature,
                    top_p=self.protocol.top_p,
                    max_tokens=min(self.protocol.max_tokens, room),
                    seed=request.seed,
                    stop=stop,
                    stop_token_ids=stop_token_ids,
                    output_kind=RequestOutputKind.FINAL_ONLY,
                )
            )
        emit(unfit)
        prompts = [TokensPrompt(prompt_token_ids=tokens[request.prompt]) for request in fit]
        # vLLM returns "<number>-<random>" and answers to "<number>".
        numbers = [name.partition("-")[0] for name in self.model.enqueue(prompts, samplings, use_tqdm=False)]
        waiting = dict(zip(numbers, fit, strict=True))
        while waiting:
            finished = []
            # What LLM.generate does too, but it returns only when all are finished.
            for output in self.model.llm_engine.step():
                if not output.finished:
                    continue
                made = output.outputs[0]
                if made.finish_reason not in ("stop", "length"):
                    raise RuntimeError(f"vLLM ended a completion with finish reason '{made.finish_reason}'")
                completion = Completion(made.text, made.finish_reason)
                request = waiting.pop(output.request_id)
                finished.append(sample_of(request, completion, len(output.prompt_token_ids), len(made.token_ids)))
            emit(finished)

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """lm-eval's way in: all completions in the order of the requests, going on from what `work` has."""
        wanted = requests_of(requests, self.base_seed)
        made: dict[tuple[str, str, int], dict[str, Any]] = {}
        folders = {benchmark: self._folder(benchmark) for benchmark in {request.benchmark for request in wanted}}
        for benchmark, folder in folders.items():
            if folder:
                for (problem_id, repeat), sample in sample_journal.read(folder).items():
                    made[benchmark, problem_id, repeat] = sample
        missing = [r for r in wanted if (r.benchmark, r.problem_id, r.repeat) not in made]
        writers = {benchmark: sample_journal.Writer(folder) for benchmark, folder in folders.items() if folder}

        def emit(samples: list[dict[str, Any]]) -> None:
            for sample in samples:
                made[sample["benchmark"], sample["problem_id"], sample["repeat"]] = sample
                if sample["benchmark"] in writers:
                    writers[sample["benchmark"]].write([sample])

        self.generate(missing, emit)
        for writer in writers.values():
            writer.close()
        samples = [made[r.benchmark, r.problem_id, r.repeat] for r in wanted]
        return [Completion(sample["completion"], sample["finish_reason"]) for sample in samples]

    def close(self) -> None:
        """Free the engine's memory, so that another checkpoint can be loaded in this process."""
        from vllm.distributed import cleanup_dist_env_and_memory

        self.model.llm_engine.engine_core.shutdown()
        del self.model
        gc.collect()
        cleanup_dist_env_and_memory()

    def _stops(self) -> tuple[list[str], list[int]]:
        """The protocol's stops as texts and as tokens; a token that the model has no output for cannot come."""
        vocabulary, outputs = self.tokenizer.get_vocab(), self.model.llm_engine.model_config.get_vocab_size()
        tokens = {text: vocabulary[text] for text in self.protocol.stop if text in vocabulary}
        texts = [text for text in self.protocol.stop if text not in tokens]
        return texts, [token for token in tokens.values() if token < outputs]

    def _tokens_of(self, prompts: set[str]) -> dict[str, list[int]]:
        texts = sorted(prompts)
        return dict(zip(texts, self.tok_encode(texts), strict=True))

    def _folder(self, benchmark: str) -> Path | None:
        if self.work is None:
            return None
        # vLLM's own name for the model stands for its content here; eval.generate uses a hash of the files.
        settings = {
            "model": str(Path(self.model_args["model"]).resolve()),
            "decoding": json.loads(json.dumps(self.protocol.decoding())),
            "prompt": prompts.load(self.protocol.prompt).words(),
            "seed": self.base_seed,
            "engine": {key: self.model_args.get(key) for key in ("dtype", "max_model_len")},
        }
        return self.work / f"{benchmark}-{sample_journal.settings_hash(settings)[:12]}"


def sample_of(request: Request, completion: Completion, prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    """A line of a partial-samples file."""
    return {
        "benchmark": request.benchmark,
        "problem_id": request.problem_id,
        "repeat": request.repeat,
        "seed": request.seed,
        "prompt": request.prompt,
        "completion": str(completion),
        "finish_reason": completion.finish_reason,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
    }
