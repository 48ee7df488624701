"""The words of a script before and after their expansion: braces, `~`, and splitting at IFS."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from system.errors import UserError
from translate.shell.scanning import bracket_end, piece_end
from translate.shell.values import WHITESPACE, is_unknown, pieces, unknown

_SEQUENCE = re.compile(r"([-+]?\d+|[A-Za-z])\.\.([-+]?\d+|[A-Za-z])(?:\.\.([-+]?\d+))?", re.ASCII)
_MOST_BRACES = 10_000
_NAME_BEFORE = re.compile(r"(?:[A-Za-z_]\w*\+?=)?")
_QUOTED = r"""\$'(?:[^'\\]|\\.)*'|'[^']*'|"(?:[^"\\]|\\.)*"|\\."""


_SIGNS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
          "\\": "\\"}  # fmt: skip
_HEX = r"x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}"


def unescaped(text: str, octal: str = "[0-7]{1,3}", signs: str = "'\"?") -> str:
    """A text with its escapes done, as `$'…'`, printf and `echo -e` do them; what they do not know stays.

    Args:
        text: the text.
        octal: what a number in base 8 matches.
        signs: that a backslash escapes, besides letters.
    """

    def character(match: re.Match[str]) -> str:
        if match[3]:
            return "\x7f" if match[3] == "?" else chr(ord(match[3].upper()) & 31)
        if match[4]:
            return _SIGNS.get(match[4], match[4]) if match[4] in {*_SIGNS, *signs} else match[0]
        code = int(match[1][1:], 16) if match[1] else int(match[2], 8)
        return chr(code) if code < 128 else unknown(match[0])  # which sign it is depends on the locale

    return re.sub(rf"\\(?:({_HEX})|({octal})|c([^\\'])|(.))", character, text, flags=re.DOTALL)


class Fields:
    """The words that one word of the script becomes."""

    def __init__(self) -> None:
        """None yet."""
        self._parts: list[list[str]] = []
        self.open = False  # whether the last field goes on

    @property
    def fields(self) -> list[str]:
        """Those that there are."""
        return ["".join(parts) for parts in self._parts]

    def add(self, text: str) -> None:
        """Go on with the last field, or begin one."""
        if not self.open:
            self._parts.append([])
        self._parts[-1].append(text)
        self.open = True

    def split(self, text: str, separators: str | None) -> None:
        """The same with what stands in no quotes: a separator ends a field, an unknown part does not."""
        for piece in pieces(text):
            if separators is None or is_unknown(piece):
                self.add(piece)
                continue
            for number, word in enumerate(split_words(piece, separators)):
                self.open = self.open and number == 0
                if word is not None:
                    self.add(word)

    def extend(self, arguments: list[str]) -> None:
        """Each as a field; the first goes on with the last."""
        for number, word in enumerate(arguments):
            self.open = self.open and number == 0
            self.add(word)


def split_words(text: str, separators: str) -> list[str | None]:
    """A text at the separators of IFS: whitespace together, another sign alone; None for nothing before or after it."""
    white, signs = (
        "".join(re.escape(sign) for sign in separators if (sign in WHITESPACE) == is_white)
        for is_white in (True, False)
    )
    if not signs:
        return [word or None for word in re.split(f"[{white}]+", text)] if white else [text]
    around = f"[{white}]*" if white else ""
    separator = f"{around}[{signs}]{around}" + (f"|[{white}]+" if white else "")
    parts: list[str | None] = [*re.split(separator, text)]
    if (first := re.match(separator, text)) and not first[0].strip(WHITESPACE):
        parts[0] = None
    return [*parts[:-1], parts[-1] or None]


def with_home(word: str, is_assigned: bool = False) -> str:
    """A word with `"$HOME"` for `~`: at its beginning, and in what is assigned after each colon, too."""
    start = 0 if is_assigned else _NAME_BEFORE.match(word).end()  # type: ignore[union-attr]
    home = r"(?:\A|(?<=:))(~)(?=[/:]|\Z)" if start or is_assigned else r"\A(~)(?=/|\Z)"
    return word[:start] + re.sub(
        rf"{_QUOTED}|{home}", lambda match: '"$HOME"' if match[1] else match[0], word[start:], flags=re.DOTALL
    )


def with_braces(word: str) -> list[str]:
    """`a{1..3}` and `a{b,c}` as the words that they stand for; raises UserError if they are too many."""
    for start in _unquoted(word, 0):
        options, end = _brace_options(word, start) if word[start] == "{" and word[: start + 2] != "{}" else ([], 0)
        if options:
            rests = with_braces(word[end:])
            if len(options) * len(rests) > _MOST_BRACES:
                raise _too_many(word)
            return [f"{word[:start]}{option}{rest}" for option in options for rest in rests]
    return [word]


def _brace_options(word: str, start: int) -> tuple[list[str], int]:
    """What the brace that opens at `start` stands for, and where it ends; none if it is only a sign."""
    depth, cuts, has_dots = 0, [start], False
    for at in _unquoted(word, start + 1):
        letter = word[at]
        if letter == "}" and not depth and (len(cuts) > 1 or has_dots):
            if not re.search(r"(?<!\\),", word[start:at]):  # bash counts the commas in quotes, too
                return _sequence(word[start + 1 : at]) or [word[start : at + 1]], at + 1
            parts = itertools.pairwise([*cuts, at])
            return [option for cut, end in parts for option in with_braces(word[cut + 1 : end])], at + 1
        depth += (letter == "{") - (letter == "}" and depth > 0)
        if not depth and letter == ",":
            cuts.append(at)
        has_dots |= not depth and word.startswith("..", at) and word[at + 2 : at + 3] != "}"
    return [], 0


def _sequence(written: str) -> list[str]:
    """The numbers or letters of `first..last` or `first..last..by`; none if that is no sequence."""
    match = _SEQUENCE.fullmatch(written)
    if not match or match[1].isalpha() != match[2].isalpha():
        return []
    ends, by = (match[1], match[2]), abs(int(match[3] or 1)) or 1
    first, last = map(ord if match[1].isalpha() else int, ends)
    if abs(last - first) // by > _MOST_BRACES:
        raise _too_many(written)
    numbers = range(first, last + 1, by) if first <= last else range(first, last - 1, -by)
    if match[1].isalpha():
        return [chr(number).replace("`", "\\`") for number in numbers]
    width = max(map(len, ends)) if any(re.match(r"-?0\d", end) for end in ends) else 0
    return [f"{number:0{width}}" for number in numbers]


def _too_many(word: str) -> UserError:
    return UserError(
        f"the braces in '{word[:40]}' stand for more than {_MOST_BRACES:,} words, so the script is not read; paste "
        "the training command alone",
        code="endless-script",
    )


def _unquoted(word: str, start: int) -> Iterator[int]:
    """The positions from `start` on that are in no quotes, expansions or `<(commands)`."""
    while start < len(word):
        is_command = word[start] in "<>" and word.startswith("(", start + 1)
        end = bracket_end(word, start + 1) if is_command else piece_end(word, start)
        if end == start + 1:
            yield start
        start = end
