"""Units and other words after a number: which are harmless, and which say something else."""

from __future__ import annotations

import re
from fractions import Fraction

from tasks.math_answers import closed_forms, numbers_in_words
from tasks.math_answers.exact_comparison import normalise

# What one is in metres, seconds, grams, amperes and dollars; other units count as words
_SIZES = {
    "m": {"nm": "1e-9", "mm": "0.001", "cm": "0.01", "dm": "0.1", "m": "1", "km": "1000",
          "in": "0.0254", "ft": "0.3048", "yd": "0.9144", "mi": "1609.344"},
    "s": {"ms": "0.001", "s": "1", "min": "60", "h": "3600", "day": "86400", "week": "604800"},
    "g": {"mg": "0.001", "g": "1", "kg": "1000", "lb": "453.59237"},
    "A": {"mA": "0.001", "A": "1"},
    "dollar": {"dollar": "1", "cent": "0.01"},
    "m m m": {"ml": "1e-6", "l": "0.001"},
    "m / s": {"mph": "0.44704"},
    "1 / s": {"Hz": "1", "kHz": "1000", "MHz": "1e6"},
    "g m / s s": {"N": "1000", "kN": "1e6"},
    "g m m / s s": {"J": "1000", "kJ": "1e6", "MJ": "1e9"},
    "g m m / s s s": {"W": "1000", "kW": "1e6", "MW": "1e9"},
    "g / m s s": {"Pa": "1000", "kPa": "1e6", "MPa": "1e9"},
    "g m m / s s s A": {"V": "1000", "kV": "1e6", "mV": "1"},
}  # fmt: skip
_WORDS = {
    "millimet(?:er|re)s?": "mm", "centimet(?:er|re)s?": "cm", "decimet(?:er|re)s?": "dm", "met(?:er|re)s?": "m",
    "kilomet(?:er|re)s?|kms?": "km", "inch(?:es)?": "in", "foot|feet": "ft", "yards?": "yd", "miles?": "mi",
    "sec|seconds?": "s", "mins|minutes?": "min", "hrs?|hours?": "h", "days": "day", "weeks": "week", "grams?": "g",
    "kilograms?|kgs": "kg", "pounds?|lbs": "lb", "millilit(?:er|re)s?": "ml", "lit(?:er|re)s?|l": "l", "ml": "ml",
    "dollars?|USD": "dollar", "cents?|¢": "cent", "newtons?": "N", "joules?": "J", "watts?": "W", "volts?": "V",
}  # fmt: skip
_RATES = {"kmh": "km / h", "kph": "km / h", "kmph": "km / h"}
Dimension = tuple[tuple[str, int], ...]


def _dimension(units: str) -> dict[str, int]:
    """Powers by unit of `g m / s s`."""
    above, _, below = units.partition("/")
    powers: dict[str, int] = {}
    for side, sign in ((above, 1), (below, -1)):
        for unit in side.split():
            if unit != "1":
                powers[unit] = powers.get(unit, 0) + sign
    return powers


