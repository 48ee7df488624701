r"""Notation that the LaTeX parser does not know or misreads, written as it reads it.

Plain text (`sqrt(3)`, `2**10`, `1.5e3`), spaces between thousands, mixed numbers, binomials as `C_n^k`, degrees.
"""

from __future__ import annotations

import math
import re
import unicodedata

_SIGNS = str.maketrans({
    "×": r"\times ", "·": r"\cdot ", "÷": "/", "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ",
    "∪": r"\cup ", "∈": r"\in ", "−": "-", "–": "-", "²": "^{2}", "³": "^{3}", "½": r"\frac{1}{2}", "√": r"\sqrt ",
    "°": r"^{\circ}", "≡": r"\equiv ", "≈": r"\approx ", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "~": " ", "$": "",
    "¢": r"\text{ cents}",
})  # fmt: skip
_SIGNS |= {
    ord(sign): "\\frac{{{}}}{{{}}}".format(*unicodedata.normalize("NFKC", sign).split("\u2044"))
    for sign in "¼¾⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
}
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"
_SUPERSCRIPT = re.compile(f"[{_SUPERSCRIPTS}]+")
_REPEATING = re.compile(r"(\d{0,15})\.(\d{0,15})\\(?:overline|bar|dot)\s*\{?(\d{1,15})\}?")
_STYLE = re.compile(
    r"\\(?:left|right|displaystyle|[bB]igg?[lr]?)(?![a-zA-Z])|(?<!\\)\\[()!]|\\\[|\\\]|(?<=\d)(?:\{(?:,|\\[,;:!])\}|\\text\s*\{,\})(?=\d{3}(?!\d))"
)
_NUMPY = re.compile(r"\bnp\.(?=[a-z])")  # in Minerva's golds
_SPACE = re.compile(r"(?<!\\)\\[,;: ]|\\q?quad(?![a-zA-Z])|\s+")
_THOUSANDS = re.compile(r"([-+]?\d{1,3})((?: \d{3})+)(?!\d)")
_FRACTION = re.compile(r"\\[dtc]frac(?![a-zA-Z])")
_SHORT_FRACTION = re.compile(r"\\frac\s*(\d)\s*(\d)")
_MIXED = re.compile(r"([-+]?)(\d{1,9})(?:\s*\\frac\s*\{(\d{1,9})\}\s*\{(\d{1,9})\}|\s+(\d{1,9})/(\d{1,9}))(?![\d^])")
_PRODUCT = re.compile(
    r"([-+]?\d{1,30}(?:\.\d{1,30})?)\s*(?:x|\*|\\times|\\cdot)\s*10\s*\^\s*[{(]?\s*([-+]?\d{1,3})(?!\d)\s*[})]?"
)
_E = re.compile(
    r"([-+]?\d{1,30}(?:\.\d{1,30})?)(?:[eE]|\\(?:text|mathrm)\s*\{\s*[eE]\s*\})([-+]?\d{1,3})(?![\da-zA-Z^])"
)
_CUBE_ROOT = re.compile(r"(?<![a-zA-Z])\\?cbrt\s*\(([^()]{1,99})\)")
_BRACKETED = re.compile(r"(?:(?<![a-zA-Z])\\?sqrt|\^)\s*\(")
_ROOT = re.compile(r"(?<![a-zA-Z\\])sqrt")
_SHORT_ROOT = re.compile(r"\\sqrt\s*(\d++)")
_POWER = re.compile(r"\^\s*(-?\d+\.\d+|-?\d\d+|-\d)")
_FUNCTION = re.compile(r"(?<![a-zA-Z\\])(arcsin|arccos|arctan|sin|cos|tan|cot|sec|csc|ln|log|exp|pi)(?![a-zA-Z])")
_PERCENT = re.compile(r"(?<=[\d\s}])\s*(?:\\(?:text|mathrm)\s*\{\s*percent\s*\}|percent(?![a-zA-Z]))")
_NATURAL = re.compile(r"\\log\s*_\s*(?:e|\{\s*e\s*\})")
_ARGUMENT = r"\s*(?:\{([^{}]{1,20})\}|(\w))"
_BINOMIALS = [
    (re.compile(rf"(?:\{{\}}|(?<![\w}}\\])){sign}{_ARGUMENT}\s*C\s*_{_ARGUMENT}"), False) for sign in (r"\^", "_")
] + [
    (re.compile(rf"(?<![a-zA-Z\\])C\s*_{_ARGUMENT}\s*\^{_ARGUMENT}"), False),
    (re.compile(rf"(?<![a-zA-Z\\])C\s*\^{_ARGUMENT}\s*_{_ARGUMENT}"), True),
    (re.compile(r"(?<![a-zA-Z\\])C\((\w{1,9})()\s*,\s*(\w{1,9})()\)"), False),
    (re.compile(r"(?<![\w\\])(\d{1,9})()\s*C\s*(\d{1,9})()(?!\w)"), False),
]
_ARRANGEMENTS = re.compile(r"(?<![a-zA-Z\\])[AP]\s*_\s*\{?(\d{1,2})\}?\s*\^\s*\{?(\d{1,2})\}?(?!\d)")
_LARGE = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_LARGE_WORD = re.compile(rf"(?<=\d)\s*(?:\\(?:text|mathrm)\s*\{{\s*)?({'|'.join(_LARGE)})(?![a-zA-Z])\s*\}}?")
_OHM = re.compile(r"(?<=[\d\s}])\\(?:Omega|ohm)(?![a-zA-Z])\s*$")
_DEGREE = (
    r"\s*(?:\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![a-zA-Z]))|\\degree(?![a-zA-Z])|\\(?:text|mathrm)\s*\{\s*degrees?\s*\}"
    r"|\^\s*\{?\s*\\(?:text|mathrm)\s*\{\s*o\s*\}\s*\}?|\^\s*(?:\{\s*o\s*\}|o(?![a-zA-Z]))|(?<![a-zA-Z])deg(?:rees?)?(?![a-zA-Z]))"
)
_ANGLE = re.compile(rf"(\d{{1,9}}(?:\.\d{{1,9}})?){_DEGREE}")
_DEGREES = re.compile(rf"{_DEGREE}(?:\s*(?:[CF](?![a-zA-Z])|\\(?:text|mathrm)\s*\{{\s*[CF]\s*\}}))?")
_ARC_MINUTES = re.compile(rf"(\d{{1,9}}){_DEGREE}\s*(\d{{1,2}})\s*(?:'|′|\^\s*\{{?\s*\\prime(?![a-zA-Z])\s*\}}?)")
_TRIGONOMETRIC = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![a-zA-Z])")


