"""pass@k and maj@k of graded samples, per problem."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from eval import statistics
from eval.statistics import Floats

# Their majority is the first of the answers with the most votes (Qwen2.5-Math's evaluation/rm_maj_eval.py and lm-eval's
# filters/selection.py by Counter.most_common, lighteval's MajAtK by max over counts, inspect_ai's `mode` reducer)
FIRST_OF_TIES = {f"imported:{harness}" for harness in ("qwen-math", "lm-eval", "lighteval", "inspect")}


def ties_of(protocols: Iterable[str | None]) -> str:
    """How ties of maj@k are broken: as the harness that the samples are from breaks them, else by chance."""
    return "first" if set(protocols) <= FIRST_OF_TIES else "chance"


def curve(repeats: int) -> list[int]:
    """The k at which pass@k is shown: powers of two, and all repeats."""
    return sorted({*(2**i for i in range(repeats.bit_length()) if 2**i <= repeats), repeats})


def by_problem(graded: pd.DataFrame, answers: pd.Series, ties: str) -> dict[str, Floats]:
    """The measures of one table, `pass@k` and `maj@n (ties: …)`, each with a value per problem, of shape (problems,).

    Args:
        graded: complete and sorted by problem and repeat.
        answers: in the spelling by which votes are counted (eval.score.spelled_answers).
        ties: one of statistics.TIES.
    """
    problems = graded["problem_id"].nunique()
    correct = graded["verdict"].eq("correct").to_numpy(dtype=bool).reshape(problems, -1)
    measures = {f"pass@{k}": statistics.pass_by_problem(correct, k) for k in curve(correct.shape[1])}
    votes = answers.to_numpy().reshape(problems, -1).tolist()
    return measures | {f"maj@{correct.shape[1]} (ties: {ties})": statistics.maj_by_problem(votes, correct, ties)}
