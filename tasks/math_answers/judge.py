"""The judge of mathematics: parts compared one by one, formulas by their values, and the rest by math-verify.

Only what was read whole is compared: part of an answer is never the answer.

It may hang or exhaust memory on a hostile answer: call it only where it can be killed (grading.worker_pool).
"""

from __future__ import annotations

import re
from typing import Any

from tasks.math_answers import (
    answer_parts,
    by_math_verify,
    equations,
    formulas,
    interval_comparison,
    intervals,
    one_notation,
    times_and_ratios,
    units,
    values_at_points,
)
from tasks.math_answers.by_math_verify import is_within_tolerance, verdict
from tasks.math_answers.exact_comparison import compare_exactly
from tasks.math_answers.formulas import Formula
from tasks.math_answers.latex_symbols import has_symbols
from tasks.math_answers.plain_notation import temperature_scale

_MEMBER = re.compile(rf"^\s*{intervals.SYMBOL}\s*\\in(?![a-zA-Z])")
_PERCENT = re.compile(r"\s*\\?%$")
_LETTER_OF_CHOICE = re.compile(r"^\s*\\(?:text|textbf|mathrm)\s*\{\s*\(([A-E])\)\s*\}(?=.*\w)")
_ARTICLE = re.compile(r"^(?:an?|the) ")
_WORDS = re.compile(r"[a-zA-Z]{3,30}(?: [a-zA-Z]{1,30}){0,9}|[nN][oO]")
# Other short ones are as likely products of symbols, whose case counts
_SHORT_WORDS = {
    "yes",
    "no",
    "odd",
    "all",
    "one",
    "two",
    "six",
    "ten",
    "true",
    "even",
    "none",
    "zero",
    "four",
    "five",
    "nine",
    "both",
}
_EMPTY = re.compile(
    r"\$?(?:\\(?:emptyset|varnothing)|∅|\\\{\s*\\\}|empty set|"
    r"none|(?:there (?:is|are) )?no (?:real )?solutions?(?: exists?)?)\.?\$?",
    re.IGNORECASE,
)
_PLAIN_I = re.compile(r"(?<=\*)I(?!\w)|(?<![\w\\])I(?=\s*\*)|(?<=[-+] )I$|^I(?= [-+]|$)")
_RUN_TOGETHER = re.compile(r"(?<![a-zA-Z\\])([a-zA-Z])(\d)")  # an index, or a factor before a power: `n2^n`
_CONSTANTS = {"c", "C", "c_1", "C_1"}  # of integration
_NUMBER_SET = re.compile(r"\s*\\mathbb\s*\{?\s*([NZQRC])\s*\}?\s*")
_HARMONIC = re.compile(r"(?<![a-zA-Z\\])H_(?:\{([a-jl-zA-Z]|\d?[a-z][-+]?\d?)\}|([a-jl-zA-Z]))(?![a-zA-Z])")
_ELLIPSIS = re.compile(r"\\[lcd]?dots|…|\.\.\.")


def _has_tolerance(meta: dict[str, Any]) -> bool:
    return meta.get("tolerance") is not None or meta.get("relative_tolerance") is not None


def _judge_plain(gold: str, answer: str, meta: dict[str, Any]) -> str:
    """The verdict on two answers in plain notation, or on two parts of them."""
    members = [_MEMBER.match(text) for text in (gold, answer)]
    if members[0] and members[1] and members[0][0].split() != members[1][0].split():
        return "wrong"  # about another symbol
    if bool(members[0]) == bool(members[1]) or not equations.has_relation(gold if members[1] else answer):
        gold, answer = (_MEMBER.sub("", text).strip() for text in (gold, answer))
    if _PERCENT.search(gold) and _PERCENT.search(answer):
        gold, answer = (_PERCENT.sub("", text) for text in (gold, answer))
    same = compare_exactly(gold, answer)
    if same or (same is False and not _has_tolerance(meta)):
        return verdict(same)
    for compare in (
        times_and_ratios.compare,
        times_and_ratios.compare_ratios,
        equations.compare_residues,
        interval_comparison.compare,
    ):
        if (same := compare(gold, answer)) is not None:
            return verdict(same)
    same = answer_parts.compare(gold, answer, lambda one, other: _judge_plain(one, other, meta) == "correct")
    return _judge_single(gold, answer, meta) if same is None else verdict(same)


