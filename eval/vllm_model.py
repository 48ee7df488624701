"""`crosszero-vllm`: lm-eval's vLLM model with a seed per completion, finish reasons, and a journal of samples.

On a plain lm-eval command line (see eval/lm_eval.py):

    --model crosszero-vllm --model_args pretrained=PATH,protocol=greedy-boxed,work=FOLDER --device cpu \\
        --apply_chat_template
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

from contracts import seeds
from eval import protocols, sample_journal, vllm_settings
from eval.benchmark import TASK_PREFIX
from eval.completion_text import CompletionText
from system.errors import UserError
from tasks import prompts

PROMPT_TOO_LONG = "prompt_too_long"


@dataclass(frozen=True)
class Request:
    """One completion to generate: the `repeat`-th of a problem, sampled with `seed`."""

    benchmark: str
    problem_id: str
    repeat: int
    seed: int
    prompt: str


def requests_of(instances: Iterable[Instance], base_seed: int) -> list[Request]:
    """Requests of lm-eval's instances; lm-eval asks for k repeats by passing an instance k times."""
    seen: Counter[tuple[str, str]] = Counter()
    requests = []
    for instance in instances:
        benchmark = str(instance.task_name).removeprefix(TASK_PREFIX)
        problem_id = str(instance.doc.get("problem_id", instance.doc_id))
        repeat = seen[benchmark, problem_id]
        seen[benchmark, problem_id] += 1
        seed = seeds.sampling_seed(base_seed, benchmark, problem_id, repeat)
        requests.append(Request(benchmark, problem_id, repeat, seed, instance.args[0]))
    return requests


@register_model("crosszero-vllm")
class CrossZeroVLLM(VLLM):
    """lm-eval's vLLM model under one of our protocols.

    Args:
        pretrained: folder of a checkpoint in Hugging Face format.
        device: `cpu`, or anything else for GPUs (CUDA_VISIBLE_DEVICES says which).
        protocol: name of an evaluation protocol, or the protocol itself. It decides the decoding; the tasks'
            generation_kwargs are ignored.
        seed: base seed, from which each completion's own seed is derived.
        work: folder of the journal from which `generate_until` resumes; none by default.
        data: unused; lm-eval passes it to the tasks.
        more: passed to lm-eval's VLLM, which passes them to vLLM's engine.
    """

    def __init__(
        self,
        pretrained: str,
        device: str = "cuda",
        protocol: str | protocols.Protocol = protocols.DEFAULT,
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
                "crosszero-vllm is one process; for data parallelism use `crosszero generate-samples --data-parallel`",
                code="needless-option",
                option="data_parallel_size",
            )
        super().__init__(
            pretrained, **{"add_bos_token": None, **vllm_settings.engine("cpu" if device == "cpu" else "cuda"), **more}
        )

    def generate(self, requests: list[Request], emit: Callable[[list[dict[str, Any]]], None]) -> None:
        """Generate completions and pass them to `emit` as they finish (an empty list after a step in which none did).

        A prompt that fills the model's context is not truncated: it gets an empty completion with the finish reason
        `prompt_too_long`. Where the context leaves less than the protocol's max_tokens, a completion gets what is left.
        """
        tokens = self._tokens_of({request.prompt for request in requests})
        stop, stop_token_ids = self._stops()
        fit, samplings, unfit = [], [], []
        for request in requests:
            prompt = tokens[request.prompt]
            room = self.max_length - len(prompt)
            if room < 1:
                unfit.append(sample_of(request, CompletionText("", PROMPT_TOO_LONG), len(prompt), 0))
                continue
            fit.append(request)
            samplings.append(
                SamplingParams(
                    temperature=self.protocol.temperature,
                    top_p=self.protocol.top_p,
                    top_k=self.protocol.top_k,
                    max_tokens=min(self.protocol.max_tokens, room),
                    seed=request.seed,
                    stop=stop,
                    stop_token_ids=stop_token_ids,
                    output_kind=RequestOutputKind.FINAL_ONLY,
                )
            )
        emit(unfit)
        token_prompts = [TokensPrompt(prompt_token_ids=tokens[request.prompt]) for request in fit]
        # enqueue returns "<number>-<random>"; the outputs carry "<number>".
        numbers = [name.partition("-")[0] for name in self.model.enqueue(token_prompts, samplings, use_tqdm=False)]
        waiting = dict(zip(numbers, fit, strict=True))
        while waiting:
            finished = []
            # As LLM.generate does, which returns only when all are finished.
            for output in self.model.llm_engine.step():
                if not output.finished:
                    continue
                result = output.outputs[0]
                if result.finish_reason not in ("stop", "length"):
                    raise RuntimeError(f"vLLM ended a completion with finish reason '{result.finish_reason}'")
                completion = CompletionText(result.text, result.finish_reason)
                request = waiting.pop(output.request_id)
                finished.append(sample_of(request, completion, len(output.prompt_token_ids), len(result.token_ids)))
            emit(finished)

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """lm-eval's entry point: all completions in the order of the requests, resuming from the journal in `work`."""
        wanted = requests_of(requests, self.base_seed)
        stored: dict[tuple[str, str, int], dict[str, Any]] = {}
        folders = {benchmark: self._folder(benchmark) for benchmark in {request.benchmark for request in wanted}}
        for benchmark, folder in folders.items():
            if folder:
                for (problem_id, repeat), sample in sample_journal.read(folder).items():
                    stored[benchmark, problem_id, repeat] = sample
        missing = [r for r in wanted if (r.benchmark, r.problem_id, r.repeat) not in stored]
        writers = {benchmark: sample_journal.Writer(folder) for benchmark, folder in folders.items() if folder}

        def emit(samples: list[dict[str, Any]]) -> None:
            for sample in samples:
                stored[sample["benchmark"], sample["problem_id"], sample["repeat"]] = sample
                if sample["benchmark"] in writers:
                    writers[sample["benchmark"]].write([sample])

        self.generate(missing, emit)
        for writer in writers.values():
            writer.close()
        samples = [stored[r.benchmark, r.problem_id, r.repeat] for r in wanted]
        return [CompletionText(sample["completion"], sample["finish_reason"]) for sample in samples]

    def close(self) -> None:
        """Free the engine's memory, so that this process can load another checkpoint."""
        from vllm.distributed import cleanup_dist_env_and_memory

        self.model.llm_engine.engine_core.shutdown()
        del self.model
        gc.collect()
        cleanup_dist_env_and_memory()

    def _stops(self) -> tuple[list[str], list[int]]:
        """The protocol's stops as strings and as tokens, without tokens that the model cannot generate."""
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
        # The model's path stands for its content; eval.generate uses a hash of the files.
        settings = {
            "model": str(Path(self.model_args["model"]).resolve()),
            "decoding": json.loads(json.dumps(self.protocol.decoding())),
            "prompt": prompts.load(self.protocol.prompt).text_fields(),
            "seed": self.base_seed,
            "engine": {key: self.model_args.get(key) for key in ("dtype", "max_model_len")},
        }
        return self.work / f"{benchmark}-{sample_journal.settings_hash(settings)[:12]}"


def sample_of(request: Request, text: CompletionText, prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    """A completion as a line of the journal.

    Args:
        request: what was asked.
        text: the completion, with its finish reason.
        prompt_tokens: tokens of the prompt.
        completion_tokens: tokens of the completion.
    """
    return {
        "benchmark": request.benchmark,
        "problem_id": request.problem_id,
        "repeat": request.repeat,
        "seed": request.seed,
        "prompt": request.prompt,
        "completion": str(text),
        "finish_reason": text.finish_reason,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
    }
