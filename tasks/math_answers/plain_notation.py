r"""Notation that the LaTeX parser does not know or misreads, written as it reads it.

Plain text (`sqrt(3)`, `2**10`, `1.5e3`), spaces between thousands, mixed numbers, binomials as `C_n^k`, degrees.
"""

from __future__ import annotations

import math
import re
import unicodedata

from tasks.math_answers.exact_comparison import half_width

_SIGNS = str.maketrans({
    "×": r"\times ", "·": r"\cdot ", "÷": "/", "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ",
    "∪": r"\cup ", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}", "∖": r"\setminus ",
    "∅": r"\emptyset ", "∈": r"\in ", "−": "-", "–": "-", "²": "^{2}", "³": "^{3}", "½": r"\frac{1}{2}", "√": r"\sqrt ",
    "°": r"^{\circ}", "≡": r"\equiv ", "≈": r"\approx ", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "~": " ", "$": "",
    "¢": r"\text{ cents}", "⩾": r"\ge ", "⩽": r"\le ", "≧": r"\ge ", "≦": r"\le ", "∶": ":", "℃": r"^{\circ}C",
    "℉": r"^{\circ}F", "⋅": r"\cdot ", "∙": r"\cdot ", "∩": r"\cap ", "⁄": "/", "±": r"\pm ", "∓": r"\mp ",
    "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ", "∠": r"\angle ", "∛": r"\sqrt[3] ",
    "∧": r"\land ", "∨": r"\lor ", "∑": r"\sum ", "⟨": r"\langle ", "⟩": r"\rangle ",
})  # fmt: skip
_SIGNS |= {
    ord(sign): "\\frac{{{}}}{{{}}}".format(*unicodedata.normalize("NFKC", sign).split("\u2044"))
    for sign in "¼¾⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
}
_CHINESE_UNITS = {
    "千米": "km", "公里": "km", "厘米": "cm", "毫米": "mm", "分米": "dm", "米": "m", "千克": "kg", "公斤": "kg",
    "克": "g", "毫升": "ml", "升": "l", "秒": "s", "分钟": "min", "小时": "h", "天": "day",
}  # fmt: skip
_CHINESE_UNIT = re.compile(rf"(?<=[\d}}])\s*(平方|立方)?({'|'.join(_CHINESE_UNITS)})(?:(?:/|每)(小?时|秒|分钟?))?$")
_CHINESE_TIMES = {"小时": "h", "时": "h", "秒": "s", "分": "min", "分钟": "min"}
_CHINESE_WORD = re.compile(
    r"(?<=[\d}])\s*\(?[^\W\da-zA-Z或和与及万亿千百十分之不非错误的以成折半多余到至]{1,4}(?:/[^\W\da-zA-Z]{1,4})?\)?$"
)
_CHINESE_BEFORE = re.compile(
    r"^(?:一?共有?|总共|约|大约|故|因此|所以|[^\W\da-zA-Z不非没无错误大小高低少多倍半方根]{0,9}?(?:[等]于|[是为有])|(?:最[大小高低]|极[大小])值[是为])\s*[:：]?\s*(?=[-a-zA-Z\d\\(\[{|])"
)
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"
_SUPERSCRIPT = re.compile(f"[{_SUPERSCRIPTS}]+")
_REPEATING = re.compile(r"(\d{0,15})\.(\d{0,15})\\(?:overline|bar|dot)\s*\{?(\d{1,15})\}?")
_STYLE = re.compile(
    r"\\color\s*\{\w{1,20}\}(?!\s*\{)|^\{\}(?![_^])|(?<=\d)\{\}$|"
    r"\\(?:left|right|displaystyle|bf|tiny|small|(?:normal|script)size|large|Large|LARGE|huge|Huge|[bB]igg?[lr]?)(?![a-zA-Z])|(?<!\\)\\[()!]|\\\[|\\\]|(?<=\d)(?:\{(?:,|\\[,;:!])\}|\\text\s*\{,\})(?=\d{3}(?!\d))"
)
_NUMPY = re.compile(r"\bnp\.(?=[a-z])")  # in Minerva's golds
_SPACE = re.compile(r"(?<!\\)\\[,;: ]|\\q?quad(?![a-zA-Z])|\s+")
_THOUSANDS = re.compile(r"([-+]?\d{1,3})((?: \d{3})+)(?!\d)")
_FRACTION = re.compile(r"\\[dtc]frac(?![a-zA-Z])")
_SHORT_FRACTION = re.compile(r"\\frac\s*(\d)\s*(\d)")
_HALF_SHORT = [(re.compile(r"\\frac\s*(\d)\s*(?=\{)"), r"\\frac{\1}")]
_HALF_SHORT += [(re.compile(r"(\\frac\s*\{[^{}]*\})\s*(\d)"), r"\1{\2}")]
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
_LOG_OF_BASE = re.compile(r"(?<![a-zA-Z\\])log(2|10)\s*\(")
_PERCENT = re.compile(r"(?<=[\d\s}])\s*(?:\\(?:text|mathrm)\s*\{\s*percent\s*\}|(?:per ?cent|pct)(?![a-zA-Z]))")
_NATURAL = re.compile(r"\\log\s*_\s*(?:e|\{\s*e\s*\})")
_ARGUMENT = r"\s*(?:\{([^{}]{1,20})\}|(\w))"
_BINOMIALS = [
    (re.compile(rf"(?:\{{\}}|(?<![\w}}\\])){sign}{_ARGUMENT}\s*C\s*_{_ARGUMENT}"), False) for sign in (r"\^", "_")
] + [
    (re.compile(r"(?<![a-zA-Z\\])C\((\w{1,9})()\s*,\s*(\w{1,9})()\)"), False),
    (re.compile(r"(?<![\w\\])(\d{1,9})()\s*C\s*(\d{1,9})()(?!\w)"), False),
]
# Whole answers alone: in a formula, `A_1^2` is the square of a symbol
_CHOICES = re.compile(rf"([ACP])\s*(?:_{_ARGUMENT}\s*\^{_ARGUMENT}|\^{_ARGUMENT}\s*_{_ARGUMENT})")
_NUMBER_SET = re.compile(
    r"(?:\\mathbb\s*(?:\{\s*([NZQRC])\s*\}|([NZQRC])(?![a-zA-Z]))|\\([NZQRC])(?![a-zA-Z]))(\s*[_^]\s*(?:\{[^{}]{1,20}\}|\\?\w+\s*\d|[-+*\d]))?"
)
_PARTS_OF_SETS = {
    "^+": "^{+}", "_+": "^{+}", "_>0": "^{+}", "_>=1": "^{+}", "^-": "^{-}", "_-": "^{-}", "_<0": "^{-}",
    "_>=0": "_{\\ge 0}", "_<=0": "_{\\le 0}", "^*": "^{*}", "_!=0": "^{*}",
}  # fmt: skip
_SHORT_SIGNS = [(r"\\geq(?:slant)?|\\ge", ">="), (r"\\leq(?:slant)?|\\le", "<="), (r"\\neq?", "!="), (r"\\gt", ">")]
_SHORT_SIGNS += [(r"\\lt", "<"), (r"\\ast|\\times|\\star", "*"), (r"[\s{}]", "")]
_IN_WORDS = re.compile(
    r"^(?:\\text\s*\{\s*)?(?:all |the )*(?:(positive|negative|non-?negative) )?"
    r"(integers|rational numbers|rationals)\s*\}?$",
    re.IGNORECASE,
)
_ZERO_JOINED = re.compile(r"^\\mathbb\{([NZQC])\}(\^\{\+\})?\s*(\\cup|\\setminus|\\backslash|-)\s*\\\{\s*0\s*\\\}$")
_FOR_INTEGERS = re.compile(
    r"(?<=[\w}).])\s*,?\s*(?:\\text\s*\{\s*,?\s*(?:for|where)\s+(?:(?:an|any|all|some|every)\s+)?integers?\s*\}\s*([kmn])"
    r"|(?:\\text\s*\{\s*,?\s*(?:for|where)\s*\}\s*|[,(]\s*)([kmn])\s*\\in\s*\\mathbb\s*\{?\s*Z\s*\}?\s*\)?)$"
)
_OVER_SET = re.compile(  # a remark on a formula: `, x \in \mathbb{R}`
    r"(?<=[\w}).])\s*,\s*(?:\\text\s*\{\s*(?:for|where)\s*\}\s*)?\(?[a-zA-Z](?:\s*,\s*[a-zA-Z])*\s*\\in\s*"
    r"\\mathbb\s*\{?\s*[NQRC]\s*\}?\)?$"
)
_INFINITY = re.compile(r"(?<![a-zA-Z\\])(?:oo|inf|[iI]nfinity)(?![a-zA-Z(_])")
# What sympy prints
_SYMPY_INTERVAL = re.compile(r"Interval(\.open|\.Lopen|\.Ropen)?\s*\(([^,()]+),([^,()]+)\)")
_SYMPY_SET = re.compile(r"FiniteSet\s*\((.*)\)")
_SYMPY_RELATION = re.compile(r"(Eq|Ne|Gt|Ge|Lt|Le)\s*\(([^,]+),([^,]+)\)")
_SYMPY_SIGNS = {"Eq": "=", "Ne": r"\ne ", "Gt": ">", "Ge": r"\ge ", "Lt": "<", "Le": r"\le "}
_SYMPY_UNION = re.compile(r"Union\s*\((.*)\)")
_SYMPY_SUM = re.compile(r"Sum\s*\((.+),\s*\((\w+),([^,()]+),([^,()]+)\)\)")
_SYMPY_FUNCTION = re.compile(r"(?<![a-zA-Z\\])([a-zA-Z])\{\(([^{}]*)\)\}")  # `f{\left(x \right)}`
_SYMPY_NAMES = {"EmptySet": r"\emptyset", "set()": r"\emptyset", "lamda": r"\lambda", "S.EmptySet": r"\emptyset"}
_SYMPY_NUMBER = re.compile(r"(?<![a-zA-Z\\])S\((\d+)\)")
_SYMPY_GAMMA = re.compile(r"(?<![a-zA-Z\\])gamma(?=\()")
_OVER = re.compile(r"\{([^{}]*?)\s*\\over(?![a-zA-Z])\s*([^{}]*)\}|^([^{}\\]*?)\s*\\over(?![a-zA-Z])\s*([^{}\\]*)$")
_GREEK_WORD = re.compile(
    r"(?<![a-zA-Z\\])(Delta|Theta|Lambda|Sigma|Phi|Psi|Omega|alpha|beta|gamma|delta|epsilon|theta|lambda|mu|nu|rho|sigma|tau|phi|chi|psi|omega)(?![a-zA-Z])"
)
_MATRIX = re.compile(r"(?:Matrix|matrix|np\.array|array)\s*\(\s*(\[.*\])\s*\)", re.DOTALL)
_LARGE = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_LARGE_WORD = re.compile(rf"(?<=\d)\s*(?:\\(?:text|mathrm)\s*\{{\s*)?({'|'.join(_LARGE)})(?![a-zA-Z])\s*\}}?")
_OHM = re.compile(r"(?<=[\d\s}])\\(?:Omega|ohm)(?![a-zA-Z])\s*$")
_DEGREE = (
    r"\s*(?:\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![a-zA-Z]))|\\degree(?![a-zA-Z])|\\(?:text|mathrm)\s*\{\s*degrees?\s*\}"
    r"|\^\s*\{?\s*\\(?:text|mathrm)\s*\{\s*o\s*\}\s*\}?|\^\s*(?:\{\s*o\s*\}|o(?![a-zA-Z]))|(?<![a-zA-Z\\])deg(?:rees?)?(?![a-zA-Z]))"
)
_ANGLE = re.compile(rf"(\d{{1,9}}(?:\.\d{{1,9}})?){_DEGREE}")
_DEGREES = re.compile(rf"{_DEGREE}(?:\s*(?:([CF])(?![a-zA-Z])|\\(?:text|mathrm)\s*\{{\s*([CF])\s*\}}))?")
_GOES_ON, _PART_ENDS = (
    re.compile(r"\s*[\d{^_]"),
    re.compile(r"\s*(?:$|[,;)\]]|\\(?:\}|text|mbox|mathrm|c[au]p)|and|or)"),
)
_ANGLE_NAME = re.compile(r"\\angle\s*((?:[A-Z](?:_\{?\d\}?)?\s*){3})")
_ARC_MINUTES = re.compile(rf"(\d{{1,9}}){_DEGREE}\s*(\d{{1,2}})\s*(?:'|′|\^\s*\{{?\s*\\prime(?![a-zA-Z])\s*\}}?)")
_TRIGONOMETRIC = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![a-zA-Z])|(?<![a-zA-Z])cis(?![a-zA-Z])")


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


