"""Shell patterns: `*`, `?`, `[…]`, classes of letters, and the groups of extglob such as `@(a|b)`."""

from __future__ import annotations

import re
from collections.abc import Callable

_CLASSES = {
    "digit": "0-9", "alpha": "a-zA-Z", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": " \t\n\r\f\v",
    "blank": " \t", "xdigit": "0-9a-fA-F", "punct": r"#-/:-@\[-`{-~!\"", "word": "a-zA-Z0-9_", "graph": r"\!-~",
    "print": " -~", "cntrl": "\x01-\x1f\x7f",
}  # fmt: skip
_BRACKET = re.compile(r"\[([!^]?)(\]?(?:\\.|[^\]\\])*)\]", re.DOTALL)
_TOKEN = re.compile(rf"\\.|{_BRACKET.pattern}|.", re.DOTALL)
_Part = Callable[[str, set[int]], set[int]]  # from a text, and where the part may begin, to where it may end


class Pattern:
    """One pattern; it matches the longest or the shortest text, which regular expressions with `|` do not."""

    def __init__(self, written: str, has_groups: bool, ignores_case: bool = False) -> None:
        """Of a text in which a backslash escapes; `has_groups`: extglob is on."""
        self.has_groups, self.flags = has_groups, re.DOTALL | re.IGNORECASE * ignores_case
        self.is_odd, self.depth = False, 0  # odd: bash is not consistent about what it matches
        self.parts = self._parts(with_classes(written))

    def ends(self, text: str, start: int) -> set[int]:
        """Where a match that begins at `start` may end."""
        return _after(self.parts, text, {start})

    def fits(self, text: str) -> bool:
        """Whether it matches the whole text."""
        return len(text) in self.ends(text, 0)

    def _parts(self, written: str) -> list[_Part]:
        parts, position, before = list[_Part](), 0, ""  # before: what stands directly before the part
        while position < len(written):
            letter, start = written[position], position + 1
            options, end = _options(written, start + 1) if written.startswith("(", start) else ([], 0)
            if self.has_groups and letter in "?*+@!" and options:
                part = self._group(letter, options)
                is_open = letter in "?*!" or part("", {0}) != set()  # it matches the empty text
                self.is_odd |= "" in options or (is_open and before in ("*", "?"))
                parts.append(part)
                position, before = end, ""
                continue
            before = _token(written, position)
            if before == "*":
                parts.append(_any_text)
            else:
                is_bracket = before[0] == "[" and (before == "[" or any(sign in before[1:] for sign in "[()|"))
                self.is_odd |= self.has_groups and (before == "(" or (is_bracket and self.depth > 0))
                parts.append(_one_letter(_expression(before), self.flags))
            position += len(before)
        return parts

    def _group(self, sign: str, options: list[str]) -> _Part:
        self.depth += 1
        part = _group(sign, [self._parts(option) for option in options])
        self.depth -= 1
        return part


def _token(written: str, position: int) -> str:
    match = _TOKEN.match(written, position)
    return match[0] if match else ""


def _options(written: str, start: int) -> tuple[list[str], int]:
    """The patterns between the bars of the group that is open at `start`, and where it ends; none if it does not."""
    options, depth, begin = list[str](), 0, start
    for token in _TOKEN.finditer(written, start):
        if token[0] in ("|", ")") and not depth:
            options.append(written[begin : token.start()])
            begin = token.end()
            if token[0] == ")":
                return options, begin
        depth += (token[0] == "(") - (token[0] == ")")
    return [], start


def _expression(token: str) -> str:
    """The regular expression of one letter."""
    if token == "?":
        return "."
    match = _BRACKET.fullmatch(token)
    if match is None:
        return re.escape(token[-1])
    letters = re.sub(r"\\(.)|([\[\]^&~|])", lambda one: re.escape(one[1] or one[2]), match[2], flags=re.DOTALL)
    return f"[{'^' * bool(match[1])}{letters}]"


def _one_letter(expression: str, flags: int) -> _Part:
    try:
        wanted = re.compile(expression, flags)
    except re.error:  # a range whose end comes before its beginning
        return lambda text, starts: set()
    return lambda text, starts: {at + 1 for at in starts if wanted.match(text, at)}


def _any_text(text: str, starts: set[int]) -> set[int]:
    return set(range(min(starts), len(text) + 1)) if starts else starts


def _after(parts: list[_Part], text: str, starts: set[int]) -> set[int]:
    for part in parts:
        starts = part(text, starts)
    return starts


def _group(sign: str, options: list[list[_Part]]) -> _Part:
    """`@(a|b)` once, `?(…)` at most once, `+(…)` once or more, `*(…)` any number of times, `!(…)` anything else."""

    def once(text: str, starts: set[int]) -> set[int]:
        return {end for option in options for end in _after(option, text, starts)}

    def repeated(text: str, starts: set[int]) -> set[int]:
        ends = newest = once(text, starts)
        while newest:
            newest = once(text, newest) - ends
            ends = ends | newest
        return ends

    def anything_else(text: str, starts: set[int]) -> set[int]:
        return {end for at in starts for end in _any_text(text, {at}) - once(text, {at})}

    repeats = {"@": once, "?": once, "+": repeated, "*": repeated, "!": anything_else}[sign]
    return (lambda text, starts: starts | repeats(text, starts)) if sign in "?*" else repeats


def trimmed(value: str, sign: str, pattern: Pattern) -> str:
    """Without the shortest or longest beginning (#, ##) or end (%, %%) that matches."""
    if sign[0] == "#":
        ends = pattern.ends(value, 0)
        return value[(min if sign == "#" else max)(ends) :] if ends else value
    cuts = range(len(value) + 1) if sign == "%%" else range(len(value), -1, -1)
    return value[: next((cut for cut in cuts if len(value) in pattern.ends(value, cut)), len(value))]


def replaced(value: str, sign: str, pattern: Pattern, replacement: str) -> str:
    """With the first longest match (/), each (//), or that at the beginning (/#) or end (/%) replaced."""
    if sign == "/%":
        start = next((cut for cut in range(len(value) + 1) if len(value) in pattern.ends(value, cut)), None)
        return value if start is None else value[:start] + replacement
    if not pattern.parts and sign != "/#":
        return value
    result, position = list[str](), 0
    while position < len(value) or not position:
        end = max(pattern.ends(value, position), default=None)
        result.append(value[position : position + 1] if end is None else replacement)
        if end == position and sign == "//":
            result.append(value[position : position + 1])
        position = max(end or 0, position + (end is None or sign == "//"))
        if sign == "/#" or (sign == "/" and end is not None):
            break
    return "".join(result) + value[position:]


def with_classes(pattern: str) -> str:
    """A pattern with `[:digit:]` and its like, which Python does not know, as their letters."""
    return re.sub(r"\[:(\w+):\]", lambda match: _CLASSES.get(match[1], match[0]), pattern)
