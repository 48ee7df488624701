"""Disagreements between graders: their classes, and who is right where a person has reviewed them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from grading.verdicts import Grade
from system.errors import UserError
from system.yaml_files import read_yaml

CLASSES = {
    "bad gold": "the gold answer cannot be read, or is not the answer",
    "time-out": "no verdict within the deadline",
    "last number": "nothing is boxed; the last number was taken for the answer",
    "scientific notation": "`1e-5`, which a LaTeX parser does not read as a number",
    "matrix": "a matrix or column vector, whose cells one grader does not compare",
    "text or unit": "words or a unit in one of the two, which one grader drops",
    "percent or factor 100": "one is a hundred times the other",
    "rounding": "the same number to 1e-4, where it is asked for exactly",
    "equation": "an equation, of which one grader compares a side",
    "several answers": "several answers, tuples, intervals: order, brackets, `and`, `±`",
    "writing": "the same expression in another form",
}
_SCIENTIFIC = re.compile(r"[-+]?[\d.]+[eE][-+]?\d+")


class Disagreement(NamedTuple):
    """A completion on which graders differ. `truth` is a person's verdict: correct or wrong, None if not reviewed."""

    benchmark: str
    problem_id: str
    gold: str
    answer: str
    verdicts: dict[str, str]
    kind: str
    truth: str | None


class Reference(NamedTuple):
    """Published scores of some completions, by benchmark, and reviewed disagreements: (class, truth)."""

    source: str
    published: dict[str, float]
    reviewed: dict[tuple[str, str], tuple[str, str]]


def read_reference(path: Path) -> Reference:
    """A file such as results/reference/graders/qwen2.5-math-1.5b-instruct.yaml."""
    try:
        content = read_yaml(path)
        reviewed = {
            (benchmark, str(problem_id)): (kind, truth)
            for benchmark, rows in content["reviewed"].items()
            for problem_id, kind, truth in rows
        }
        reference = Reference(content["source"], content["published"], reviewed)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{path} should have source, published (benchmark: score) and reviewed (benchmark: [problem, class, "
            f"truth]), but reading them fails: {error!r}",
            code="invalid-review",
            path=str(path),
        ) from None
    for problem, (kind, truth) in reviewed.items():
        if kind not in CLASSES or truth not in ("correct", "wrong"):
            raise UserError(
                f"{path}: {' '.join(problem)} should have one of the classes {', '.join(CLASSES)} and correct or "
                f"wrong, not {kind} and {truth}",
                code="invalid-review",
                path=str(path),
            )
    return reference


def plain_number(text: str) -> float | None:
    """The value of a plain number, fraction or power of ten in LaTeX; None for anything else."""
    text = re.sub(r"\\times10\^\{?(-?\d+)\}?", r"e\1", re.sub(r"\s|\\[%$!,]|[%$]", "", text)).replace(",", "")
    fraction = re.fullmatch(r"(-?)\\d?frac\{(-?\d{1,99})\}\{(\d{1,99})\}", text)
    try:
        return (-1 if fraction[1] else 1) * int(fraction[2]) / int(fraction[3]) if fraction else float(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _has_words(text: str) -> bool:
    commands = r"\\(text|mathrm|mbox)|\\circ"
    return bool(re.search(commands, text) or re.search(r"[a-z]{4}", re.sub(r"\\[a-zA-Z]+", "", text)))


def classify(gold: str, grades: Mapping[str, Grade]) -> str:
    """A guess at the class of a disagreement that nobody has reviewed, one of CLASSES."""
    answers = {name: result.answer for name, result in grades.items()}
    answer = next((text for text in answers.values() if text is not None), "")
    if grades["math-verify"].verdict == "ungradable":
        return "time-out" if gold.strip() and gold.count("{") == gold.count("}") else "bad gold"
    if len(set(answers.values())) > 1:
        return "last number"
    if "%" in gold + answer:
        return "percent or factor 100"
    expected, stated = plain_number(gold), plain_number(answer)
    if expected and stated and any(abs(stated / expected - factor) < 1e-3 * factor for factor in (100, 0.01)):
        return "percent or factor 100"
    if _SCIENTIFIC.fullmatch(gold.strip()):
        return "scientific notation"
    if expected and stated and expected != stated and abs(stated / expected - 1) < 1e-3:
        return "rounding"
    if "matrix" in gold + answer:
        return "matrix"
    if _has_words(gold) or _has_words(answer):
        return "text or unit"
    if "=" in gold + answer:
        return "equation"
    return "several answers" if any(sign in gold + answer for sign in (",", "\\cup", "\\pm")) else "writing"
