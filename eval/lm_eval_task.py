"""The lm-eval task behind every benchmark: problems and prompts in, verdicts out.

On lm-eval's own command line, the problem tables and the protocol are given by

    --metadata '{"data": "results/demo/data/benchmarks", "protocol": "greedy-boxed"}'

or by our models' arguments (`data=…,protocol=…`), or by the environment variables CROSSZERO_BENCHMARK_DATA and
CROSSZERO_PROTOCOL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import datasets
from lm_eval.api.task import ConfigurableTask

from eval import benchmark, protocols
from system.errors import UserError


class BenchmarkTask(ConfigurableTask):
    """One benchmark under one protocol.

    lm-eval's metadata holds the settings: `data` (folder of problem tables), `protocol` (a name), `overrides` (of the
    protocol's fields), `repeats` (samples per problem; default: the protocol's), `grader`.
    """

    VERSION = 1

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Load the problems and the protocol."""
        settings: dict[str, Any] = dict(config.get("metadata") or {})
        data = settings.get("data") or os.environ.get("CROSSZERO_BENCHMARK_DATA")
        if not data:
            raise UserError(
                "lm-eval needs the folder of the benchmarks' problem tables: add "
                """--metadata '{"data": "results/demo/data/benchmarks"}', or set CROSSZERO_BENCHMARK_DATA""",
                code="missing-option",
                option="data",
            )
        name = str(config["task"]).removeprefix(benchmark.TASK_PREFIX)
        protocol = protocols.load(
            settings.get("protocol") or os.environ.get("CROSSZERO_PROTOCOL", protocols.DEFAULT),
            settings.get("overrides"),
        )
        self._protocol = protocol
        problems = benchmark.problems(Path(data), name)
        self._rows = benchmark.documents(problems, protocol, settings.get("grader"))
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
        """lm-eval's hook for the prompt's text: the same text as in training (tasks.prompts).

        Args:
            doc: one of eval.benchmark.documents.
            num_fewshot: must be 0.
            system_instruction: must be empty.
            apply_chat_template: whether lm-eval was asked to; a raw prompt, or a protocol without one, prevents it.
            fewshot_as_multiturn: unused.
            chat_template: the model's bound method, from which the tokenizer is taken.
            gen_prefix: unused.

        Raises:
            UserError: few-shot examples or a system instruction, which would change the prompt, or a model without a
                local tokenizer, which cannot apply the chat template.
        """
        if num_fewshot or system_instruction:
            raise UserError(
                "the protocol decides the prompt of CrossZero's benchmarks: leave out --num_fewshot and "
                "--system_instruction, or add a prompt to tasks/prompts.yaml and a protocol that uses it",
                code="prompt-is-fixed",
            )
        if not (apply_chat_template and self._protocol.needs_chat_template()):
            return benchmark.render(doc["question"], self._protocol, None)
        tokenizer = getattr(getattr(chat_template, "__self__", None), "tokenizer", None)
        if not hasattr(tokenizer, "apply_chat_template"):
            raise UserError(
                "CrossZero's benchmarks need a model with a local tokenizer, or `chat_template=false`",
                code="missing-chat-template",
            )
        return benchmark.render(doc["question"], self._protocol, tokenizer)

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **_: Any) -> None:
        """lm-eval's hook for loading data, which is already in memory."""
        self.dataset = {"test": datasets.Dataset.from_list(self._rows)}
