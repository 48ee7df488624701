"""Final answers in mathematics, shared by the tasks whose answers are: compared exactly, else judged by math-verify."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tasks.math_answers.answer_parts import read_parts
from tasks.math_answers.exact_comparison import compare_exactly, is_huge, normalise
from tasks.math_answers.plain_notation import plain
from tasks.task import Grader, Task

TOLERANCES = ("tolerance", "relative_tolerance")  # in a problem's meta


class MathAnswers(Task):
    """A task whose answers are mathematical expressions in a box.

    Graders: `math-verify`, the default everywhere; `qwen-rules`, the rules of Qwen2.5-Math's harness; `strict`, the
    normalised texts alone.
    """

    graders: ClassVar[Mapping[str, Grader]] = {
        "math-verify": Grader("tasks.math_answers.judge.judge", package="math-verify"),
        "qwen-rules": Grader("tasks.math_answers.qwen_rules.judge", package="sympy", extraction="last-number"),
        "strict": Grader(),
    }
    judged_meta = (*TOLERANCES, "unit")
    version = 8

    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "math-verify") -> str | None:
        """Compare exactly; None where only the grader's judge can tell. See Task.verify."""
        if not (gold or "").strip():
            return "ungradable"
        if grader == "strict":
            return _verdict(normalise(gold) == normalise(answer))
        same = compare_exactly(gold, answer)
        if same is None:
            return "ungradable" if is_huge(answer) and not is_huge(gold) else None
        if not same and (grader == "qwen-rules" or any(meta.get(key) is not None for key in TOLERANCES)):
            return None  # a judge that allows a tolerance may find them equal
        return _verdict(same)

    def is_multi_answer(self, gold: str, meta: Mapping[str, Any]) -> bool:
        """Also where the gold answer is a list. See Task.is_multi_answer."""
        return super().is_multi_answer(gold, meta) or read_parts(plain(gold or "")).kind in ("list", "set")

    def canonical_answer(self, answer: str) -> str:
        """Normalised. See Task.canonical_answer."""
        return normalise(answer)


def _verdict(same: bool) -> str:
    return "correct" if same else "wrong"
