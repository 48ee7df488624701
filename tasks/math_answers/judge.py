"""The judge of mathematics: parts compared one by one, formulas by their values, and the rest by math-verify.

Only what was read whole is compared: part of an answer is never the answer.

It may hang or exhaust memory on a hostile answer: call it only where it can be killed (grading.worker_pool).
"""

from __future__ import annotations

import math
import re
from typing import Any

from tasks.math_answers import (
    answer_parts,
    equations,
    formulas,
    intervals,
    numbers_in_words,
    times_and_ratios,
    units,
    values_at_points,
)
from tasks.math_answers.exact_comparison import SCIENTIFIC, compare_exactly, normalise
from tasks.math_answers.formulas import Formula
from tasks.math_answers.latex_symbols import for_math_verify, has_symbols
from tasks.math_answers.plain_notation import has_degrees, plain, temperature_scale

_MEMBER = re.compile(rf"^\s*{intervals.SYMBOL}\s*\\in(?![a-zA-Z])")
_WRAPPED = re.compile(
    r"(?:\\(?:text|textbf|mathrm|mathbf|mbox|boldsymbol|bm|pmb|bf|underline|fbox|boxed)|\\(?:text)?color\s*\{\w{1,20}\})\s*(\{.*\})|\*\*([^*]*)\*\*",
    re.DOTALL,
)
_ANNOUNCED = re.compile(
    r"^\\(?:therefore|implies|(?:Long)?[rR]ightarrow)(?![a-zA-Z])|^\\text\s*\{\s*(?:about|approximately|exactly|(?:yes|no),)\s*\}"
    r"|\\text\s*\{\s*(?:the )?(?:final )?answer(?: is)?:?\s*\}\s*:?|^(?:the )?(?:final )?answer(?: is|:)"
    r"|^(?:\\text\s*\{\s*)?(?:the|its?)(?: (?!not|half|twice|double|square|cube|third)[a-z]{1,15}){0,4}"
    r" (?:is|are|equals)\b\s*:?\s*\}?"
    r"|^(?:所以|故|因此)?(?:最终|正确)?(?:答案?(?:应?选(?:择|项)?)?|应?选(?:择|项)?)(?:是|为)?\s*[:：]?",
    re.IGNORECASE,
)
_MONEY = re.compile(r"([-+]?)\\\$\s*(\d[\d,]{0,30}(?:\.\d{1,9})?)")
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
_RADIANS = re.compile(r"\\pi(?![a-zA-Z])|π|(?<![a-zA-Z\\])rad(?:ians?)?(?![a-zA-Z])")
_TOO_LARGE = re.compile(
    r"\d\s*\^\s*\{?\s*\d+\s*\^|\^\s*[{(]?\s*-?\d{5,}|\d{5,}\s*!|\}\s*!"
)  # that sympy would write down
LONGEST_PARSED, DEEPEST_PARSED = 1000, 12  # characters, brackets: of answers that math-verify's parser is given
_PLAIN_LOG = re.compile(r"(?<![a-zA-Z\\{])log(?=\s*\()|\\log(?=\s*\{\s*\\left\()")  # sympy's, to base e
_PLAIN_E = re.compile(r"(?<![\w\\}])E(?=\s*\*)|(?<=\*)\s*E(?!\w)")
_PLAIN_I = re.compile(r"(?<=\*)I(?!\w)|(?<![\w\\])I(?=\s*\*)|(?<=[-+] )I$|^I(?= [-+]|$)")
_RUN_TOGETHER = re.compile(r"(?<![a-zA-Z\\])([a-zA-Z])(\d)")  # an index, or a factor before a power: `n2^n`
_CONSTANTS = {"c", "C", "c_1", "C_1"}  # of integration
_DIFFERENTIATED = r"(?P<name>\\?[a-zA-Z]+)(?P<index>_(?:\w|\{\w+\}))?"
_LEIBNIZ = re.compile(
    rf"\\frac\s*\{{\s*d\s*(?P<second>\^\s*\{{?\s*2\s*\}}?)?\s*{_DIFFERENTIATED}\s*\}}\s*\{{\s*d\s*(?P<by>[a-z])\s*(?:\^\s*\{{?\s*2\s*\}}?)?\s*\}}"
)
_DOTTED = re.compile(
    r"\\(?P<second>d)?dot(?![a-z])\s*(?P<brace>\{)?\s*(?P<name>\\[a-zA-Z]+|[a-zA-Z])(?(brace)\s*\})(?P<index>_(?:\w|\{\w+\}))?"
)
_VARIANT = re.compile(r"\\var(?=(?:epsilon|phi|theta|rho)(?![a-zA-Z]))")
_NUMBER_SET = re.compile(r"\s*\\mathbb\s*\{?\s*([NZQRC])\s*\}?\s*")
_HARMONIC = re.compile(r"(?<![a-zA-Z\\])H_(?:\{([a-jl-zA-Z]|\d?[a-z][-+]?\d?)\}|([a-jl-zA-Z]))(?![a-zA-Z])")
_DROPPED = re.compile(  # by math-verify: primes, but not apostrophes between thousands, and an index of a number
    r"['′\"](?!(?<=\d.)\d{3}(?!\d))|\^\s*\{?\s*\\(?:prime|circ)|\\(?:angle|phantom)|\d\s*_"
)
_ELLIPSIS = re.compile(r"\\[lcd]?dots|…|\.\.\.")


