r"""Has a model read a benchmark? Ask it to continue the first 40, 60 and 80 % of each question.

    python -m eval.contamination problems math500 --data data/benchmarks --output data/contamination/math500.parquet
    crosszero generate-samples … --benchmark math500 --data data/contamination --protocol partial-question \
        --output samples
    crosszero grade-samples --samples samples --data data/contamination --output graded
    python -m eval.contamination measure --graded graded --data data/contamination --output contamination.csv

After Wu et al. 2025, arXiv:2507.10532: a model that writes the rest of a question word for word, or answers a question
that it has not been asked to the end, has read it. A twin of generated questions of the same lengths shows what the
same model completes without having read it, such as set phrases. `snakemake contamination` does all four steps.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from contracts import paths, provenance, steps, tables
from eval import benchmark, statistics
from system import durable
from system.command_line import argument_parser
from system.errors import UserError, run_command
from system.yaml_files import read_yaml
from tasks import registry
from tasks.problems import canonical

SETTINGS = Path(__file__).with_suffix(".yaml")
SHARES = (40, 60, 80)  # percent of a question's characters that the model is shown
BENCHMARK, TWIN = KINDS = ("benchmark", "twin")
MEASURES = ("exact", "rouge_l", "right")  # shares from 0 to 1, each with _low and _high


def split_question(question: str, share: int) -> tuple[str, str]:
    """The beginning of a question and its rest, cut between words.

    Args:
        question: the whole text.
        share: of its characters, in percent; the beginning has at most that many, but always a word.
    """
    spaces = [match.start() for match in re.finditer(r"(?<=\S)\s", question)]
    wanted = len(question) * share / 100
    end = max((space for space in spaces if space <= wanted), default=spaces[0] if spaces else len(question))
    return question[:end], question[end:]


def twin_questions(questions: Sequence[str], seed: int) -> list[tuple[str, str]]:
    """A generated text of about the same length for each question, and the answer to its last question.

    Args:
        questions: of the benchmark; none of them is part of a twin.
        seed: of the generator.
    """
    settings = read_yaml(SETTINGS)["twin"]
    generated = registry.get(settings["task"]).generate(rows=settings["rows"], seed=seed, **settings["generate"])
    known = {canonical(question) for question in questions}
    pool = [problem for problem in generated if canonical(problem.question) not in known]
    rng, pairs = random.Random(seed), []
    for question in questions:
        texts: list[str] = []
        answer = ""
        while not texts or len(" ".join(texts)) < len(question):
            chosen = rng.choice(pool)
            texts.append(chosen.question)
            answer = chosen.answer or ""
        pairs.append((" ".join(texts), answer))
    return pairs


def partial_problems(whole: pa.Table, seed: int) -> Iterator[dict[str, Any]]:
    """The beginnings of a benchmark's questions and of their twins, as rows of a PROBLEM table.

    A problem's id is `<id>@<kind>-<share>`, and its `meta` has the rest of the question.

    Args:
        whole: the benchmark's problems (PROBLEM).
        seed: of the twins.
    """
    rows = whole.to_pylist()
    questions = [benchmark.question(row) for row in rows]
    task = read_yaml(SETTINGS)["twin"]["task"]
    for row, question, (text, answer) in zip(rows, questions, twin_questions(questions, seed), strict=True):
        twin = {**row, "task": task, "answer": answer, "meta": "{}"}
        for kind, text_of_kind, problem in ((BENCHMARK, question, row), (TWIN, text, twin)):
            for share in SHARES:
                start, rest = split_question(text_of_kind, share)
                yield {
                    **problem,
                    "problem_id": f"{row['problem_id']}@{kind}-{share}",
                    "messages": [{"role": "user", "content": start}],
                    "meta": json.dumps({**json.loads(problem["meta"] or "{}"), "rest": rest}),
                }


def completes(completion: str, rest: str) -> bool:
    """Whether a completion begins with the rest of the question, whatever the white space."""
    return canonical(completion).startswith(canonical(rest))


def rouge_l(completion: str, rest: str) -> float:
    """ROUGE-L (F measure, Lin 2004) of the rest of the question and as many words of the completion, from 0 to 1."""
    from rouge_score.rouge_scorer import RougeScorer

    beginning = " ".join(completion.split()[: len(rest.split())])
    return float(RougeScorer(["rougeL"]).score(rest, beginning)["rougeL"].fmeasure)


def measure_completion(graded: pd.DataFrame, rests: dict[str, str]) -> list[dict[str, Any]]:
    """A row for each kind and share of one checkpoint and benchmark: MEASURES with their 95 % intervals.

    Args:
        graded: completions of the beginnings (GRADED).
        rests: by problem_id, the rest of the question.
    """
    id_parts = graded["problem_id"].str.extract(r"@(?P<kind>[a-z]+)-(?P<share>\d+)$")
    completions_and_rests = [
        (text, rests[name]) for text, name in zip(graded["completion"], graded["problem_id"], strict=True)
    ]
    values = pd.DataFrame(
        {
            "kind": id_parts["kind"], "share": id_parts["share"], "problem_id": graded["problem_id"],
            "right": graded["verdict"].eq("correct").astype(float),
            "exact": [float(completes(text, rest)) for text, rest in completions_and_rests],
            "rouge_l": [rouge_l(text, rest) for text, rest in completions_and_rests],
        }
    )  # fmt: skip
    by_problem = values.groupby(["kind", "share", "problem_id"])[list(MEASURES)].mean()  # over repeats
    rows = []
    for (kind, share), group in by_problem.groupby(["kind", "share"]):
        row: dict[str, Any] = {"kind": kind, "share": int(str(share)), "problems": len(group)}
        for name in MEASURES:
            estimate = statistics.mean_over_problems(np.asarray(group[name], dtype=float))
            row |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        rows.append(row)
    return rows


def write_problems(arguments: argparse.Namespace) -> None:
    """Write the table of beginnings."""
    whole = benchmark.problems(arguments.data, arguments.benchmark)
    rows = list(partial_problems(whole, arguments.seed))
    tables.write(pa.Table.from_pylist(rows, tables.PROBLEM), tables.PROBLEM, arguments.output)
    provenance.write(arguments.output, benchmark=arguments.benchmark, seed=arguments.seed, shares=list(SHARES))
    print(f"{len(rows)} beginnings of {len(whole)} questions and their twins: {arguments.output}")


def write_measures(arguments: argparse.Namespace) -> None:
    """Write the measures of all checkpoints and benchmarks as CSV."""
    rows = []
    for path in paths.tables(arguments.graded):
        problems = benchmark.problems(arguments.data, path.stem).to_pylist()
        rests = {problem["problem_id"]: json.loads(problem["meta"])["rest"] for problem in problems}
        graded = tables.read(path, tables.GRADED).to_pandas()
        position = {"step": steps.parse(path.parent.name), "benchmark": path.stem}
        rows += [{**position, **row} for row in measure_completion(graded, rests)]
    if not rows:
        raise UserError(
            f"{arguments.graded} should hold step-<n>/<benchmark>.parquet, but has none; run eval.grade first",
            code="no-samples",
            path=str(arguments.graded),
        )
    durable.write_text(arguments.output, pd.DataFrame(rows).to_csv(index=False))
    provenance.write(arguments.output, data=str(arguments.data))
    print(
        pd.DataFrame(rows)[["step", "benchmark", "kind", "share", "problems", *MEASURES]]
        .round(3)
        .to_string(index=False)
    )


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    problems = commands.add_parser("problems", help="the beginnings of a benchmark's questions and of their twins")
    problems.add_argument("benchmark")
    problems.add_argument("--seed", type=int, default=0, help="of the twins")
    problems.set_defaults(run=write_problems)
    measuring = commands.add_parser("measure", help="how often the rest was completed")
    measuring.add_argument("--graded", type=Path, required=True)
    measuring.set_defaults(run=write_measures)
    for one in (problems, measuring):
        one.add_argument("--data", type=Path, required=True, help="folder of problem tables")
        one.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    run_command(main)
