"""lm-eval's command line with a model that answers from a file of problems: the files that it writes are its own.

run_lm_eval.py PROBLEMS.jsonl FOLDER   (with the Python of the eval environment)

runs lm-eval's own tasks gsm8k and minerva_math_algebra, without examples in the prompt, on our problems.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import lm_eval.tasks
from lm_eval.__main__ import cli_evaluate
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

TASK = """\
include: {original}
task: {name}
dataset_path: json
dataset_name: null
dataset_kwargs: {{data_files: {{test: {data}}}}}
training_split: null
fewshot_split: null
fewshot_config: null
num_fewshot: 0
"""
ORIGINALS = {"foreign_gsm8k": "gsm8k/gsm8k.yaml", "foreign_minerva": "minerva_math/minerva_math_algebra.yaml"}


@register_model("canned")
class Canned(LM):
    """Gives the completion that stands in the document."""

    def __init__(self, **_):
        super().__init__()

    def generate_until(self, requests, disable_tqdm=False):
        return [request.doc["completion"] for request in requests]

    def loglikelihood(self, requests):
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood


def main() -> None:
    problems, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    with problems.open("rb") as lines:  # ends lines at b"\n" alone
        rows = [json.loads(line) for line in lines]
    data = folder / "data.jsonl"
    with data.open("w", encoding="utf-8") as file:
        for row, completion in [(one, text) for one in rows for text in one["completions"]]:
            doc = {"question": row["question"], "answer": row["answer"], "completion": completion}
            solution = f"It is $\\boxed{{{row['answer']}}}$."
            file.write(json.dumps({**doc, "problem": row["question"], "solution": solution}) + "\n")
    for name, original in ORIGINALS.items():
        template = Path(lm_eval.tasks.__file__).parent / original
        (folder / f"{name}.yaml").write_text(TASK.format(original=template, name=name, data=data))
    sys.argv = [
        "lm_eval", "run", "--model", "canned", "--tasks", ",".join(ORIGINALS), "--include_path", str(folder),
        "--log_samples", "--output_path", str(folder / "out"),
    ]  # fmt: skip
    cli_evaluate()


if __name__ == "__main__":
    main()
