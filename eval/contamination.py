r"""Has a model read a benchmark? Ask it to continue the first 40, 60 and 80 % of each question.

    python -m eval.contamination problems math500 --data data/benchmarks --output data/contamination/math500.parquet
    crosszero generate-samples … --benchmark math500 --data data/contamination --protocol partial-question \
        --output samples
    crosszero grade-samples --samples samples --data data/contamination --output graded
    python -m eval.contamination measure --graded graded --data data/contamination --output contamination.csv

After Wu et al. 2025, arXiv:2507.10532: a model that writes the rest of a question word for word, or answers a question
that it has not been asked to the end, has read it. A model of the benchmark's kind also completes set phrases that it
has not read there ("Express your answer as a common fraction"). So only rests are tested that say at least two numbers
which the beginning does not say, each beside a twin of its own: a generated text with a beginning of the same length,
as many words left, and new numbers among them. `snakemake contamination` does all four steps.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import stats

from contracts import paths, provenance, steps, tables
from eval import benchmark, statistics
from eval.statistics import significance
from system import durable
from system.command_line import argument_parser
from system.errors import UserError, run_command
from system.yaml_files import read_yaml
from tasks import registry
from tasks.problems import canonical

SETTINGS = Path(__file__).with_suffix(".yaml")
SHARES = (40, 60, 80)  # percent of a question's characters that the model is shown
BENCHMARK, TWIN = KINDS = ("benchmark", "twin")
NUMBER, NEW_NUMBERS = re.compile(r"\d+"), 2
TRIES = 100  # to find a twin whose rest has new numbers, too
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


def is_specific(start: str, rest: str) -> bool:
    """Whether the rest of a question says numbers that its beginning does not, so that no set phrase completes it."""
    return len(set(NUMBER.findall(rest)) - set(NUMBER.findall(start))) >= NEW_NUMBERS


class Twin:
    """Beginnings and rests of generated questions, which no model has read."""

    def __init__(self, questions: Sequence[str], seed: int) -> None:
        """Generate them.

        Args:
            questions: of the benchmark; none of them is part of a twin.
            seed: of the generator.
        """
        settings = read_yaml(SETTINGS)["twin"]
        generated = registry.get(settings["task"]).generate(rows=settings["rows"], seed=seed, **settings["generate"])
        known = {canonical(question) for question in questions}
        self.pool = [problem for problem in generated if canonical(problem.question) not in known]
        self.random = random.Random(seed)

    def like(self, start: str, rest: str) -> tuple[str, str, str]:
        """A beginning of about this length, as many words that are left, with new numbers where these have some.

        The third text is the answer to the last question in them.
        """
        for _ in range(TRIES):
            twin = self._cut(len(start), len(rest.split()))
            if is_specific(*twin[:2]) or not is_specific(start, rest):
                break
        return twin

    def _cut(self, characters: int, length: int) -> tuple[str, str, str]:
        start: list[str] = []
        left: list[str] = []
        answer = ""
        while len(left) < length or not start:
            problem = self.random.choice(self.pool)
            answer = problem.answer or ""
            for word in problem.question.split():
                if not left and (not start or len(" ".join([*start, word])) <= characters):
                    start.append(word)
                else:
                    left.append(word)
        return " ".join(start), "".join(f" {word}" for word in left[:length]), answer


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
    twins = Twin(questions, seed)
    for row, question in zip(rows, questions, strict=True):
        for share in SHARES:
            start, rest = split_question(question, share)
            twin_start, twin_rest, answer = twins.like(start, rest)
            specific = is_specific(start, rest) and is_specific(twin_start, twin_rest)
            twin = {**row, "task": task, "answer": answer, "meta": "{}"}
            parts = {BENCHMARK: (start, rest, row), TWIN: (twin_start, twin_rest, twin)}
            for kind, (beginning, left, problem) in parts.items():
                more = {"rest": left, "specific": specific}
                yield {
                    **problem,
                    "problem_id": f"{row['problem_id']}@{kind}-{share}",
                    "messages": [{"role": "user", "content": beginning}],
                    "meta": json.dumps({**json.loads(problem["meta"] or "{}"), **more}),
                }


def completes(completion: str, rest: str) -> bool:
    """Whether a completion begins with the rest of the question, whatever the white space."""
    return canonical(completion).startswith(canonical(rest))


def rouge_l(completion: str, rest: str) -> float:
    """ROUGE-L (F measure, Lin 2004) of the rest of the question and as many words of the completion, from 0 to 1."""
    from rouge_score.rouge_scorer import RougeScorer

    beginning = " ".join(completion.split()[: len(rest.split())])
    return float(RougeScorer(["rougeL"]).score(rest, beginning)["rougeL"].fmeasure)


def measure_completion(graded: pd.DataFrame, problems: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each kind and share of one checkpoint and benchmark: MEASURES with their 95 % intervals, and the test.

    The test of a share is that of the questions and twins whose rests both say new numbers, each question with its own
    twin: the exact one of the completed ones (McNemar's, with one completion each).

    Args:
        graded: completions of the beginnings (GRADED).
        problems: by problem_id, the `meta` of the beginnings.
    """
    id_parts = graded["problem_id"].str.extract(r"(?P<question>.*)@(?P<kind>[a-z]+)-(?P<share>\d+)$")
    metas = [problems[name] for name in graded["problem_id"]]
    completions_and_rests = [(text, str(meta["rest"])) for text, meta in zip(graded["completion"], metas, strict=True)]
    values = id_parts.assign(
        specific=[bool(meta.get("specific")) for meta in metas],
        right=graded["verdict"].eq("correct").astype(float),
        exact=[float(completes(text, rest)) for text, rest in completions_and_rests],
        rouge_l=[rouge_l(text, rest) for text, rest in completions_and_rests],
    )
    by_problem = values.groupby(["kind", "share", "question"])[[*MEASURES, "specific"]].mean()  # over repeats
    counts = values[values["specific"]].groupby(["share", "question", "kind"])["exact"].sum().unstack("kind")
    rows = []
    for (kind, share), group in by_problem.groupby(["kind", "share"]):
        row: dict[str, Any] = {"kind": kind, "share": int(str(share)), "problems": len(group)}
        for name in MEASURES:
            estimate = statistics.mean_over_problems(np.asarray(group[name], dtype=float))
            row |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        rows.append(row | _pair_test(counts, str(share)))
    return rows


