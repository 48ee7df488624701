"""`crosszero-stored-samples`: an lm-eval model that answers from stored samples, for lm-eval's users. It needs no GPU.

On a plain lm-eval command line (see eval/lm_eval.py):

    --model crosszero-stored-samples --model_args samples=results/…/samples/step-100,data=results/demo/data/benchmarks

`samples` may also be the folder above, if it has one step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from contracts import tables
from eval.benchmark import TASK_PREFIX
from eval.completion_text import CompletionText
from system.errors import UserError


@register_model("crosszero-stored-samples")
class StoredSamples(LM):
    """Answers with the completions of `samples`, a folder of sample tables, one for each benchmark.

    A problem that is requested k times gets its repeats 0 … k-1. A missing sample is an error. The request's prompt is
    ignored: the sample holds the prompt that was used.
    """

    def __init__(self, samples: str, data: str | None = None, **_: Any) -> None:
        """Check the folder; lm-eval passes the other arguments (`data`, `protocol`) to the tasks too."""
        super().__init__()
        self.folder = Path(samples)
        if len(steps := list(self.folder.glob("step-*"))) == 1:
            (self.folder,) = steps
        if not any(self.folder.glob("*.parquet")):
            raise UserError(
                f"crosszero-stored-samples needs a folder with sample tables (*.parquet), such as samples/step-0, but "
                f"{samples} has none",
                code="no-samples",
                path=samples,
            )
        self._samples: dict[str, dict[tuple[str, int], CompletionText]] = {}

    def _samples_of(self, benchmark: str) -> dict[tuple[str, int], CompletionText]:
        if benchmark not in self._samples:
            table = tables.read(self.folder / f"{benchmark}.parquet", tables.SAMPLE)
            self._samples[benchmark] = {
                (row["problem_id"], row["repeat"]): CompletionText(row["completion"], row["finish_reason"])
                for row in table.select(["problem_id", "repeat", "completion", "finish_reason"]).to_pylist()
            }
        return self._samples[benchmark]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[CompletionText]:
        """The stored completions, in the order of the requests."""
        seen: dict[tuple[str, str], int] = {}
        completions = []
        for request in requests:
            benchmark, problem_id = str(request.task_name).removeprefix(TASK_PREFIX), request.doc["problem_id"]
            repeat = seen.get((benchmark, problem_id), 0)
            seen[benchmark, problem_id] = repeat + 1
            if (problem_id, repeat) not in self._samples_of(benchmark):
                raise UserError(
                    f"{self.folder / benchmark}.parquet has no sample {repeat} of problem {problem_id}: generate it, "
                    "or set `data` to the problems that the samples are of",
                    code="missing-samples",
                    count=1,
                )
            completions.append(self._samples_of(benchmark)[problem_id, repeat])
        return completions

    def loglikelihood(self, requests: list[Instance]) -> NoReturn:
        """Not available: samples have no log-likelihoods."""
        raise NotImplementedError("crosszero-stored-samples has completions only")

    loglikelihood_rolling = loglikelihood