def _unit_in_english(match: re.Match[str]) -> str:
    power = {"平方": "square ", "立方": "cubic "}.get(match[1] or "", "")
    rate = f"/{_CHINESE_TIMES[match[3]]}" if match[3] else ""
    return f"\\text{{ {power}{_CHINESE_UNITS[match[2]]}{rate}}}"


def _without_sympy(text: str) -> str:
    """`Interval(0, 1)`, `Matrix([[1, 2]])`, `Eq(x, 2)` and the names of Greek letters in the notation of LaTeX."""
    if match := _SYMPY_INTERVAL.fullmatch(text):
        low, high = ("(" if match[1] in (".open", ".Lopen") else "["), (")" if match[1] in (".open", ".Ropen") else "]")
        return f"{low}{match[2]},{match[3]}{high}"
    if match := _SYMPY_SET.fullmatch(text):
        return f"\\{{{match[1]}\\}}"
    if match := _SYMPY_RELATION.fullmatch(text):
        return f"{match[2]}{_SYMPY_SIGNS[match[1]]}{match[3]}"
    if match := _SYMPY_UNION.fullmatch(text):
        return " \\cup ".join(map(_without_sympy, re.split(r",\s*(?=[IFU])", match[1])))
    if match := _SYMPY_SUM.fullmatch(text):
        return f"\\sum_{{{match[2]}={match[3]}}}^{{{match[4]}}}({match[1]})"
    if (match := _MATRIX.fullmatch(text)) and "[" not in match[1][1:]:
        return "\\begin{pmatrix}" + match[1][1:-1].replace(",", "\\\\") + "\\end{pmatrix}"
    text = _SYMPY_NUMBER.sub(r"\1", _MATRIX.sub(r"\1", _SYMPY_NAMES.get(text, text)))
    text = _SYMPY_GAMMA.sub(r"\\operatorname{Gamma}", text)
    return text if "\\" in text else _GREEK_WORD.sub(r"\\\1", text)