def _is_within_tolerance(gold: Any, answer: Any, meta: dict[str, Any]) -> bool:
    """Whether two numbers agree within the problem's own `tolerance` (absolute) or `relative_tolerance`.

    Where each of several answers has a tolerance of its own, the smallest holds for all.
    """
    absolute, relative = meta.get("tolerance"), meta.get("relative_tolerance")
    if absolute is None and relative is None:
        return False
    if isinstance(absolute, list):
        absolute = min(absolute, default=None)
    try:
        expected, value = float(gold), float(answer)
    except (TypeError, ValueError, OverflowError):
        return False
    return abs(expected - value) <= max(float(absolute or 0), float(relative or 0) * abs(expected))


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
        return _verdict(same)
    for compare in (
        times_and_ratios.compare,
        times_and_ratios.compare_ratios,
        equations.compare_residues,
        intervals.compare,
    ):
        if (same := compare(gold, answer)) is not None:
            return _verdict(same)
    same = answer_parts.compare(gold, answer, lambda one, other: _judge_plain(one, other, meta) == "correct")
    return _judge_single(gold, answer, meta) if same is None else _verdict(same)


def _judge_single(gold: str, answer: str, meta: dict[str, Any]) -> str:
    """The verdict on two answers without parts."""
    both = gold.split("\\approx")
    if len(both) == 2 and all(map(str.strip, both)) and not equations.is_symbol(both[0].replace("\\pi", "1")):
        return _verdict(any(_judge_plain(one.strip(), answer, meta) == "correct" for one in both))
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
        return _verdict(total == found_total)
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
            return _verdict(same)
    return _judge_formulas(gold, answer, meta)


def _judge_formulas(gold: str, answer: str, meta: dict[str, Any]) -> str:
    """The verdict by values at points; by math-verify on what is no formula and no relation between formulas."""
    functions = formulas.unknown_functions(gold, answer)
    relations = [equations.read_relation(text, functions) for text in (gold, answer)]
    if relations[0] and relations[1]:
        same = equations.compare_relations(relations[0], relations[1])
        return _by_math_verify(gold, answer, meta) if same is None else _verdict(same)
    ours, theirs = _read_alike(gold, answer, functions)
    if ours is None or theirs is None:
        return _by_math_verify(gold, answer, meta)
    if _has_tolerance(meta) and _is_within_tolerance(
        values_at_points.number_value(ours), values_at_points.number_value(theirs), meta
    ):
        return "correct"
    return _verdict(values_at_points.compare(ours, theirs) is True)


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


def _verdict(same: bool) -> str:
    return "correct" if same else "wrong"


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
    gold, answer = _in_one_alphabet(gold, answer)
    if (number_set := _NUMBER_SET.fullmatch(gold)) and _without_wrapping(answer) == number_set[1]:
        return "correct"
    if gold.count("{") != gold.count("}") or gold.replace("\\$", "").count("$") % 2 == 1:
        return _by_math_verify(gold, answer, meta)
    letter = _without_wrapping(gold).strip("() ")
    if (choice := _LETTER_OF_CHOICE.match(answer)) and letter in tuple("ABCDE"):
        return _verdict(choice[1] == letter)
    in_text = "\\text" in gold
    gold, answer = (_LETTER_OF_CHOICE.sub("", _without_wrapping(text)) for text in (gold, answer))
    if _WORDS.fullmatch(gold) and (in_text or len(gold) > 4 or gold.casefold() in _SHORT_WORDS):
        if _ARTICLE.sub("", gold.casefold()) == _ARTICLE.sub("", answer.casefold()):
            return "correct"
    elif _EMPTY.fullmatch(gold) and _EMPTY.fullmatch(answer):
        return "correct"
    return _judge_plain(*_in_one_measure(gold, answer), meta)