def _pair_test(counts: pd.DataFrame, share: str) -> dict[str, Any]:
    """Of the pairs with new numbers at one share: how many, how many are completed on one side alone, the p-value."""
    pairs = counts.loc[share] if share in counts.index.get_level_values(0) else counts.iloc[:0]
    gaps = (pairs[BENCHMARK] - pairs[TWIN]).to_numpy(dtype=np.int64) if len(pairs) else np.zeros(0, dtype=np.int64)
    more, fewer = int((gaps > 0).sum()), int((gaps < 0).sum())
    return {"pairs": len(pairs), "more": more, "fewer": fewer, "p_value": significance.permutation(gaps)}


def smallest_read_share(pairs: int, alpha: float, power: float = significance.POWER) -> float | None:
    """The smallest share of read questions that the test would have noticed, if no twin is completed; None without one.

    Args:
        pairs: questions with their twins.
        alpha: two-sided level.
        power: chance of noticing.
    """
    needed = math.ceil(math.log2(2 / alpha))  # completed questions at which 2 / 2^m is at most alpha
    if pairs < needed:
        return None
    return float(stats.beta.ppf(power, needed, pairs - needed + 1))  # where P(Binomial(pairs, share) >= needed) = power


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
        metas = {problem["problem_id"]: json.loads(problem["meta"]) for problem in problems}
        graded = tables.read(path, tables.GRADED).to_pandas()
        position = {"step": steps.parse(path.parent.name), "benchmark": path.stem}
        rows += [{**position, **row} for row in measure_completion(graded, metas)]
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