def _judge_single(gold: str, answer: str, meta: dict[str, Any]) -> str:
    """The verdict on two answers without parts."""
    both = gold.split("\\approx")
    if len(both) == 2 and all(map(str.strip, both)) and not equations.is_symbol(both[0].replace("\\pi", "1")):
        return verdict(any(_judge_plain(one.strip(), answer, meta) == "correct" for one in both))
    exact, rounded = equations.exact_and_rounded(answer)
    if rounded:  # the exact value stands before the sign, or the rounded one is asked for
        return (
            "correct" if "correct" in (_judge_plain(gold, exact, meta), _judge_plain(gold, rounded, meta)) else "wrong"
        )
    ours, theirs = len(equations.sides(gold)), len(equations.sides(answer))
    if ours != theirs or ours > 2:
        expected_side, found_side = equations.answer_side(gold), equations.answer_side(answer, quantities=True)
        if found_side is None:
            return "wrong"
        if expected_side is None or (expected_side == gold and found_side == answer):
            return _judge_formulas(gold, answer, meta)
        return _judge_plain(expected_side, found_side, meta)
    if ours == theirs == 2 and (values := equations.right_sides(gold, answer)):
        return _judge_plain(*values, meta)
    if equations.has_relation(answer) and not equations.has_relation(gold):
        return "wrong"
    if (
        ours == 1
        and not _has_tolerance(meta)
        and (total := units.total_quantity(gold))
        and (found_total := units.total_quantity(answer))
    ):
        return verdict(total == found_total)
    if ours == 1 and (expected := units.number_and_unit(gold)) is not None and not has_symbols(gold):
        answer_split = units.number_and_unit(answer)
        if answer_split is None:
            read = formulas.read(answer)
            if units.has_words(answer) and (read is None or read.symbols):
                return "wrong"
            return _judge_formulas(expected[0], answer, meta)
        ratio = units.conversion_factor(expected[1], answer_split[1])
        if ratio is None:
            return "wrong"
        factor = f"\\cdot\\frac{{{ratio.numerator}}}{{{ratio.denominator}}}"
        gold, answer = expected[0], answer_split[0] if ratio == 1 else f"({answer_split[0]}){factor}"
        same = compare_exactly(gold, answer)
        if same is not None and not _has_tolerance(meta):
            return verdict(same)
    return _judge_formulas(gold, answer, meta)


def _judge_formulas(gold: str, answer: str, meta: dict[str, Any]) -> str:
    """The verdict by values at points; by math-verify on what is no formula and no relation between formulas."""
    functions = formulas.unknown_functions(gold, answer)
    relations = [equations.read_relation(text, functions) for text in (gold, answer)]
    if relations[0] and relations[1]:
        same = equations.compare_relations(relations[0], relations[1])
        return by_math_verify.judge(gold, answer, meta) if same is None else verdict(same)
    ours, theirs = _read_alike(gold, answer, functions)
    if ours is None or theirs is None:
        return by_math_verify.judge(gold, answer, meta)
    if _has_tolerance(meta) and is_within_tolerance(
        values_at_points.number_value(ours), values_at_points.number_value(theirs), meta
    ):
        return "correct"
    return verdict(values_at_points.compare(ours, theirs) is True)