def _in_one_alphabet(gold: str, answer: str) -> tuple[str, str]:
    r"""Letters that are written in two ways as the gold has them: `\varepsilon`, sympy's `E` and `log` to base e."""
    if not any(
        _VARIANT.search(text) and re.search(r"\\(?:epsilon|phi|theta|rho)(?![a-zA-Z])", text) for text in (gold, answer)
    ):
        gold, answer = (_VARIANT.sub(r"\\", text) for text in (gold, answer))
    if "E" not in gold:
        answer = _PLAIN_E.sub("e", answer)
    if "\\ln" in gold and "\\log" not in gold:
        answer = re.sub(r"\blog\(([^(),]+), E\)", r"log(\1)", answer)
        answer = _PLAIN_LOG.sub(lambda match: match[0].replace("log", "ln"), answer)
    both = gold + answer
    by_time = {match["by"] for match in _LEIBNIZ.finditer(both)} <= {"t"}
    if any(bool(one.search(gold)) != bool(one.search(answer)) for one in (_LEIBNIZ, _DOTTED)) and (
        by_time or not _DOTTED.search(both)
    ):
        gold, answer = (_DOTTED.sub(_primed, _LEIBNIZ.sub(_primed, text)) for text in (gold, answer))
    return gold, answer


def _primed(match: re.Match[str]) -> str:
    """A derivative in another notation with primes."""
    return f"{match['name']}{match['index'] or ''}{chr(39) * (2 if match['second'] else 1)} "


def _in_one_measure(gold: str, answer: str) -> tuple[str, str]:
    r"""Both in plain notation; an angle in degrees beside one in parts of `\pi` as such a part."""
    ours, theirs = plain(gold), plain(answer)
    kinds = [(has_degrees(text), bool(_RADIANS.search(text))) for text in (gold, answer)]
    if kinds == [(True, False), (False, True)]:
        return _in_radians(ours), theirs
    return ours, _in_radians(theirs) if kinds == [(False, True), (True, False)] else theirs


def _in_radians(degrees: str) -> str:
    return ", ".join(f"({one})\\cdot\\frac{{\\pi}}{{180}}" for one in answer_parts.split_outside_brackets(degrees, ","))


def _without_wrapping(text: str) -> str:
    """An answer without what is around the whole of it, a number in words as a number, an amount with its unit."""
    text = _ANNOUNCED.sub("", text.strip()).strip()
    whole = _WRAPPED.fullmatch(text.strip("$") if not text.startswith("\\$") else text)
    if whole and (whole[1] is None or answer_parts.is_enclosed(whole[1])):
        text = whole[1][1:-1] if whole[1] else whole[2]
    if amount := _MONEY.fullmatch(text.replace("\\!", "")):
        text = f"{amount[1]}{amount[2]} \\text{{ dollars}}"
    return numbers_in_words.in_digits(text) or text


def _by_math_verify(gold: str, answer: str, meta: dict[str, Any]) -> str:
    """The verdict of math-verify, whose own time-outs are off: they use signals, which the worker needs.

    It gets what its parser reads whole, with letters as they are, and compares to many digits: as it is called by
    default, it takes the last fraction of a text that it cannot read, `R` for `r`, and 10^-20 for 10^-30.
    """
    from math_verify import verify
    from sympy.core.random import seed

    seed(0)  # sympy draws numbers to compare expressions: the same ones whatever was judged before
    gold, answer = (normalise(text) if SCIENTIFIC.fullmatch(text.strip("$ ")) else text for text in (gold, answer))
    source, symbols = gold.replace("\\$", ""), has_symbols(gold)
    gold, answer = (units.without_text(text) for text in (gold, answer))
    if not symbols:
        gold, answer = (units.without_letters(text) or text for text in (gold, answer))
    (expected, gold_text), (parsed, answer_text) = (
        parse_whole(for_math_verify(text, symbols), limit)
        for text, limit in ((gold, math.inf), (answer, max(LONGEST_PARSED, 2 * len(gold))))
    )
    if expected is None:
        if not gold_text or source.count("{") != source.count("}") or source.count("$") % 2 == 1:
            return "ungradable"
        return _verdict(gold_text == answer_text)
    if parsed is None:
        return "wrong"
    if _is_within_tolerance(expected, parsed, meta):
        return "correct"
    if (same := _compare_relations(expected, parsed)) is not None:
        return _verdict(same)
    digits = {} if _has_decimals(expected, parsed) else {"float_rounding": 30, "numeric_precision": 50}
    same = verify(expected, parsed, timeout_seconds=None, **digits)
    return _verdict(same and not _differ_relatively(expected, parsed))


