"""lighteval's command `custom` with a model that answers from a file of problems: the details it writes are its own.

run_lighteval.py PROBLEMS.jsonl FOLDER   (a Python with lighteval and antlr4-python3-runtime 4.13.2)

scores with the metrics of lighteval's own tasks gsm8k and math_500.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path

from lighteval.main_custom import custom
from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.tasks.gsm8k import gsm8k, gsm8k_prompt
from lighteval.tasks.tasks.math_500 import math_500
from lighteval.utils.cache_management import SampleCache

DATA = (
    "FOREIGN_DATA"  # environment variable: lighteval imports this file again, as the model's and the tasks' definition
)


def prompt(line, task_name=None):
    doc = gsm8k_prompt(line, task_name)
    doc.specific = {"completion": line["completion"]}
    return doc


class Canned(LightevalModel):
    """Gives the completion that stands in the document."""

    def __init__(self, config):
        self.config = config
        self._cache = SampleCache(config)  # which the pipeline expects, and nothing uses

    tokenizer = None
    max_length = 4096
    add_special_tokens = False

    def greedy_until(self, docs):
        return [ModelResponse(text=[doc.specific["completion"]], input=doc.query) for doc in docs]

    def loglikelihood(self, docs):
        raise NotImplementedError("canned completions have no likelihoods")

    loglikelihood_rolling = loglikelihood


TASKS_TABLE = [
    dataclasses.replace(
        gsm8k, name="foreign", prompt_function=prompt, hf_repo=os.environ.get(DATA, ""), hf_subset="default",
        hf_avail_splits=["test"], metrics=[*gsm8k.metrics, *math_500.metrics], few_shots_select=None,
    )
]  # fmt: skip


def main() -> None:
    problems, folder = Path(sys.argv[1]), Path(sys.argv[2]).absolute()
    data = folder / "data"
    data.mkdir(parents=True)
    with problems.open("rb") as lines, (data / "test.jsonl").open("w", encoding="utf-8") as file:
        for row in map(json.loads, lines):
            for text in row["completions"]:
                answer = {"question": row["question"], "answer": row["answer"], "completion": text}
                file.write(json.dumps(answer) + "\n")
    os.environ[DATA] = TASKS_TABLE[0].hf_repo = str(data)
    custom("canned", __file__, "foreign|0", custom_tasks=__file__, output_dir=str(folder), save_details=True)


if __name__ == "__main__":
    main()
