r"""Answers of several parts: lists, sets, tuples and cases, compared part by part.

The order counts in tuples only. `\pm` stands for two answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tasks.math_answers.exact_comparison import normalise

_WORD = re.compile(
    r"\\(?:text|textbf|mathrm|mbox)\s*\{\s*,?\s*(?:and|or)\s*\}|(?<![a-zA-Z\\{])(?:and|or)(?![a-zA-Z}])|或者?|和|以及|与|\\(?:lor|vee)(?![a-zA-Z])"
)
_NUMBER = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DIGITS = re.compile(r"[-+]?\d+(?:\.\d+)?")
_VECTOR = re.compile(r"\\begin\s*\{[pbv]?matrix\}(.+)\\end\s*\{[pbv]?matrix\}", re.DOTALL)
_MATRIX = re.compile(
    r"(?:[(\[|]\s*)?\\begin\s*\{(?:[pbvB]?matrix|array)\}(?:\{[clr|]+\})?(.+)\\end\s*\{(?:[pbvB]?matrix|array)\}(?:\s*[)\]|])?",
    re.DOTALL,
)
_SET = r"\\\{[^{}]{1,200}\\\}"
_SETS = re.compile(rf"\s*{_SET}(?:\s*(?:\\setminus|\\backslash|\\smallsetminus|\\cup|\\cap|-)\s*{_SET})+\s*")
_ASSIGNED = re.compile(r"\s*((?:[a-zA-Z]|\\[a-zA-Z]+)(?:_(?:\w|\{\w+\}))?)\s*=(?!=)(.+)", re.DOTALL)
_NAMED = re.compile(
    r"\s*(\((?:\s*[a-zA-Z](?:_\w|_\{\w+\})?\s*,)+\s*[a-zA-Z](?:_\w|_\{\w+\})?\s*\))\s*(?:=|\\in(?![a-zA-Z]))"
)
_POINT = re.compile(r"\s*[A-Z]'?(?:_\w)?\s*(?=\([^()]*,[^()]*\)\s*$)")  # `P(2,3)` for a point
_INDEX = re.compile(r"_(?:\d|\{\d{1,3}\})$")
Same = Callable[[str, str], bool]


class Parts(NamedTuple):
    """What an answer consists of: a `list` (no order), a `set`, a `tuple`, or one `leaf`."""

    kind: str
    parts: list[str]


def split_outside_brackets(text: str, separators: str) -> list[str]:
    """The text between separators that stand outside all brackets."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character in separators and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def is_enclosed(text: str) -> bool:
    """Whether the first bracket is closed by the last character."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return index == len(text) - 1
    return False


def read_parts(text: str) -> Parts:
    """The parts of an answer in plain notation."""
    text = text.strip().rstrip(".,;").strip()
    if named := _NAMED.match(text):
        text = text[named.end() :].strip()
    if text.startswith("\\langle") and text.endswith("\\rangle"):
        text = f"({text[7:-7]})"
    if text.startswith("\\{") and text.endswith("\\}"):
        return Parts(
            "set", _expand_plus_minus(_numbers_with_thousands(text[2:-2]) or split_outside_brackets(text[2:-2], ",;"))
        )
    if (
        text[:1] == "("
        and text[-1:] == ")"
        and is_enclosed(text)
        and len(parts := split_outside_brackets(text[1:-1], ",")) > 1
    ):
        return Parts("tuple", _numbers_with_thousands(text[1:-1]) or parts)
    if text[:1] in "([" and text[-1:] in ")]" and is_enclosed(text):
        return Parts("leaf", [text])
    if _NUMBER.fullmatch(text):
        return Parts("leaf", [text])
    cases = split_outside_brackets(_WORD.sub(";", text), ";")
    parts = [
        part for case in cases for part in ([case] if len(cases) > 1 and case.count("=") > 1 else _split_list(case))
    ]
    parts = _expand_plus_minus(parts)
    return Parts("list" if len(parts) > 1 else "leaf", parts or [text])


def matrix_cells(text: str) -> list[list[str]] | None:
    """The rows of a matrix in LaTeX or as lists of lists; None for anything else."""
    text = text.strip()
    if match := _MATRIX.fullmatch(text):
        rows = [row.split("&") for row in re.split(r"\\\\(?:\[[^\]]{0,9}\])?", match[1]) if row.strip()]
    elif text[:1] + text[-1:] == "[]" and is_enclosed(text) and text[1:].lstrip()[:1] == "[":
        lists = split_outside_brackets(text[1:-1], ",")
        if not all(one[:1] + one[-1:] == "[]" and is_enclosed(one) for one in lists):
            return None
        rows = [split_outside_brackets(one[1:-1], ",") for one in lists]
    else:
        return None
    return [[cell.strip() for cell in row] for row in rows] if len({len(row) for row in rows}) == 1 else None


def _calculated_set(text: str) -> str:
    r"""`\{1,2\}\setminus\{2\}` as `\{1\}`; any other text as it is."""
    if not _SETS.fullmatch(text):
        return text
    sets = [
        [normalise(part) for part in split_outside_brackets(one, ",;")] for one in re.findall(r"\\\{(.*?)\\\}", text)
    ]
    members = sets[0]
    for sign, other in zip(re.findall(r"\\\}\s*(\\[a-z]+|-)", text), sets[1:], strict=True):
        if sign == "\\cup":
            members = members + [one for one in other if one not in members]
        else:
            members = [one for one in members if (one in other) == (sign == "\\cap")]
    return f"\\{{{', '.join(members)}\\}}" if members else text


def vector_parts(text: str) -> Parts | None:
    """A row or column vector as the tuple of its cells; None for anything else."""
    match = _VECTOR.fullmatch(text.strip())
    cells = re.split(r"\\\\|&", match[1].strip().removesuffix("\\\\")) if match else []
    one_line = match is not None and not ("&" in match[1] and "\\\\" in match[1].strip().removesuffix("\\\\"))
    return Parts("tuple", [cell.strip() for cell in cells]) if one_line and len(cells) > 1 else None


def _split_list(text: str) -> list[str]:
    """Parts between commas; `x=1,2` has the value 2 for x too."""
    parts = [text] if _NUMBER.fullmatch(text) else split_outside_brackets(text, ",")
    if len(parts) > 1 and (spaced := _numbers_with_thousands(text)):
        return spaced
    first = _ASSIGNED.match(parts[0]) if parts else None
    if first and not any("=" in part for part in parts[1:]):
        return [f"{first[1]}={part}" if index else part for index, part in enumerate(parts)]
    return parts


def _numbers_with_thousands(text: str) -> list[str]:
    """The numbers of `1,000, 2,000`, where commas stand between thousands too; empty for anything else."""
    spaced = re.split(r",\s+", text.strip())
    numbers = all(_NUMBER.fullmatch(part) or _DIGITS.fullmatch(part) for part in spaced)
    return spaced if numbers and 1 < len(spaced) <= text.count(",") else []


def _expand_plus_minus(parts: Sequence[str]) -> list[str]:
    both = []
    for part in parts:
        if "\\pm" in part and "\\mp" not in part:
            both += [re.sub(r"^\+\s*", "", part.replace("\\pm", sign).strip()) for sign in "+-"]
        else:
            both.append(part)
    return both


def _values_by_symbol(parts: Sequence[str]) -> dict[str, str] | None:
    """Values by symbol, where every part gives another symbol its value."""
    matches = [_ASSIGNED.fullmatch(part) for part in parts]
    values = {one[1]: one[2] for one in matches if one}
    return values if len(values) == len(parts) > 1 else None


def _without_index(parts: Sequence[str], others: Sequence[str]) -> list[str]:
    """`x_1=1, x_2=3` as values of x, where the others are all values of x."""
    matches = [[_ASSIGNED.fullmatch(part) for part in side] for side in (parts, others)]
    ours, theirs = ([one[1] for one in side if one] for side in matches)
    base = {_INDEX.sub("", symbol) for symbol in ours}
    if len(ours) < len(parts) or len(theirs) < len(others) or len(base) != 1 or base != set(theirs):
        return list(parts)
    return [f"{theirs[0]}={one[2]}" for one in matches[0] if one]


def _match_in_any_order(gold: Sequence[str], answer: Sequence[str], same: Same) -> bool:
    """Whether each part has a partner of its own, whatever the order."""
    left = list(answer)
    for expected in gold:
        partner = next((index for index, candidate in enumerate(left) if same(expected, candidate)), None)
        if partner is None:
            return False
        left.pop(partner)
    return not left


def _unique_parts(parts: Sequence[str]) -> list[str]:
    return list({normalise(part): part for part in parts}.values())


def compare(gold: str, answer: str, same: Same) -> bool | None:
    """Compare two answers of which at least one has several parts; None if neither has, or if only `same` can tell.

    Args:
        gold: in plain notation.
        answer: in plain notation.
        same: compares two parts.
    """
    if "matrix" in gold and "matrix" in answer and ("{vmatrix}" in gold) != ("{vmatrix}" in answer):
        return False  # one is a determinant, which is a number
    rows, other_rows = matrix_cells(gold), matrix_cells(answer)
    if rows and other_rows and (len(rows) > 1 or len(rows[0]) > 1):
        pairs = [pair for both in zip(rows, other_rows, strict=False) for pair in zip(*both, strict=False)]
        shape, other_shape = ((len(one), len(one[0])) for one in (rows, other_rows))
        return shape == other_shape and all(same(*pair) for pair in pairs)
    ours, theirs = read_parts(_calculated_set(gold)), read_parts(_calculated_set(answer))
    if ours.kind == "list" and theirs.kind == "leaf" and re.fullmatch(r"\s*\[.*\]\s*", answer):  # as programs print it
        theirs = read_parts(answer.strip()[1:-1])
    if ours.kind == "tuple" and (point := _POINT.match(answer)):
        theirs = read_parts(answer[point.end() :])
    if "tuple" in (ours.kind, theirs.kind):
        ours, theirs = (vector_parts(text) or parts for text, parts in ((gold, ours), (answer, theirs)))
    kinds = {ours.kind, theirs.kind}
    if kinds == {"leaf"}:
        return None
    if "leaf" in kinds:
        one = ours if ours.kind == "leaf" else theirs
        other = theirs if ours.kind == "leaf" else ours
        if other.kind == "tuple":
            return None
        parts = _unique_parts(other.parts)
        if parts and re.match(r"\\(?:emptyset|varnothing)", parts[0]):
            return False  # a set with the empty set in it is not empty
        common = {normalise(part.rpartition("=")[2]) for part in parts if "=" in part}
        if other is ours and len(common) == 1 and all("=" in part for part in parts) and "=" not in answer:
            return same(common.pop(), answer)  # both are 90
        return same(ours.parts[0], parts[0]) if len(parts) == 1 and one is ours else None
    if "tuple" not in kinds:
        expected = _unique_parts(_without_index(ours.parts, theirs.parts))
        stated = _unique_parts(_without_index(theirs.parts, ours.parts))
        return len(expected) == len(stated) and _match_in_any_order(expected, stated, same)
    if "set" in kinds:  # a set of one tuple is that tuple
        member, *others = ours.parts if ours.kind == "set" else theirs.parts
        if others or member[:1] != "(":
            return False
        return same(member, answer) if ours.kind == "set" else same(gold, member)
    in_order = []
    for one in (ours, theirs):
        values = _values_by_symbol(one.parts)
        in_order.append([values[symbol] for symbol in sorted(values)] if values else one.parts)
    return len(in_order[0]) == len(in_order[1]) and all(map(same, *in_order))
