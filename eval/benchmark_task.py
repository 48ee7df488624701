"""The lm-eval task behind every benchmark: problems and prompts in, verdicts out.

A plain lm-eval command line says where the problems are and how to ask with

    --metadata '{"data": "results/demo/data/benchmarks", "protocol": "report"}'

(the arguments of our models, `data=…,protocol=…`, do the same), or with the environment variables
CROSSZERO_BENCHMARK_DATA and CROSSZERO_PROTOCOL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import datasets
from lm_eval.api.task import ConfigurableTask

from contracts.errors import UserError
from eval import benchmark, protocols
from tasks import prompts


class BenchmarkTask(ConfigurableTask):
    """One benchmark under one protocol.

    Settings come from lm-eval's metadata: `data` (folder of problem tables), `protocol` (a name), `overrides` (of the
    protocol's fields), `repeats` (samples per problem, by default the protocol's), `grader`.
    """

    VERSION = 1

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Load the problems and put the protocol's prompt around them."""
        settings: dict[str, Any] = dict(config.get("metadata") or {})
        data = settings.get("data") or os.environ.get("CROSSZERO_BENCHMARK_DATA")
        if not data:
            raise UserError(
                "lm-eval has to be told where the problems of CrossZero's benchmarks are: "
                """--metadata '{"data": "results/demo/data/benchmarks"}', or CROSSZERO_BENCHMARK_DATA"""
            )
        name = str(config["task"]).removeprefix(benchmark.TASK_PREFIX)
        protocol = protocols.load(
            settings.get("protocol") or os.environ.get("CROSSZERO_PROTOCOL", "report"), settings.get("overrides")
        )
        self._protocol = protocol
        problems = benchmark.problems(Path(data), name)
        self._rows = benchmark.documents(problems, protocol, grader=settings.get("grader") or "")
        repeats = int(settings.get("repeats") or protocol.repeats_of(name))
        super().__init__(config={**{k: v for k, v in config.items() if k != "class"}, "repeats": repeats})

    def fewshot_context(
        self,
        doc: Mapping[str, Any],
        num_fewshot: int = 0,
        system_instruction: str | None = None,
        apply_chat_template: bool = False,
        fewshot_as_multiturn: bool = False,
        chat_template: Callable[..., str] | None = None,
        gen_prefix: str | None = None,
    ) -> str:
        """lm-eval's hook for the text that is asked: the very text that training asks (tasks.prompts).

        Raises:
            UserError: few-shot examples or a system instruction, which would make it another prompt, or a model behind
                an interface that takes messages, which gives the chat template no tokenizer.
        """
        if num_fewshot or system_instruction:
            raise UserError(
                "CrossZero's benchmarks are asked as the protocol says: leave out --num_fewshot and "
                "--system_instruction, or add a prompt to tasks/prompts.yaml"
            )
        prompt = prompts.load(self._protocol.prompt)
        if prompt.raw or not (apply_chat_template and self._protocol.chat_template):
            return prompt.render(doc["question"], None)
        tokenizer = getattr(getattr(chat_template, "__self__", None), "tokenizer", None)
        if not hasattr(tokenizer, "apply_chat_template"):
            raise UserError("CrossZero's benchmarks need a model whose tokenizer is here, or `chat_template=false`")
        return prompt.render(doc["question"], tokenizer)

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **_: Any) -> None:
        """lm-eval's hook for loading data: ours is loaded."""
        self.dataset = {"test": datasets.Dataset.from_list(self._rows)}
