r"""What math-verify would misread in an answer, written so that it does not.

It takes letters at the end of an expression for units and drops them: `x=3t` is x=3 to it, `\frac{37}{4}m` is 37/4 and
`\sin t` is nothing. That is right for `5 m` where the answer is a number, and wrong where the answer has symbols.
Dollar signs, ties (`~`), numpy's `np.arcsin` (in Minerva's golds), and `3.` for 3 it cannot read.
"""

from __future__ import annotations

import re

_COMMAND = re.compile(r"\\(?:text|mbox|mathrm|operatorname)\s*\{[^{}]*\}|\\[a-zA-Z]+")
_SYMBOL = re.compile(r"(?<![a-zA-Z])[a-zA-Z]{1,3}(?![a-zA-Z])")
_LAST = re.compile(r"(\\[a-zA-Z]++|[^a-zA-Z\\]|^)((?:\s?[a-zA-Z]){1,3})$")
_UNITS = {"cm", "mm", "km", "kg", "mg", "ml", "ft", "in", "hr", "min", "sec", "deg", "mph", "kJ", "mL", "dm", "nm"}
_DIFFERENTIAL = re.compile(r"(?<![a-zA-Z\\])d(?=\s*(?:[a-zA-Z](?![a-zA-Z])|\\[a-zA-Z]))")  # in an integral alone
_RATE = re.compile(
    r"\\frac\s*\{\s*d\s*([a-zA-Z])\s*\}\s*\{\s*d\s*([a-zA-Z])\s*\}"
)  # the parser's derivatives are all 0
_DOT_ONLY = re.compile(r"(?<=\d)\.(?!\d)")


def has_symbols(gold: str) -> bool:
    """Whether a gold answer has letters that stand for something: then the last one is no unit."""
    runs = {run.strip() for run in _SYMBOL.findall(_COMMAND.sub(" ", gold))}
    return bool(runs - _UNITS)


def _keep_last_letters(text: str) -> str:
    match = None if "\\int" in text else _LAST.search(text)
    if match is None or not match[1] or match[2].replace(" ", "") in _UNITS | {"e", "i"}:  # constants, not units
        return text
    letters = "".join(f"{{{letter}}}" for letter in match[2] if not letter.isspace())
    return f"{text[: match.start(2)]} {letters}"  # the space ends a command such as `\cdot`


def for_math_verify(text: str, symbols: bool) -> str:
    """The answer without what math-verify misreads; `symbols` is whether the gold answer has any."""
    text = text.replace("\\$", "").replace("$", "").replace("~", " ").strip()
    text = _DOT_ONLY.sub("", re.sub(r"\bnp\.(?=[a-z])", r"\\", text))
    text = _RATE.sub(r"\\frac{\1_{d}}{\2_{d}}", text)
    if "d" in text and not any(command in text for command in ("\\int", "\\frac{d", "\\oint", "\\dfrac{d")):
        text = _DIFFERENTIAL.sub("{d}", text)
    return _keep_last_letters(text) if symbols else text
