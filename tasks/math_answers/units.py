"""Units and other words after a number: which are harmless, and which say something else."""

from __future__ import annotations

import re
from decimal import Decimal

from tasks.math_answers import closed_forms
from tasks.math_answers.exact_comparison import normalise

# Dimension and size of what can be converted; other units count as words
_SIZES = {
    "length": {"nm": "1e-9", "mm": "0.001", "cm": "0.01", "dm": "0.1", "m": "1", "km": "1000"},
    "English length": {"in": "1", "ft": "12", "yd": "36", "mi": "63360"},
    "time": {"s": "1", "min": "60", "h": "3600", "day": "86400"},
    "mass": {"mg": "0.001", "g": "1", "kg": "1000"},
    "volume": {"ml": "1", "l": "1000"},
    "energy": {"J": "1", "kJ": "1000"},
    "money": {"dollar": "1", "cent": "0.01"},
}
_WORDS = {
    "millimet(?:er|re)s?": "mm", "centimet(?:er|re)s?": "cm", "decimet(?:er|re)s?": "dm", "met(?:er|re)s?": "m",
    "kilomet(?:er|re)s?": "km", "inch(?:es)?": "in", "foot|feet": "ft", "yards?": "yd", "miles?": "mi",
    "sec|seconds?": "s", "mins|minutes?": "min", "hrs?|hours?": "h", "days": "day", "grams?": "g", "kilograms?": "kg",
    "millilit(?:er|re)s?": "ml", "lit(?:er|re)s?|l": "l", "ml": "ml",
    "dollars?|USD": "dollar", "cents?|¢": "cent",
}  # fmt: skip
KNOWN = {unit: (kind, Decimal(size)) for kind, sizes in _SIZES.items() for unit, size in sizes.items()}
_POWER = re.compile(
    r"(?:(?P<named>sq(?:uare|\.)?|cubic|cu\.?)\s+)?(?P<unit>[a-zA-Z]+)\s*(?:\}?\s*\^\s*\{?\s*(?P<power>[23])\s*\}?)?",
    re.IGNORECASE,
)
_LETTERS = set("msghlLJNWVAKCFT")
_BARE = {
    *KNOWN,
    "kJ",
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
_OTHER = {
    "or", "and", "not", "no", "mod", "pmod", "bmod", "if", "when", "for", "where", "to", "plus", "minus", "times", "is",
    "wrong", "incorrect", "base", "than", "between", "choose", "factorial", "million", "billion", "thousand", "hundred",
    "dozen", "trillion", "percent", "infinity", "at", "sqrt", "over", "otherwise",
    "unless", "except",
}  # fmt: skip
_LEADING = re.compile(
    r"(?:\s|\\?(?:€|£|¥)|\\(?:text|mathrm)\s*\{\s*\}|\\approx|\b(?:USD|Rs|the|final|answer|is|about|approximately|"
    r"exactly|equals|total)\b[.:]?)*+",
    re.IGNORECASE,
)
_TEXT = re.compile(r"\\(?:text|textrm|textbf|mathrm|mbox|operatorname|rm|mathbf|textnormal|unit)\b")
_TOKEN = re.compile(rf"{_TEXT.pattern}|\\[a-zA-Z]+|[a-zA-Zµ€£¥Ω]+")
_NUMBER_INSIDE = re.compile(r"[a-zA-Z.][\s}]+\{?\s*\d")  # `3 feet 2 inches` is not just 3
_TERM = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([a-zA-Z]{1,20})")
_SEVERAL = re.compile(rf"\s*(?:{_TERM.pattern}\.?\s*)+")
_AFTER = re.compile(r"[a-zA-Zµ€£¥Ω\s{}/^.\d()*\-]*")


_TEXT_BEHIND = re.compile(
    r"(?<=[0-9a-zA-Z)\]}!'|])\s*\\(?:text|textrm|mathrm|mbox|textnormal|unit)\s*\{(?!\s*[a-zA-Z]\s*\}\s*$)[^{}]*\}(?:\s*\^\s*(?:\{[-\d]+\}|\d))?\s*$"
)
_LETTERS_BEHIND = re.compile(r"(.*[\d)}\]])\s*([a-zA-Z]{1,5}(?:/[a-zA-Z]{1,4})?(?:\s*\^\s*\{?-?\d\}?)?)", re.DOTALL)


def number_and_unit(text: str) -> tuple[str, str] | None:
    """A number, or a closed form, and the words behind it; None if the text is anything else."""
    text = text[_LEADING.match(text).end() :] if _LEADING.match(text) else text  # type: ignore[union-attr]
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
    if _NUMBER_INSIDE.search(unit_text):
        return False
    in_text = bool(_TEXT.match(written.strip()))
    for word in re.findall(r"[a-zA-Z]+", unit_text):
        if word.lower() in _OTHER or (len(word) == 1 and word not in _LETTERS):
            return False
        if not in_text and 1 < len(word) < 4 and word not in _BARE and not written.startswith(word.lower()):
            return False
        if not in_text and 1 < len(word) < 3 and word not in _BARE:
            return False
    return True


def without_text(formula: str) -> str:
    """A formula without the words behind it, in `\\text` and the like."""
    match = _TEXT_BEHIND.search(formula)
    if match is None or _OTHER & set(re.findall(r"[a-z]+", match[0].lower())):
        return formula
    return formula[: match.start()].strip()


def without_letters(formula: str) -> str:
    """A formula without the unit in letters behind it; empty if no unit is there."""
    match = _LETTERS_BEHIND.fullmatch(formula)
    return match[1].strip() if match and _is_harmless(match[2], match[2]) else ""


def has_words(text: str) -> bool:
    """Whether a text has words: letters that are no command and not one symbol."""
    return bool(_TEXT.search(text) or re.search(r"[a-zA-Z]{2}", re.sub(r"\\[a-zA-Z]+", " ", text)))


def _read_unit(unit_text: str) -> tuple[str, int] | None:
    """A known unit and its power: `cm^{2}`, `square centimeters`."""
    match = _POWER.fullmatch(unit_text.strip(" ."))
    word = match["unit"] if match else ""
    power = int(match["power"] or 1) if match else 1
    if match and match["named"]:
        power = 2 if match["named"].lower().startswith("sq") else 3
    if word not in KNOWN:
        word = next((unit for pattern, unit in _WORDS.items() if re.fullmatch(pattern, word, re.IGNORECASE)), "")
    return (word, power) if word else None


def conversion_factor(gold: str, answer: str) -> Decimal | None:
    """What the answer's number has to be multiplied with: 1 unless both units are known; None if they do not fit."""
    ours, theirs = _read_unit(gold), _read_unit(answer)
    if ours is None or theirs is None:
        return Decimal(1)
    (kind, size), (other, their_size) = _dimension(*ours), _dimension(*theirs)
    return their_size / size if kind == other else None


def total_quantity(text: str) -> tuple[tuple[str, int], Decimal] | None:
    """What numbers with known units amount to, such as `8 ft 6 in` or `5 km`; None for anything else."""
    plain_text = re.sub(r"[{},]|\band\b", " ", _TEXT.sub(" ", text))
    if not _SEVERAL.fullmatch(plain_text):
        return None
    terms = [(Decimal(number), _read_unit(unit)) for number, unit in _TERM.findall(plain_text)]
    parts = [(_dimension(*unit), number) for number, unit in terms if unit]
    if len(parts) < len(terms) or len({kind for (kind, _), _ in parts}) != 1:
        return None
    return parts[0][0][0], sum((size * number for (_, size), number in parts), Decimal(0))


def _dimension(unit: str, power: int) -> tuple[tuple[str, int], Decimal]:
    """What is measured, with its power, and the size of one unit; a litre is a power of a length."""
    kind, size = KNOWN[unit]
    return (("length", 3 * power), (size / 1_000_000) ** power) if kind == "volume" else ((kind, power), size**power)
