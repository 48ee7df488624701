"""The labelled pairs in math-verify's own tests: gold, answer and whether the answer should count as right.

Only pairs of which each side is one formula or has a box: they test the comparison, not the search for an answer.
"""

from __future__ import annotations

import ast
from pathlib import Path

from grading.extraction import last_boxed
from studies.grader_validation.answer_pairs import AnswerPair
from system.errors import UserError

DELIMITERS = (("$$", "$$"), ("$", "$"), ("\\[", "\\]"), ("\\(", "\\)"))


def _answer(text: str) -> str | None:
    """What a text with a box or of one formula answers; None for prose."""
    if boxed := last_boxed(text, is_multi_answer=True):
        return boxed
    text = text.strip()
    for opening, closing in DELIMITERS:
        inner = text.removeprefix(opening).removesuffix(closing)
        if len(inner) == len(text) - len(opening) - len(closing) and not any(mark in inner for mark, _ in DELIMITERS):
            return inner.strip() or None
    return None


def _labelled(node: ast.AST) -> tuple[str, str, bool] | None:
    """The values of a tuple of gold, answer and label; None for any other expression."""
    if not (isinstance(node, ast.Tuple) and all(isinstance(part, ast.Constant) for part in node.elts)):
        return None
    values = [part.value for part in node.elts if isinstance(part, ast.Constant)]
    if len(values) != 3 or not (isinstance(values[0], str) and isinstance(values[1], str)):
        return None
    return (values[0], values[1], bool(values[2])) if values[2] in (0, 1) else None


def read(folder: Path) -> tuple[list[AnswerPair], int]:
    """The pairs of the tests in a folder by file, and how many others were left out because a side is prose.

    Nothing of the folder is run.

    Raises:
        UserError: the folder has no such tests.
    """
    by_text: dict[tuple[str, str], AnswerPair] = {}
    left = set()
    for file in sorted(folder.glob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (one := _labelled(node)) is None:
                continue
            gold, answer = _answer(one[0]), _answer(one[1])
            if gold is None or answer is None:
                left.add(one)
            else:
                by_text[gold, answer] = AnswerPair(file.stem.removeprefix("test_"), gold, answer, one[2])
    if not by_text:
        raise UserError(
            f"{folder} should be the folder tests of math-verify's repository, but has no labelled pairs",
            code="no-pairs",
        )
    return list(by_text.values()), len(left)