def _read_alike(gold: str, answer: str, functions: frozenset[str]) -> tuple[Formula | None, Formula | None]:
    """Both as formulas, without a text at the end; a unit in letters, and `I` for `i`, as the gold has them."""
    gold, answer = units.without_text(gold), units.without_text(answer)
    if ("\\sum" in gold) != ("\\sum" in answer):
        gold, answer = (_HARMONIC.sub(r"(\\sum_{k=1}^{\1\2}\\frac{1}{k})", text) for text in (gold, answer))
    ours, theirs = formulas.read(gold, functions), formulas.read(answer, functions)
    if ours and theirs and ours.imaginary and "I" in theirs.symbols - ours.symbols:
        theirs = formulas.read(_PLAIN_I.sub("i", answer), functions)
    if ours and theirs and any(re.fullmatch(r"[a-zA-Z]_\d+", name) for name in theirs.symbols - ours.symbols):
        spaced = _RUN_TOGETHER.sub(r"\1 \2", answer)
        theirs = formulas.read(spaced, functions) if spaced != answer else theirs
    if ours and theirs and ours.symbols ^ theirs.symbols <= _CONSTANTS:
        theirs = _with_constant(ours, theirs)
    if ours and not ours.symbols and (theirs is None or theirs.symbols) and (bare := units.without_letters(answer)):
        theirs = formulas.read(bare, functions)
    return ours, theirs


def _with_constant(gold: Formula, answer: Formula) -> Formula:
    """The answer with the gold's letter for the constant of integration, whose name does not count."""
    first, second = gold.symbols - answer.symbols, answer.symbols - gold.symbols
    if not len(first) == len(second) == 1:
        return answer
    (ours,), (theirs,) = first, second
    if not values_at_points.is_constant_of_integration(ours, gold):
        return answer
    value = lambda point: answer.value({**point, theirs: point[ours]})  # noqa: E731
    return answer._replace(value=value, symbols=answer.symbols - {theirs} | {ours})


def judge(gold: str, answer: str, meta: dict[str, Any] | None = None) -> str:
    """Judge an answer: `correct`, `wrong`, or `ungradable` if the gold answer cannot be read.

    Sequences abbreviated by an ellipsis are compared only exactly, and small numbers also relatively. `meta` may hold
    `unit` (dropped from the answer), `tolerance` (absolute) and `relative_tolerance`.
    """
    meta = meta or {}
    if _ELLIPSIS.search(gold) or _ELLIPSIS.search(answer):
        return "wrong"
    unit = (meta.get("unit") or "").strip("$ ")
    if unit and answer.endswith(unit):
        answer = answer.removesuffix(unit)
    if len({temperature_scale(gold), temperature_scale(answer)} - {""}) == 2:
        return "wrong"
    gold, answer = one_notation.in_one_alphabet(gold, answer)
    if (number_set := _NUMBER_SET.fullmatch(gold)) and one_notation.without_wrapping(answer) == number_set[1]:
        return "correct"
    if gold.count("{") != gold.count("}") or gold.replace("\\$", "").count("$") % 2 == 1:
        return by_math_verify.judge(gold, answer, meta)
    letter = one_notation.without_wrapping(gold).strip("() ")
    if (choice := _LETTER_OF_CHOICE.match(answer)) and letter in tuple("ABCDE"):
        return verdict(choice[1] == letter)
    in_text = "\\text" in gold
    gold, answer = (_LETTER_OF_CHOICE.sub("", one_notation.without_wrapping(text)) for text in (gold, answer))
    if _WORDS.fullmatch(gold) and (in_text or len(gold) > 4 or gold.casefold() in _SHORT_WORDS):
        if _ARTICLE.sub("", gold.casefold()) == _ARTICLE.sub("", answer.casefold()):
            return "correct"
    elif _EMPTY.fullmatch(gold) and _EMPTY.fullmatch(answer):
        return "correct"
    return _judge_plain(*one_notation.in_one_measure(gold, answer), meta)


def warm_up() -> None:
    """Import math-verify and fill the caches of its LaTeX parser."""
    for gold, answer in (("2", "3"), ("\\frac{1}{2}", "0.5"), ("x^2+1", "(x+1)^2"), ("(1,2)", "\\{1,2\\}")):
        judge(gold, answer)
