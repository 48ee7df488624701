"""Make any text safe to display on a page, in Markdown or on a terminal: completions may contain anything."""

from __future__ import annotations

import html
import re
import sys
import unicodedata
from collections.abc import Iterable
from typing import Any

# Cc control, Cf format (bidirectional overrides, zero-width), Cs lone surrogates, Co private use, Cn unassigned, and
# the line and paragraph separators. None of them may affect the page, and all of them are shown.
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
PLAIN = re.compile(r"[\n\t\x20-\x7e]*")
MAX_COMBINING_MARKS = 3  # on one letter; more would cover the lines above
# What Markdown would read as markup. An underscore inside a word is none, and brackets are only in links.
MARKUP = re.compile(r"[\\`*|~$]|\](?=[(\[:])|(?<!\w)_|_(?!\w)")


def visible(text: str) -> str:
    """Replace every character that is invisible or would affect the page by a visible name.

    Line feeds and tabs stay. Other ASCII controls become their pictures (U+2400 …), the rest ⟨U+XXXX⟩. The result can
    be encoded as UTF-8 and written into XML, whatever the input was.
    """
    if PLAIN.fullmatch(text):
        return text
    out, marks = [], 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        code = ord(character)
        if character in "\n\t":
            out.append(character)
        elif code < 0x20:
            out.append(chr(0x2400 + code))
        elif code == 0x7F:
            out.append("\u2421")
        elif category in HIDDEN or marks > MAX_COMBINING_MARKS:
            out.append(f"⟨U+{code:04X}⟩")
        else:
            out.append(character)
    return "".join(out)


def one_line(text: str) -> str:
    """The same on one line, for names and table cells: line feeds and tabs become their pictures, too."""
    return visible(text).replace("\n", "\u240a").replace("\t", "\u2409")


class Markdown(str):
    """A text that is Markdown already."""


def markdown_text(text: str) -> Markdown:
    """A text for one line of Markdown: shown as it is, neither as HTML nor as markup."""
    if isinstance(text, Markdown):
        return text
    return Markdown(MARKUP.sub(r"\\\g<0>", html.escape(" ".join(visible(text).split()), quote=False)))


def markdown_code(text: str) -> Markdown:
    """A text as code in a cell of a Markdown table; bars and backticks, which would end it, become spaces."""
    inside = re.sub(r"[|`\s]+", " ", visible(text))
    return Markdown(f"`{inside}`" if inside.strip() else inside)


class VisibleStream:
    """A text stream whose writes pass through `visible`; a leading carriage return, for progress, is kept."""

    def __init__(self, stream: Any) -> None:
        """Wrap a stream."""
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, with everything in it visible."""
        mark = "\r" if text.startswith("\r") else ""
        self._stream.write(mark + visible(text[len(mark) :]))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the stream's."""
        return getattr(self._stream, name)


def protect_output() -> None:
    """From here, what this process prints has no control or escape codes, whichever file they came from."""
    for name in ("stdout", "stderr"):
        if not isinstance(stream := getattr(sys, name), VisibleStream):
            setattr(sys, name, VisibleStream(stream))


def clipped(text: str, most: int) -> str:
    """At most `most` characters of a text: its beginning, and its end because the answer is there."""
    if len(text) <= most:
        return text
    tail = most // 2
    head = most - tail
    return f"{text[:head]}\n[… {len(text) - most:,} characters left out …]\n{text[-tail:]}"