KNOWN = {unit: (_dimension(units), Fraction(size)) for units, sizes in _SIZES.items() for unit, size in sizes.items()}
_UNIT = re.compile(
    r"(?:(?P<named>sq(?:uare|\.)?|cubic|cu\.?)\s+)?(?P<unit>[a-zA-Z¢]+)\.?\s*(?:\^\s*(?P<power>-?[1-4])|(?P<after>squared|cubed))?\s*",
    re.IGNORECASE,
)
_PER = re.compile(r"/|\bper\b")
_LETTERS = set("msghlLJNWVAKCFT")
_BARE = {
    *KNOWN,
    "hr",
    "old",
    "hrs",
    "mol",
    "Hz",
    "Pa",
    "mL",
    "mph",
    "kmh",
    "nm",
    "lb",
    "lbs",
    "oz",
    "cc",
    "eV",
    "keV",
    "MeV",
    "GeV",
    "AU",
    "pc",
    "kpc",
    "ly",
    "kW",
    "sq",
    "cu",
    "pts",
    "per",
    "of",
    "an",
    "USD",
    "EUR",
    "GBP",
    "RMB",
    "CNY",
}
# Words after which a number is no longer just that number
_LARGE = ("hundred", "thousand", "million", "billion", "trillion", "dozen")
_OTHER = {
    "or", "and", "not", "no", "mod", "pmod", "bmod", "if", "when", "for", "where", "to", "plus", "minus", "times", "is",
    "wrong", "incorrect", "base", "than", "between", "choose", "factorial", "percent", "infinity", "at", "sqrt", "over",
    "otherwise", "unless", "except", "binary", "octal", "hexadecimal", "zero", "bn", "mn", "reversed", "inverse",
    "conjugate", "transpose", "complement", "doubled", "halved", "tripled", "negated", "lakh", "crore", "half",
    "tens", "multiplied", "divided", "added", "subtracted",
    "halves", "third", "thirds", "quarter", "quarters", *_LARGE, *(f"{name}s" for name in _LARGE),
    *(name + th for name in ("four", "fif", "six", "seven", "eigh", "nin", "ten", "hundred") for th in ("th", "ths")),
}  # fmt: skip
_OTHER_AT_ONCE = {"squared", "cubed", "pi", "root"}  # right behind the number; seconds may be squared
_LEADING = re.compile(
    r"(?:\s|\\?(?:€|£|¥)|US(?=\d)|a total of|\\(?:text|mathrm)\s*\{\s*\}|\\approx|"
    r"\b(?:USD|Rs|the|final|answer|is|about|approximately|exactly|equals|total of|total)\b[.:]?)*+",
    re.IGNORECASE,
)
_TEXT = re.compile(r"\\(?:text|textrm|textbf|mathrm|mbox|operatorname|rm|mathbf|textnormal|unit)\b")
_TOKEN = re.compile(rf"{_TEXT.pattern}|\\[a-zA-Z]+|[a-zA-Zµ€£¥Ω]+")
_NUMBER_INSIDE = re.compile(r"[a-zA-Z.][\s}]+\{?\s*\d")  # `3 feet 2 inches` is not just 3
_POWER_OF_UNIT = re.compile(r"(?<=[a-zA-Zµ.])(?:\s*\^\s*\(?\s*-?[1-9]\s*\)?|-?[1-4](?!\d))")
_TERM = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([a-zA-Z]{1,20})")
_SEVERAL = re.compile(rf"\s*(?:{_TERM.pattern}\.?\s*)+")
_UNIT_IN_QUOTIENT = r"\{\s*(?:\\(?:text|mathrm)\s*\{)?\s*([a-zA-Z]{1,20}(?:\^\{?\d\}?)?)\s*\}?\s*\}"
_QUOTIENT = re.compile(rf"(?<=\d)\s*\\frac\s*{_UNIT_IN_QUOTIENT}\s*{_UNIT_IN_QUOTIENT}\s*$")
_AFTER = re.compile(r"[a-zA-Zµ€£¥Ω\s{}/^.\d()*\-]*")


_TEXT_BEHIND = re.compile(
    r"(?<=[0-9a-zA-Z)\]}!'|])\s*\\(?:text|textrm|mathrm|mbox|textnormal|unit)\s*\{(?!\s*[a-zA-Z]\s*\}\s*$)[^{}\d]*\}(?:\s*\^\s*(?:\{[-\d]+\}|\d))?\s*$"
)
_LETTERS_BEHIND = re.compile(r"(.*[\d)}\]])\s*([a-zA-Z]{1,5}(?:/[a-zA-Z]{1,4})?(?:\s*\^\s*\{?-?\d\}?)?)", re.DOTALL)


def number_and_unit(text: str) -> tuple[str, str] | None:
    """A number, or a closed form, and the words behind it; None if the text is anything else."""
    text = text[_LEADING.match(text).end() :] if _LEADING.match(text) else text  # type: ignore[union-attr]
    text = _QUOTIENT.sub(r"\\text{ \1/\2}", text)
    start = next((match.start() for match in _TOKEN.finditer(text) if _begins_words(match)), len(text))
    value, unit_text = text[:start].strip(), text[start:]
    found_values = closed_forms.closed_form_values(normalise(value.removesuffix("\\cdot").strip())) if value else None
    if found_values is None or len(found_values) != 1 or "," in normalise(value):
        return None
    unit_text = _TEXT.sub(" ", unit_text).replace("\\cdot", " ").replace("\\%", "")
    return (
        (value, unit_text.strip(" {}"))
        if _AFTER.fullmatch(unit_text) and _is_harmless(text[start:], unit_text)
        else None
    )