def _number_set(match: re.Match[str]) -> str:
    r"""`\mathbb{Z}_{>0}` as `\mathbb{Z}^{+}`, and the like."""
    letter, script = match[1] or match[2] or match[3], match[4] or ""
    for pattern, sign in _SHORT_SIGNS:
        script = re.sub(pattern, sign, script)
    kind = _PARTS_OF_SETS.get(script)
    if letter == "N" and kind in ("^{+}", "^{*}"):
        letter, kind = "Z", "^{+}"
    if letter == "N" and script == "_0":
        letter, kind = "Z", "_{\\ge 0}"
    return match[0] if script and kind is None else f"\\mathbb{{{letter}}}{kind or ''}"


def _set_in_words(match: re.Match[str]) -> str:
    sign = {"p": "^{+}", "ne": "^{-}", "no": "_{\\ge 0}"}
    kind = (match[1] or "").lower()
    letter = "Z" if match[2].lower().startswith("i") else "Q"
    return f"\\mathbb{{{letter}}}{sign.get(kind[:1], sign.get(kind[:2], ''))}"


def _joined_zero(match: re.Match[str]) -> str:
    r"""`\mathbb{N}\cup\{0\}` as `\mathbb{Z}_{\ge 0}`, `\mathbb{C}\setminus\{0\}` as `\mathbb{C}^{*}`."""
    letter, positive, sign = match.groups()
    if sign == "\\cup":
        return f"\\mathbb{{{'Z' if letter == 'N' else letter}}}_{{\\ge 0}}" if positive or letter == "N" else match[0]
    return match[0] if positive else "\\mathbb{Z}^{+}" if letter == "N" else f"\\mathbb{{{letter}}}^{{*}}"


