"""TheoremQA: university problems on theorems, whose answers are numbers, lists of numbers, truth values or options.

Data: https://huggingface.co/datasets/TIGER-Lab/TheoremQA (Chen et al., arXiv:2305.12524).

    question   How many ways are there to put 4 different balls into 2 equal boxes?
    answer     8, and in meta `answer_type`: integer, float, bool, option, list of integer, list of float
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from tasks import option_letters
from tasks.math_answers import MathAnswers
from tasks.math_answers.exact_comparison import LONGEST_ANSWER
from tasks.task import Grader

WORDS = {"true": "True", "yes": "True", "false": "False", "no": "False"}
_OPTION = re.compile(r"\(([a-zA-Z])\)")
_TRUTH = re.compile(r"(true|yes|false|no)(?:[.,;:!].*)?", re.IGNORECASE | re.DOTALL)


class TheoremQA(MathAnswers):
    """Answers of six types; numbers have the published tolerances (tasks/theoremqa/judge.py).

    Graders: those of mathematics. `qwen-rules` and `strict` judge numbers by their own rules.
    """

    graders: ClassVar[Mapping[str, Grader]] = {
        **MathAnswers.graders,
        "math-verify": Grader("tasks.theoremqa.judge.judge", package="math-verify"),
    }
    version = 2

    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "math-verify") -> str | None:
        """Compare truth values and options; numbers are left to the grader. See Task.verify."""
        kind = meta.get("answer_type")
        if not (gold or "").strip():
            return "ungradable"
        if grader != "strict" and kind in ("bool", "option"):
            named = truth_value(answer) if kind == "bool" else named_option(answer)
            if named is None:
                return "format_error"
            return "correct" if named == gold else "wrong"
        if grader in ("strict", "qwen-rules"):
            return super().verify(answer, gold, meta, grader=grader)
        return None if len(answer) <= LONGEST_ANSWER else "wrong"

    def is_multi_answer(self, gold: str, meta: Mapping[str, Any]) -> bool:
        """Lists may stand in several boxes. See Task.is_multi_answer."""
        return str(meta.get("answer_type")).startswith("list")


def truth_value(answer: str) -> str | None:
    """`True` or `False`, from an answer that is or begins with true, yes, false or no; None for anything else."""
    match = _TRUTH.fullmatch(option_letters.without_markup(answer))
    return WORDS[match[1].lower()] if match else None


def named_option(answer: str) -> str | None:
    """The option that an answer names, as the data set writes it: `(b)`; None for anything else."""
    text = option_letters.without_markup(answer)
    named = {letter_in_brackets.lower() for letter_in_brackets in _OPTION.findall(text)}
    alone = named.pop() if len(named) == 1 and _OPTION.match(text) else None  # (b) and its text
    letter = option_letters.bare_letter(answer) or alone
    return f"({letter.lower()})" if letter else None


TASK = TheoremQA("theoremqa")