def _begins_words(match: re.Match[str]) -> bool:
    return not match[0].startswith("\\") or bool(_TEXT.fullmatch(match[0]))


def _is_harmless(written: str, unit_text: str) -> bool:
    if _NUMBER_INSIDE.search(unit_text) or re.search(r"[\d*^]", _POWER_OF_UNIT.sub("", re.sub("[{}]", "", unit_text))):
        return False
    in_text = bool(_TEXT.match(written.strip()))
    names = re.findall(r"[a-zA-Z]+", unit_text)
    if names and names[0].lower() in _OTHER_AT_ONCE:
        return False
    for word in names:
        if (
            word.lower() in _OTHER
            or numbers_in_words.is_number(word.lower())
            or (len(word) == 1 and word not in _LETTERS)
        ):
            return False
        if not in_text and 1 < len(word) < 4 and word not in _BARE and not written.startswith(word.lower()):
            return False
        if not in_text and 1 < len(word) < 3 and word not in _BARE:
            return False
    return True


def without_text(formula: str) -> str:
    """A formula without the words behind it, in `\\text` and the like."""
    match = _TEXT_BEHIND.search(formula)
    names = re.findall(r"[a-z]+", match[0].lower())[1:] if match else []  # without the command
    if match is None or _OTHER.intersection(names) or _OTHER_AT_ONCE.intersection(names[:1]):
        return formula
    return formula[: match.start()].strip()


def without_letters(formula: str) -> str:
    """A formula without the unit in letters behind it; empty if no unit is there."""
    match = _LETTERS_BEHIND.fullmatch(formula)
    return match[1].strip() if match and _is_harmless(match[2], match[2]) else ""


def has_words(text: str) -> bool:
    """Whether a text has words: letters that are no command and not one symbol."""
    return bool(_TEXT.search(text) or re.search(r"[a-zA-Z]{2}", re.sub(r"\\[a-zA-Z]+", " ", text)))


def _read_unit(unit_text: str) -> tuple[Dimension, Fraction] | None:
    """Dimension and size of known units: `cm^{2}`, `square centimeters`, `kg m/s^2`, `miles per hour`."""
    text = re.sub(r"[{}()*]", " ", unit_text)
    powers: dict[str, int] = {}
    size = Fraction(1)
    for index, side in enumerate(_PER.split(_RATES.get(text.strip(" ."), text))):
        units = list(_UNIT.finditer(side.strip(" .")))
        if not units or "".join(one[0] for one in units) != side.strip(" ."):
            return None
        for one in units:
            name, power = _known_unit(one["unit"]), int(one["power"] or 1)
            if name is None:
                return None
            if named := one["named"] or one["after"]:
                power = 2 if named.lower().startswith("sq") else 3
            power *= -1 if index else 1
            dimension, unit_size = KNOWN[name]
            size *= unit_size**power
            for unit, times in dimension.items():
                powers[unit] = powers.get(unit, 0) + times * power
    return tuple(sorted((unit, power) for unit, power in powers.items() if power)), size


def _known_unit(word: str) -> str | None:
    if word in KNOWN:
        return word
    return next((unit for pattern, unit in _WORDS.items() if re.fullmatch(pattern, word, re.IGNORECASE)), None)


def conversion_factor(gold: str, answer: str) -> Fraction | None:
    """What the answer's number has to be multiplied with: 1 unless both units are known; None if they do not fit."""
    ours, theirs = _read_unit(gold), _read_unit(answer)
    if ours is None or theirs is None:
        return Fraction(1)
    return theirs[1] / ours[1] if ours[0] == theirs[0] else None


def total_quantity(text: str) -> tuple[Dimension, Fraction] | None:
    """What numbers with known units amount to, such as `8 ft 6 in` or `5 km`; None for anything else."""
    plain_text = re.sub(r"[{},]|\band\b", " ", _TEXT.sub(" ", text))
    if not _SEVERAL.fullmatch(plain_text):
        return None
    terms = [(Fraction(number), _read_unit(unit)) for number, unit in _TERM.findall(plain_text)]
    known = [(unit[0], number * unit[1]) for number, unit in terms if unit]
    if len(known) < len(terms) or len({dimension for dimension, _ in known}) != 1:
        return None
    return known[0][0], sum((size for _, size in known), Fraction(0))