def _write_choices(text: str) -> str:
    """A whole answer such as `C_5^2` or `A_{5}^{2}` as a binomial or a number."""
    match = _CHOICES.fullmatch(text)
    if match is None:
        return text
    total, chosen = match[2] or match[3] or match[8] or match[9], match[4] or match[5] or match[6] or match[7]
    if not (total.isdigit() and chosen.isdigit()):
        return f"\\binom{{{total}}}{{{chosen}}}" if match[1] == "C" else text
    if not len(total) < 4 > len(chosen) or int(total) < int(chosen):
        return text
    return f"\\binom{{{total}}}{{{chosen}}}" if match[1] == "C" else str(math.perm(int(total), int(chosen)))


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


def _without_degree(match: re.Match[str]) -> str:
    """Nothing in place of a sign of degrees behind a number, or behind the whole of an answer or of its part."""
    before, after = match.string[: match.start()].rstrip()[-1:], match.string[match.end() :]
    behind = before.isdigit() and not _GOES_ON.match(after)
    return "" if behind or (before and _PART_ENDS.match(after)) else match[0]


def temperature_scale(text: str) -> str:
    """`C` or `F` of an answer in such degrees; empty for any other."""
    match = _DEGREES.search(text.translate(_SIGNS))
    return (match[1] or match[2] or "") if match else ""


