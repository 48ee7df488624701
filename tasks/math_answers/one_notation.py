"""A gold answer and another in one notation: letters, derivatives and angles, without what is around the whole."""

from __future__ import annotations

import re

from tasks.math_answers import answer_parts, numbers_in_words
from tasks.math_answers.plain_notation import has_degrees, plain

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
_RADIANS = re.compile(r"\\pi(?![a-zA-Z])|π|(?<![a-zA-Z\\])rad(?:ians?)?(?![a-zA-Z])")
_PLAIN_LOG = re.compile(r"(?<![a-zA-Z\\{])log(?=\s*\()|\\log(?=\s*\{\s*\\left\()")  # sympy's, to base e
_PLAIN_E = re.compile(r"(?<![\w\\}])E(?=\s*\*)|(?<=\*)\s*E(?!\w)")
_DIFFERENTIATED = r"(?P<name>\\?[a-zA-Z]+)(?P<index>_(?:\w|\{\w+\}))?"
_LEIBNIZ = re.compile(
    rf"\\frac\s*\{{\s*d\s*(?P<second>\^\s*\{{?\s*2\s*\}}?)?\s*{_DIFFERENTIATED}\s*\}}\s*\{{\s*d\s*(?P<by>[a-z])\s*(?:\^\s*\{{?\s*2\s*\}}?)?\s*\}}"
)
_DOTTED = re.compile(
    r"\\(?P<second>d)?dot(?![a-z])\s*(?P<brace>\{)?\s*(?P<name>\\[a-zA-Z]+|[a-zA-Z])(?(brace)\s*\})(?P<index>_(?:\w|\{\w+\}))?"
)
_VARIANT = re.compile(r"\\var(?=(?:epsilon|phi|theta|rho)(?![a-zA-Z]))")


def in_one_alphabet(gold: str, answer: str) -> tuple[str, str]:
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


def in_one_measure(gold: str, answer: str) -> tuple[str, str]:
    r"""Both in plain notation; an angle in degrees beside one in parts of `\pi` as such a part."""
    ours, theirs = plain(gold), plain(answer)
    kinds = [(has_degrees(text), bool(_RADIANS.search(text))) for text in (gold, answer)]
    if kinds == [(True, False), (False, True)]:
        return _in_radians(ours), theirs
    return ours, _in_radians(theirs) if kinds == [(False, True), (True, False)] else theirs


def _in_radians(degrees: str) -> str:
    return ", ".join(f"({one})\\cdot\\frac{{\\pi}}{{180}}" for one in answer_parts.split_outside_brackets(degrees, ","))


def without_wrapping(text: str) -> str:
    """An answer without what is around the whole of it, a number in words as a number, an amount with its unit."""
    text = _ANNOUNCED.sub("", text.strip()).strip()
    whole = _WRAPPED.fullmatch(text.strip("$") if not text.startswith("\\$") else text)
    if whole and (whole[1] is None or answer_parts.is_enclosed(whole[1])):
        text = whole[1][1:-1] if whole[1] else whole[2]
    if amount := _MONEY.fullmatch(text.replace("\\!", "")):
        text = f"{amount[1]}{amount[2]} \\text{{ dollars}}"
    return numbers_in_words.in_digits(text) or text
