"""Shell patterns: `*`, `?`, `[…]` and classes of letters."""

from __future__ import annotations

import re

_CLASSES = {
    "digit": "0-9", "alpha": "a-zA-Z", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": " \t\n\r\f\v",
    "blank": " \t", "xdigit": "0-9a-fA-F",
}  # fmt: skip


def trimmed(value: str, sign: str, pattern: str) -> str:
    """Without the shortest or longest beginning (#, ##) or end (%, %%) that matches."""
    wanted = re.compile(glob_pattern(pattern, longest=True), re.DOTALL)
    cuts = range(len(value) + 1)
    if sign[0] == "#":
        fitting = [cut for cut in cuts if wanted.fullmatch(value[:cut])]
        return value[(fitting[0] if sign == "#" else fitting[-1]) :] if fitting else value
    fitting = [cut for cut in cuts if wanted.fullmatch(value[cut:])]
    return value[: (fitting[-1] if sign == "%" else fitting[0])] if fitting else value


def with_classes(pattern: str) -> str:
    """A pattern with `[:digit:]` and its like, which Python does not know, as their letters."""
    return re.sub(r"\[:(\w+):\]", lambda match: _CLASSES.get(match[1], match[0]), pattern)


def glob_pattern(pattern: str, longest: bool = False) -> str:
    """A shell pattern as a regular expression."""
    result, position, pattern = list[str](), 0, with_classes(pattern)
    while position < len(pattern):
        letter = pattern[position]
        position += 1
        if letter == "*":
            result.append(".*" if longest else ".*?")
        elif letter == "?":
            result.append(".")
        elif letter == "[" and (end := pattern.find("]", position + 1)) > 0:
            chosen = pattern[position:end]
            result.append(f"[{'^' + chosen[1:] if chosen[:1] in ('!', '^') else chosen}]")
            position = end + 1
        elif letter == "\\" and position < len(pattern):
            result.append(re.escape(pattern[position]))
            position += 1
        else:
            result.append(re.escape(letter))
    return "".join(result)
