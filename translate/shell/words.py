"""The words of a script before and after their expansion: braces, `~`, and splitting at IFS."""

from __future__ import annotations

import re

from translate.shell.scanning import closing_quote, expansion_end
from translate.shell.values import WHITESPACE, is_unknown, pieces

_BRACES = re.compile(r"\{(?:(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?|([^{}'\"$`\s]*,[^{}'\"$`\s]*))\}")
_MOST_BRACES = 10_000
_NAME_BEFORE = re.compile(r"(?:[A-Za-z_]\w*\+?=)?")
_QUOTED = r"""\$'(?:[^'\\]|\\.)*'|'[^']*'|"(?:[^"\\]|\\.)*"|\\."""


_SIGNS = {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}


def unescaped(text: str, octal: str = "[0-7]{1,3}", signs: str = "'\"?") -> str:
    """A text with its escapes done, as `$'…'`, printf and `echo -e` do them; what they do not know stays.

    Args:
        text: the text.
        octal: what a number in base 8 matches.
        signs: that a backslash escapes, besides letters.
    """

    def character(match: re.Match[str]) -> str:
        digits, base = (match[1], 16) if match[1] else (match[2], 8)
        code = int(digits or "0", base) if digits else ord(_SIGNS.get(match[3], match[3]))
        return chr(code) if code < 128 and (digits or match[3] in {*_SIGNS, *signs}) else match[0]

    return re.sub(rf"\\(?:x([0-9a-fA-F]{{1,2}})|({octal})|(.))", character, text, flags=re.DOTALL)


class Fields:
    """The words that one word of the script becomes."""

    def __init__(self) -> None:
        """None yet."""
        self.fields: list[str] = []
        self.open = False  # whether the last field goes on

    def add(self, text: str) -> None:
        """Go on with the last field, or begin one."""
        if self.open:
            self.fields[-1] += text
        else:
            self.fields.append(text)
        self.open = True

    def split(self, text: str, separators: str) -> None:
        """The same with what stands in no quotes: a separator ends a field, an unknown part does not."""
        for piece in pieces(text):
            if is_unknown(piece):
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
    """`a{1..3}` and `a{b,c}` as the words that they stand for."""
    match = next((one for one in _BRACES.finditer(word) if not _is_quoted(word, one.start())), None)
    if match is None:
        return [word]
    if match[4] is not None:
        options = match[4].split(",")
    else:
        first, last, by = int(match[1]), int(match[2]), abs(int(match[3] or 1)) or 1
        if abs(last - first) // by > _MOST_BRACES:
            return [word]
        options = [str(n) for n in range(first, last + (1 if last >= first else -1), by if last >= first else -by)]
    before, after = word[: match.start()], word[match.end() :]
    return [one for option in options for one in with_braces(f"{before}{option}{after}")]


def _is_quoted(word: str, index: int) -> bool:
    position = 0
    while position < index:
        letter = word[position]
        end = closing_quote(word, position) if letter in "'\"" else position + 1
        end = expansion_end(word, position) if letter in "$`" else end
        end = position + 2 if letter == "\\" else end
        if end > index:
            return True
        position = max(end, position + 1)
    return False
