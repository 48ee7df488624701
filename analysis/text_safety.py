"""Make any text safe to display: completions are written by a model and may contain anything."""

from __future__ import annotations

import re
import unicodedata

# Cc control, Cf format (bidirectional overrides, zero-width), Cs lone surrogates, Co private use, Cn unassigned, and
# the line and paragraph separators. None of them may affect the page, and all of them are shown.
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
PLAIN = re.compile(r"[\n\t\x20-\x7e]*")
MAX_COMBINING_MARKS = 3  # on one letter; more would cover the lines above


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


def clipped(text: str, most: int) -> str:
    """At most `most` characters of a text: its beginning, and its end because the answer is there."""
    if len(text) <= most:
        return text
    tail = most // 2
    head = most - tail
    return f"{text[:head]}\n[… {len(text) - most:,} characters left out …]\n{text[-tail:]}"
