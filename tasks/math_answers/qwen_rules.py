r"""The judge `qwen-rules`: the rules of Qwen2.5-Math's harness, reimplemented, to see what they change.

Boxed answer, else the last number. Numbers are equal within a relative tolerance of 1e-4, and an answer may be
a hundred times the gold or a hundredth of it (percentages). A text at the end is a unit and counts for nothing, nor do
"and", `x=` and `x \in` before the answer. Tuples, sets, intervals and matrices are compared element by element,
equations side by side, everything else by sympy. Runs only in processes that can be killed.
"""

from __future__ import annotations

import re
from typing import Any

from tasks.math_answers.exact_comparison import normalise

RELATIVE_TOLERANCE = 1e-4
_LAST_TEXT = re.compile(r"(?<=.)\\(?:text|mathrm)\s*\{[^{}]*\}(?:\^\{?\d\}?)?$")
_TEXT = re.compile(r"\\(?:text|textbf|mathbf|mathrm)\s*\{([^{}]*)\}")
_BOX = re.compile(r"\\mbox\s*\{[^{}]*\}")
_BEFORE = re.compile(r"^\s*(?:[a-zA-Z]{1,2}\s*=|[xyz]\s*\\in\b)")
_SHORT_ROOT = re.compile(r"\\sqrt\s*(\d)")
_MATRIX = re.compile(r"\\(?:begin|end)\{[a-z]?matrix\}")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?")
_UNIT = re.compile(
    r"(?<=[\d}])\s*(?:degrees?|cm|km|mm|m|inches|inch|feet|ft|miles?|mph|hours?|minutes?|min|seconds?|dollars?|cents?|units?"
    r"|square\s*\w+|cubic\s*\w+|km/h|mL|kg|g)\.?$"
)


def _cleaned_text(text: str) -> str:
    text = text.replace("\\%", "").replace("%", "").replace("\\$", "").replace("$", "")
    text = text.replace("^{\\circ}", "").replace("^\\circ", "").replace("\\circ", "")
    text = _BOX.sub("", _TEXT.sub(r"\1", _LAST_TEXT.sub("", text.strip())))
    text = _BEFORE.sub("", re.sub(r"\band\b", "", text))
    text = _SHORT_ROOT.sub(r"\\sqrt{\1}", re.sub(r"\\frac\s*(\d)\s*\{", r"\\frac{\1}{", text))
    return _UNIT.sub("", normalise(text))


def _number(text: str) -> float | None:
    text = text.replace(",", "")
    return float(text) if _NUMBER.fullmatch(text) else None


def _is_close(gold: float, answer: float) -> bool:
    return any(
        abs(answer - expected) <= RELATIVE_TOLERANCE * abs(expected) for expected in (gold / 100, gold, gold * 100)
    )


def _elements(text: str) -> list[str]:
    """Elements of a bracketed list, split at the commas outside all brackets."""
    parts, depth = [""], 0
    for character in text[1:-1]:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _is_same(gold: str, answer: str) -> bool:
    if gold.lower() == answer.lower():
        return True
    expected, number = _number(gold), _number(answer)
    if expected is not None and number is not None:
        return _is_close(expected, number)
    ends = "([{", ")]}"
    if all(len(text) > 2 and text[0] in ends[0] and text[-1] in ends[1] for text in (gold, answer)):
        ours, theirs = _elements(gold), _elements(answer)
        if len(ours) > 1 or len(theirs) > 1:
            return len(ours) == len(theirs) and all(map(_is_same, ours, theirs))
    if "matrix}" in gold and "matrix}" in answer:
        ours, theirs = (re.split(r"&|\\\\", _MATRIX.sub("", text).rstrip("\\")) for text in (gold, answer))
        return len(ours) == len(theirs) and all(map(_is_same, ours, theirs))
    if gold.count("=") == answer.count("=") == 1:
        (left, right), (their_left, their_right) = gold.split("="), answer.split("=")
        return _is_same_in_sympy(f"({left})-({right})", f"({their_left})-({their_right})", signed=False)
    if answer.count("=") == 1 and "=" not in gold and len(answer.split("=")[0]) <= 2:
        return _is_same(gold, answer.split("=")[1])
    return _is_same_in_sympy(gold, answer)


def _is_same_in_sympy(gold: str, answer: str, signed: bool = True) -> bool:
    from latex2sympy2_extended import latex2sympy
    from sympy import simplify

    try:
        ours, theirs = latex2sympy(gold), latex2sympy(answer)
    except Exception:  # the parser raises many kinds of errors on text that is not mathematics: then it is not equal
        return False
    try:
        if simplify(ours - theirs) == 0 or (not signed and simplify(ours + theirs) == 0):
            return True
        return _is_close(float(ours), float(theirs))
    except (TypeError, ValueError, AttributeError, NotImplementedError, OverflowError):
        return False


def judge(gold: str, answer: str, meta: dict[str, Any] | None = None) -> str:
    """Judge by the rules above; `meta` is not used. An empty gold equals an empty answer, as it does there."""
    return "correct" if _is_same(_cleaned_text(gold), _cleaned_text(answer)) else "wrong"


def warm_up() -> None:
    """Import sympy and fill the caches of its LaTeX parser."""
    for gold, answer in (("\\frac{1}{2}", "\\frac{2}{3}"), ("x^2+1", "(x+1)^2")):
        judge(gold, answer)