def _brace_arguments(text: str) -> str:
    r"""`sqrt(…)` as `\sqrt{…}` and `^(…)` as `^{…}`, in one pass over the brackets."""
    opened, partner = [], {}
    for index, character in enumerate(text):
        if character == "(":
            opened.append(index)
        elif character == ")" and opened:
            partner[opened.pop()] = index
    characters = list(text)
    for match in _BRACKETED.finditer(text):
        if (index := match.end() - 1) in partner:
            characters[index], characters[partner[index]] = "{", "}"
    return _SHORT_ROOT.sub(r"\\sqrt{\1}", _ROOT.sub(r"\\sqrt", "".join(characters)))


def _mixed_number(match: re.Match[str]) -> str:
    sign, whole = match[1], match[2]
    above, below = match[3] or match[5], match[4] or match[6]
    if int(above) >= int(below):
        return match[0]  # a product
    return f"{sign}({whole}+\\frac{{{above}}}{{{below}}})"


def _write_binomials(text: str) -> str:
    for pattern, swapped in _BINOMIALS:
        if "C" not in text:
            break

        def written(match: re.Match[str], swapped: bool = swapped) -> str:
            first, second = match[1] or match[2], match[3] or match[4]
            above, below = (second, first) if swapped else (first, second)
            return f"\\binom{{{above}}}{{{below}}}"

        text = pattern.sub(written, text)
    return text


def _repeating_decimal(match: re.Match[str]) -> str:
    r"""`0.1\overline{6}` as a fraction."""
    whole, fixed, period = match[1] or "0", match[2], match[3]
    above = int(whole + fixed + period) - int(whole + fixed)
    return f"(\\frac{{{above}}}{{{10 ** len(fixed) * (10 ** len(period) - 1)}}})"


def _superscript(match: re.Match[str]) -> str:
    return "^{" + "".join("0123456789-"[_SUPERSCRIPTS.index(sign)] for sign in match[0]) + "}"


def has_degrees(text: str) -> bool:
    """Whether an answer is an angle in degrees."""
    return bool(_DEGREES.search(text.replace("°", "^{\\circ}"))) and not _TRIGONOMETRIC.search(text)


def plain(text: str) -> str:
    """An answer without styles, in notation that the parser reads as it is meant."""
    text = (
        _SPACE.sub(
            " ",
            _STYLE.sub("", _SUPERSCRIPT.sub(_superscript, _NUMPY.sub("", text.replace("\\$", ""))).translate(_SIGNS)),
        )
        .strip()
        .rstrip(".,;")
        .strip()
    )
    text = _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", _FRACTION.sub(r"\\frac", text.replace("**", "^").replace(":=", "=")))
    if match := _THOUSANDS.match(text):
        text = match[1] + match[2].replace(" ", "") + text[match.end() :]
    for pattern in (_PRODUCT, _E):
        if match := pattern.match(text):
            text = f"{match[1]}\\cdot10^{{{int(match[2])}}}{text[match.end() :]}"
    if match := _MIXED.match(text):
        text = _mixed_number(match) + text[match.end() :]
    text = _REPEATING.sub(_repeating_decimal, text)
    text = _CUBE_ROOT.sub(r"\\sqrt[3]{\1}", text)
    text = _LARGE_WORD.sub(lambda match: f"\\cdot10^{{{_LARGE[match[1]]}}} ", _OHM.sub("Ω", text))
    text = _ARRANGEMENTS.sub(lambda match: str(math.perm(int(match[1]), int(match[2]))), text)
    text = _ARC_MINUTES.sub(r"(\1+\\frac{\2}{60})", text)
    text = _FUNCTION.sub(r"\\\1", _POWER.sub(r"^{\1}", _brace_arguments(text)))
    text = _NATURAL.sub(r"\\ln", _PERCENT.sub(r"\\%", _write_binomials(text)))
    if _TRIGONOMETRIC.search(text):
        text = _ANGLE.sub(r"(\\frac{\1\\pi}{180})", text)
    return _DEGREES.sub("", text).strip()