def plain(text: str) -> str:
    """An answer without styles, in notation that the parser reads as it is meant."""
    text = (
        _SPACE.sub(
            " ",
            _STYLE.sub(
                "",
                _SUPERSCRIPT.sub(_superscript, _NUMPY.sub("", half_width(text).replace("\\$", ""))).translate(_SIGNS),
            ),
        )
        .strip()
        .rstrip(".,;")
        .strip()
    )
    if "\\over" in text:
        text = _OVER.sub(lambda match: f"\\frac{{{match[1] or match[3]}}}{{{match[2] or match[4]}}}", text)
    text = _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", _FRACTION.sub(r"\\frac", text.replace("**", "^").replace(":=", "=")))
    for pattern, braced in _HALF_SHORT:
        text = pattern.sub(braced, text)
    if not text.isascii():
        text = _CHINESE_BEFORE.sub("", text)
        text = _CHINESE_WORD.sub(r"\\text{ units}", _CHINESE_UNIT.sub(_unit_in_english, text))
    if match := _THOUSANDS.match(text):
        text = match[1] + match[2].replace(" ", "") + text[match.end() :]
    text = _SYMPY_FUNCTION.sub(r"\1(\2)", text)
    for pattern in (_PRODUCT, _E):
        if match := pattern.match(text):
            text = f"{match[1]}\\cdot10^{{{int(match[2])}}}{text[match.end() :]}"
    if match := _MIXED.match(text):
        text = _mixed_number(match) + text[match.end() :]
    text = _REPEATING.sub(_repeating_decimal, text)
    text = _CUBE_ROOT.sub(r"\\sqrt[3]{\1}", text)
    text = _LARGE_WORD.sub(lambda match: f"\\cdot10^{{{_LARGE[match[1]]}}} ", _OHM.sub("Ω", text))
    if text[:1] == "{" and text[-1:] == "}" and "," in text and text.count("{") == 1:
        text = ", ".join(text[1:-1].split(","))  # a list or a set
    if integers := _FOR_INTEGERS.search(text):
        text = re.sub(rf"(?<![a-zA-Z\\]){integers[1] or integers[2]}(?![a-zA-Z])", "k", text)
    text = _NUMBER_SET.sub(_number_set, _IN_WORDS.sub(_set_in_words, _OVER_SET.sub("", _FOR_INTEGERS.sub("", text))))
    text = _ZERO_JOINED.sub(_joined_zero, text)
    text = _INFINITY.sub(r"\\infty", _write_choices(_without_sympy(text)))
    text = _ARC_MINUTES.sub(r"(\1+\\frac{\2}{60})", text)
    text = _LOG_OF_BASE.sub(r"\\log_{\1}(", text)
    text = _FUNCTION.sub(r"\\\1", _POWER.sub(r"^{\1}", _brace_arguments(text)))
    text = _NATURAL.sub(r"\\ln", _PERCENT.sub(r"\\%", _write_binomials(text)))
    text = _ANGLE_NAME.sub(lambda match: f"\\angle {''.join(match[1].split())}", text)
    if _TRIGONOMETRIC.search(text):
        text = _ANGLE.sub(r"(\\frac{\1\\pi}{180})", text)
    return _DEGREES.sub(_without_degree, text).strip()