def _compare_relations(gold: Any, answer: Any) -> bool | None:
    """Whether two relations differ by a sign at most; None if one is none. Solving them may take minutes."""
    from sympy import Eq, Expr, expand
    from sympy.core.relational import Relational

    if not isinstance(gold, Relational) or not isinstance(answer, Relational):
        return None
    if not all(isinstance(side, Expr) for side in (gold.lhs, gold.rhs, answer.lhs, answer.rhs)):
        return None
    ours, theirs = (one.lhs - one.rhs for one in (gold.canonical, answer.canonical))
    signs = (1, -1) if isinstance(gold, Eq) else (1,)
    return type(gold.canonical) is type(answer.canonical) and any(expand(ours - sign * theirs) == 0 for sign in signs)


def _has_decimals(*parsed: Any) -> bool:
    """Whether all symbols are gone and a decimal is there, which math-verify rounds to six digits."""
    from sympy import Float

    return any(one.has(Float) for one in parsed) and not any(one.free_symbols for one in parsed)


def parse_whole(text: str, limit: float) -> tuple[Any, str]:
    """What math-verify's parser makes of a text, None if it does not read all of it; and the text as it cleans it."""
    from latex2sympy2_extended.latex2sympy2 import ConversionConfig, latex2sympy
    from latex2sympy2_extended.math_normalization import NormalizationConfig, normalize_latex
    from math_verify.grader import should_treat_as_complex
    from sympy import Basic, Derivative

    nesting = max(formulas.nesting(text), text.count("|") // 2)
    if len(text) > limit or nesting > DEEPEST_PARSED or _TOO_LARGE.search(text) or _DROPPED.search(text):
        return None, text
    cleaned = normalize_latex(
        text, NormalizationConfig(basic_latex=True, malformed_operators=True, nits=True, boxed="none")
    )
    try:
        parsed = latex2sympy(
            cleaned,
            is_real=not should_treat_as_complex(cleaned),
            normalization_config=None,
            conversion_config=ConversionConfig(lowercase_symbols=False),
        )
    except Exception:  # the parser raises many kinds of errors on text that is not mathematics
        return None, cleaned
    derivatives = parsed.atoms(Derivative) if isinstance(parsed, Basic) else ()
    # The derivative of a symbol is 0 to it, where a function is meant
    return (parsed if all(one.expr.has(*one.variables) for one in derivatives) else None), cleaned


def _differ_relatively(gold: Any, answer: Any, tolerance: float = 1e-4) -> bool:
    """True for numbers that are far apart relatively: math-verify compares absolutely, so that 2^-99 equals 2^-98."""
    from sympy import UnevaluatedExpr

    if not (getattr(gold, "is_number", False) and getattr(answer, "is_number", False)):
        return False
    # math-verify 0.9 leaves the hundredth of a percent unevaluated, and the size of that has no order
    gold, answer = (number.doit() if number.has(UnevaluatedExpr) else number for number in (gold, answer))
    size = max(abs(gold.evalf(15)), abs(answer.evalf(15)))
    return bool(size != 0 and size < 1 and abs((gold - answer).evalf(15)) > tolerance * size)


def warm_up() -> None:
    """Import math-verify and fill the caches of its LaTeX parser."""
    for gold, answer in (("2", "3"), ("\\frac{1}{2}", "0.5"), ("x^2+1", "(x+1)^2"), ("(1,2)", "\\{1,2\\}")):
        judge(gold, answer)
