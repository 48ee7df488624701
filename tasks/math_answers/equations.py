"""Equations, congruences and other relations: when a side of one is the answer."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from tasks.math_answers import closed_forms, formula_tokens, formulas, values_at_points
from tasks.math_answers.exact_comparison import normalise
from tasks.math_answers.formulas import Formula

_DECIMAL = re.compile(r"[-+]?\d*\.\d+")
ROUNDED = 50  # a number and its rounded value differ by less than this part of it
_EQUALS = re.compile(r"(?<![<>!:=\\])=+|\\(?:approx|simeq|eqsim)(?![a-zA-Z])")
_ROUNDED_SIGN = re.compile(r"\\(?:approx|simeq|eqsim)(?![a-zA-Z])")
_OTHER = re.compile(
    r"[<>]|!=|\\(?:n?leq?|n?geq?|leqslant|geqslant|lt|gt|neq?|n?equiv|cong|sim|propto|in|notin|subset\w*|pmod|bmod|mod|mid|"
    r"implies|iff|Rightarrow|rightarrow|to|parallel|perp)(?![a-zA-Z])|\bmod\b"
)
_NAME = r"(?:[a-zA-Z]|\\(?!frac|sqrt|cdot|times|pm|int|sum|log|ln|sin|cos|tan)[a-zA-Z]+)"
_SCRIPT = r"(?:\s*'|\s*[_^]\s*(?:\w|\{[^{}]{1,30}\}|\\[a-zA-Z]+))*"
_SYMBOL = re.compile(
    rf"\s*(?:m\s*)?(?:\\angle|\\triangle|\\overline|\\overrightarrow|\\vec|\\mathbf|\\boldsymbol|\\(?:wide)?hat|\\bar|\\d?dot|\\(?:wide)?tilde|\\mathcal|\\operatorname)?\s*"
    rf"(?:{_NAME}{_SCRIPT}|\{{[a-zA-Z]\}}{_SCRIPT}|\{{?[A-Z]{{2,4}}\}}?|[a-zA-Z]{{3,30}}|\\(?:text|mathrm|mbox)\s*\{{[^{{}}]{{1,60}}\}}{_SCRIPT}|\[[A-Z]{{3,6}}\]"
    rf"|\|[A-Z]{{2}}\||\\frac\{{d\w?\}}\{{d\w\}})"
    rf"\s*(?:\([^()]{{1,30}}\)|\[[^\[\]]{{1,30}}\])?\s*"
)
_SQUARED = re.compile(r"\^\s*(?:\d+|\{\s*\d+\s*\})\s*$")  # `x^2` is a value to be solved for, unlike `x'` and `f^{-1}`
_TIMES_ITSELF = re.compile(r"\s*([a-zA-Z])\s*\((?=[^()]*(?<![a-zA-Z])\1(?![a-zA-Z]))")  # `x(x+1)`
_BOUND = re.compile(r"\s*\\(?:int|sum|prod|lim|max|min|sup|inf|gcd|det)(?![a-zA-Z])")
_GREEK = re.compile(rf"\\(?:{'|'.join(formula_tokens.GREEK)})(?![a-zA-Z])")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_OF_ONE = re.compile(r"\s*([a-zA-Z](?:_\w)?)\s*\(\s*([a-zA-Z])\s*\)\s*")
_ALONE = r"(?<![a-zA-Z\\]){}(?![a-zA-Z])"  # a letter that is a symbol of its own
_CONGRUENT = re.compile(
    r"(?:.{1,20}?\\equiv)?\s*([-+]?\d{1,18})\s*\(?\s*(?:\\[pb]?mod|\\text\s*\{\s*mod\s*\}|mod)\s*\{?\s*(\d{1,18})\s*\}?\s*\)?"
)

_SIGN = re.compile(
    r"\\(?P<command>leqslant|geqslant|leq|geq|le|ge|lt|gt|neq|ne)(?![a-zA-Z])|(?P<plain><=|>=|!=|==?|<|>)"
)
_SIGNS = {"leqslant": "<=", "leq": "<=", "le": "<=", "lt": "<", "neq": "!=", "ne": "!=", "==": "="}
_SIGNS |= {"geqslant": ">=", "geq": ">=", "ge": ">=", "gt": ">"}
_MIRRORED = {">": "<", ">=": "<=", "=": "=", "!=": "!="}
# |z|, ‖v‖, ⌊x⌋, P(…), E[X], sin A: what is a value whatever the letters in it are
_ABSOLUTE = re.compile(r"\s*(?:\||\\lvert)(.+)(?:\||\\rvert)\s*")
_WHOLE_QUANTITY = re.compile(
    r"\s*(?:(?:\\overline\s*\{[A-Z]{2}\}|\\(?:sigma|chi|omega)(?:_(?:\w|\{\w{1,9}\}))?)\s*\^\s*\{?2\}?|\\(?:lVert|Vert|\|)\s*.{1,60}\\(?:rVert|Vert|\|)(?:_\w)?|\\l(floor|ceil)(?![a-z]).{1,60}\\r\1|\\#.{1,30}"
    r"|\\(?:operatorname|mathrm|text)\s*\{\s*[a-zA-Z]{2,9}\s*\}\s*\\?[a-zA-Z]+(?:_\w)?"
    r"|\\(?:mathrm|text)\s*\{\s*(?i:(?:the )?"
    r"(?:area|volume|length|measure|perimeter|radius|probability|number|sum|value)s? of"
    r"(?: [a-z]{3,20}){0,3})\s*\}\s*(?:\\[a-z]+\s*)?\{?\w{0,6}\}?"
    r"|\\(?:max|min|sup|inf|dim|det|deg|arg|rank)(?![a-z])\s*[a-zA-Z{(_].{0,60}"
    r"|\\(?:sin|cos|tan|cot|sec|csc)(?![a-z])(?:\s*\^\s*\{?2\}?)?(?!.*(?<![a-zA-Z])[xy](?![a-zA-Z]))[^-+=]{1,40})\s*"
)
_APPLIED = re.compile(
    r"\s*(?:\\(?:mathbb|mathcal|mathrm|operatorname|text)\s*\{\s*\w{1,9}\s*\}|\\Pr|\\gcd|\(\s*[fgh]\s*\\circ\s*[fgh]\s*\)|[A-Z]\w{0,2}|[dfgh])(?:'|_\w)?\s*([(\[].*[)\]])\s*"
)

_MULTIPLE = re.compile(
    r"(?<![a-zA-Z])(?:half|third|quarter|twice|double|triple|square|cube|root|negative|minus|not)(?![a-zA-Z])", re.I
)


class Relation(NamedTuple):
    """Formulas with signs between them: `=`, `!=`, `<` or `<=`."""

    sides: list[Formula]
    signs: list[str]


def read_relation(text: str, functions: frozenset[str]) -> Relation | None:
    """A chain of formulas with signs of relation; None for any other text."""
    parts, signs, start = [], [], 0
    for match in _SIGN.finditer(text):
        before = text[: match.start()]
        if all(before.count(opening) == before.count(closing) for opening, closing in ("()", "[]", "{}")):
            sign = match["command"] or match["plain"]
            parts.append(text[start : match.start()])
            signs.append(_SIGNS.get(sign, sign))
            start = match.end()
    if not 0 < len(signs) < 4:
        return None
    read = [formulas.read(part.strip(), functions) for part in [*parts, text[start:]]]
    known = [one for one in read if one]
    if len(known) < len(read):
        return None
    if any(sign[0] == ">" for sign in signs):
        if not set(signs) <= set(_MIRRORED):
            return None
        known, signs = known[::-1], [_MIRRORED[sign] for sign in reversed(signs)]
    return Relation(known, signs)


def compare_relations(gold: Relation, answer: Relation) -> bool | None:
    """Whether two relations say the same; None where their values at points cannot tell."""
    if len(gold.signs) != len(answer.signs):
        return None
    if gold.signs != answer.signs:
        return False
    same = [
        values_at_points.compare_relations(gold.sides[i : i + 2], answer.sides[i : i + 2], sign)
        for i, sign in enumerate(gold.signs)
    ]
    return False if False in same else True if all(same) else None


def is_quantity(text: str) -> bool:
    """Whether a text stands for a number to be stated, not for an unknown to be solved for.

    So are `|z|`, `P(A)`, `a+b+c` and `x+\\frac{1}{x}`, and not `2x`, `x^2` or `|5-z|`.
    """
    if (named := _is_named_quantity(text)) is not None or _MULTIPLE.search(text):
        return bool(named)
    formula = formulas.read(text.replace(":", "/").strip(), formulas.unknown_functions(text))
    if formula is None or not formula.symbols or re.search(r"(?:^|[-+])\s*\d+(?:\.\d+)?\s*(?=[-+]|$)", text):
        return False
    if len(formula.symbols) > 1:  # in coordinates alone, a sum or product is a line or a curve
        return not formula.symbols <= {"x", "y", "z"} or bool(re.search(r"[|/]|\\[a-z]?frac|vert", text))
    try:  # like x + 1/x
        first, mirrored, other = (
            formula.value(dict.fromkeys(formula.symbols, x)) for x in (Fraction(3, 7), Fraction(7, 3), Fraction(2))
        )
        is_alone = first == Fraction(3, 7) and other == 2 and not re.search(r"\d", text)  # `\\bar{x}`
        return is_alone or bool(abs(first) == abs(mirrored) != abs(other) and re.search(".[-+]", text))
    except (ArithmeticError, ValueError, TypeError):
        return False


def _is_named_quantity(text: str) -> bool | None:
    """Whether notation such as `|z|`, `P(A)` and `\\max f` names a number; None for any other notation."""
    applied, absolute = _APPLIED.fullmatch(text), _ABSOLUTE.fullmatch(text)
    if (_WHOLE_QUANTITY.fullmatch(text) and not _MULTIPLE.search(text)) or (
        applied and formulas.nesting(applied[1][1:-1]) + 1 == formulas.nesting(applied[1])
    ):
        return True
    if absolute and (is_symbol(absolute[1]) or re.search(r"\\(?:cup|cap|setminus)", absolute[1])):
        return absolute[1].strip() not in ("x", "y")
    return None


def sides(text: str) -> list[str]:
    """The sides of an equation, or the whole text; signs inside brackets, as in `P(X=2)`, do not count."""
    parts, depth, start, seen = [], 0, 0, 0
    for sign in _EQUALS.finditer(text):
        depth += sum(text.count(opening, seen, sign.start()) for opening in "([{")
        depth -= sum(text.count(closing, seen, sign.start()) for closing in ")]}")
        seen = sign.start()
        if depth == 0:
            parts.append(text[start : sign.start()])
            start = sign.end()
    return [side.strip() for side in [*parts, text[start:]]]


def is_symbol(text: str) -> bool:
    r"""Whether a text is one symbol: `x`, `a_n`, `f(x)`, `\\angle ABC`, `AB`, a word."""
    return bool(_SYMBOL.fullmatch(text)) and not _SQUARED.search(text) and not _TIMES_ITSELF.match(text)


def is_value(text: str) -> bool:
    """Whether a text has no letters that stand for something; those of sums, integrals and limits are bound."""
    return bool(_BOUND.match(text)) or not re.search(
        r"[a-zA-Z]", re.sub(r"(?<![a-zA-Z])[ei](?![a-zA-Z])", "", _COMMAND.sub("", _GREEK.sub("x", text)))
    )


def exact_and_rounded(text: str) -> tuple[str, str]:
    r"""The two sides of `x = \frac{1}{3} \approx 0.333`, without the symbol; the second is empty for anything else."""
    exact, sign, after = text.partition("\\approx")
    side = answer_side(exact) if sign else None
    if not side or not (is_value(side) and is_value(after)) or _contradict([side, after], is_rounded=True):
        return text, ""
    return side, after.strip()


def answer_side(text: str, *, quantities: bool = False) -> str | None:
    """The side of an equation that is its answer: the other one is a symbol or a value; None if there is none.

    With `quantities`, also where the other sides are what a value is stated of (`is_quantity`).
    """
    parts = sides(text)
    if len(parts) == 1:
        return text
    if _contradict(parts, is_rounded=bool(_ROUNDED_SIGN.search(text))):
        return None
    if quantities and not is_symbol(parts[0]):
        if len(parts) == 2 and (_is_named_quantity(parts[0]) or (_BOUND.match(parts[0]) and not is_symbol(parts[1]))):
            return parts[1]
        for stated, others in ((parts[-1], parts[:-1]), (parts[0], parts[1:])):
            if (
                is_value(stated)
                and all(is_quantity(one) or is_value(one) for one in others)
                and not all(map(is_value, others))
            ):
                return stated
    if len(parts) == 2 and is_symbol(parts[1]) and is_value(parts[0]) and not is_value(parts[1]):
        return parts[0]
    middle = [one for one in parts[1:-1] if not is_value(one) and not is_symbol(one)]
    if is_symbol(parts[0]) and (not middle or (quantities and is_value(parts[-1]) and all(map(is_quantity, middle)))):
        return parts[-1]
    if all(map(is_value, parts)):
        return parts[-1]
    return None


def _contradict(parts: list[str], is_rounded: bool) -> bool:
    """Whether sides that are numbers differ, by more than one that was rounded does: `6+2=7`."""
    texts = [part.strip() for part in parts]
    values = [_values_of(text) for text in texts]
    numbers = [(one[0], text) for one, text in zip(values, texts, strict=True) if one is not None and len(one) == 1]
    # `1+10^{-40}` has too many digits for a closed form
    is_wide = None in values and not any("." in text for text in texts)
    read = [one for one in map(formulas.read, texts) if one and not one.symbols and (one.imaginary or is_wide)]
    if not is_rounded and any(values_at_points.compare(one, read[-1]) is False for one in read[:-1]):
        return True
    return any(abs(number - numbers[-1][0]) > _rounding(part, *numbers[-1], is_rounded) for number, part in numbers)


def _values_of(text: str) -> list[Decimal] | None:
    """The values of a closed form, also of one with factorials; None for any other text."""
    values = closed_forms.closed_form_values(normalise(text))
    if values is None and re.search(r"!|\\binom", text) and (read := formulas.read(text.strip())) and not read.symbols:
        value = values_at_points.decimal_value(read)
        return None if value is None else [value]
    return values


def _rounding(text: str, value: Decimal, stated: str, is_rounded: bool) -> Decimal:
    """By how much a number and its stated value may differ: not at all where both are exact."""
    if is_rounded:
        return abs(value) / ROUNDED
    if "." in text + stated:
        unit = 3 * Decimal(10) ** -len(stated.partition(".")[2]) if _DECIMAL.fullmatch(stated) else Decimal(0)
        return min(abs(value) / ROUNDED, max(unit, abs(value) / 500))
    whole = text.isdecimal() or stated.isdecimal()
    return min(Decimal("0.5"), abs(value) / ROUNDED) if whole else abs(value) * Decimal("1e-30")


def right_sides(gold: str, answer: str) -> tuple[str, str] | None:
    """The right sides of `f(x)=…` and `y=…` or `f(t)=…`, in one variable; None for other equations."""
    (name, ours), (other, theirs) = sides(gold), sides(answer)
    first, second = _OF_ONE.fullmatch(name), _OF_ONE.fullmatch(other)
    if first and second and first[1] == second[1] and first[2] != second[2]:
        free, bound = first[2], second[2]
        if re.search(_ALONE.format(free), theirs):
            return None
        return ours, re.sub(_ALONE.format(bound), free, theirs)
    if (first and first[1] == other.strip()) or (second and second[1] == name.strip()):
        return ours, theirs
    symbols = is_symbol(name) and is_symbol(other)
    return (ours, theirs) if symbols and {name, other} & {"y"} and "(" in name + other else None


def has_relation(text: str) -> bool:
    """Whether a text states a relation other than equality."""
    return bool(_OTHER.search(text))


def compare_residues(gold: str, answer: str) -> bool | None:
    """Compare two residues with their modulus; None if the gold answer is none."""
    expected, stated = _CONGRUENT.fullmatch(gold.strip()), _CONGRUENT.fullmatch(answer.strip())
    if not expected or not stated:
        return None
    modulus = int(expected[2])
    return modulus == int(stated[2]) and modulus > 0 and (int(expected[1]) - int(stated[1])) % modulus == 0
