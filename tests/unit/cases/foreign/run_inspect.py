"""inspect_ai with its mock model, which answers from a file of problems: the logs that it writes are its own.

run_inspect.py PROBLEMS.jsonl FOLDER   (a Python with inspect_ai, latex2sympy2-extended 1.11.0, antlr4 4.13.2)

scores with inspect_ai's own `match` and `math`, in both layouts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match, math


def main() -> None:
    problems, folder = Path(sys.argv[1]), Path(sys.argv[2])
    with problems.open("rb") as lines:  # ends lines at b"\n" alone
        rows = [json.loads(line) for line in lines]
    task = Task(
        name="foreign",
        dataset=[Sample(id=row["name"], input=row["question"], target=row["answer"]) for row in rows],
        scorer=[match(location="end", numeric=True), math()],
        epochs=len(rows[0]["completions"]),
    )
    for layout in ("eval", "json"):
        left = {row["question"]: list(row["completions"]) for row in rows}

        def answer(messages, *_, left=left):
            text = left[messages[-1].text].pop(0)
            output = ModelOutput.from_content("mockllm", text)
            output.usage = ModelUsage(input_tokens=1, output_tokens=len(text))  # else it downloads a tokenizer
            return output

        (log,) = eval(
            task, model=get_model("mockllm/model", custom_outputs=answer, memoize=False), log_dir=str(folder),
            log_format=layout, display="none", max_connections=1, max_samples=1, log_realtime=False,
        )  # fmt: skip
        print(layout, log.location, {score.name: score.metrics["accuracy"].value for score in log.results.scores})


if __name__ == "__main__":
    main()
