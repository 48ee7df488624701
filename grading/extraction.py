r"""Which answer a completion gives: the last complete \boxed{…} after the thinking part, then a named fallback.

Every rule runs in time linear in the completion, whatever a model writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

THINKING_ENDS = "</think>"
# One token at a time: an opening box, an escaped character (so that \{ and \} are not braces), or a brace.
_BRACES = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?<=\d)")
_ANSWER_LINE = re.compile(
    r"^[ \t*#>]*(?:(?:the\s)?(?:final\s)?answer(?:\s(?:is|was))?|A)\**\s?[:=]\s*(.+)$|^####\s*(.+)$", re.I | re.M
)
_JOINT = re.compile(r"[\s$\\,;.()\[\]]*(?:(?:and|or)\b[\s$\\(\[]*)?")


class Extraction(NamedTuple):
    """The answer (None if there is none), whether it stood complete in the text, and whether required tags broke."""

    answer: str | None
    complete: bool = False
    broken_tags: bool = False


def after_thinking(completion: str) -> str:
    """The text after the last `</think>`; the whole text if there is none."""
    return completion.rpartition(THINKING_ENDS)[2]


def boxes(text: str) -> list[tuple[int, int, str]]:
    r"""All complete, non-empty \boxed{…} as (start, end, content), ordered by start."""
    found = []
    opened: list[tuple[int, int] | None] = []
    for token in _BRACES.finditer(text):
        word = token.group()
        if word == "}":
            if opened and (box := opened.pop()):
                content = text[box[1] : token.start()].strip()
                if content:
                    found.append((box[0], token.end(), content))
        elif word == "{":
            opened.append(None)
        elif word.endswith("{") and len(word) > 2:
            opened.append((token.start(), token.end()))
    return sorted(found)


def last_boxed(text: str, *, several: bool = False) -> str | None:
    r"""Content of the last complete \boxed{…} (the innermost, where boxes are nested).

    With `several`, for problems with more than one answer, boxes that only "and", "or" or a comma separate from the
    last one are joined to it: `\boxed{1} and \boxed{3}` gives `1, 3`.
    """
    found = boxes(text)
    if not found:
        return None
    start, _, content = found[-1]
    contents = [content]
    if several:
        for earlier_start, end, earlier in reversed(found[:-1]):
            if end > start or start - end > 40 or not _JOINT.fullmatch(text, end, start):
                break
            contents.append(earlier)
            start = earlier_start
    return ", ".join(reversed(contents))


def last_tag(text: str, tag: str = "answer") -> str | None:
    """Content of the last complete `<tag>…</tag>`, stripped; None if there is none."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    end = text.rfind(closing)
    start = text.rfind(opening, 0, end) if end >= 0 else -1
    return text[start + len(opening) : end].strip() if start >= 0 else None


def _none(text: str) -> Extraction:
    return Extraction(None)


def _last_number(text: str) -> Extraction:
    number = None
    for match in _NUMBER.finditer(text):
        number = match.group() or number
    return Extraction(number)


def _answer_tag(text: str) -> Extraction:
    content = last_tag(text)
    if content is None:
        return Extraction(None, broken_tags="<answer>" in text or "</answer>" in text)
    return Extraction(content or None, complete=True)


def _answer_line(text: str) -> Extraction:
    line = None
    for match in _ANSWER_LINE.finditer(text):
        line = (match[1] or match[2]).strip(" *\t\r") or line
    return Extraction((line.removesuffix(".").strip() or None) if line else None)


FALLBACKS: dict[str, Callable[[str], Extraction]] = {
    "none": _none,
    "last-number": _last_number,
    "answer-tag": _answer_tag,
    "answer-line": _answer_line,
}


def extract(completion: str, fallback: str = "none", *, several: bool = False) -> Extraction:
    """The answer of a completion under a protocol's rule.

    Args:
        completion: what the model wrote, thinking included.
        fallback: a name in FALLBACKS, used when nothing is boxed after the thinking part. `last-number` and
            `answer-line` never yield a *complete* answer: in a completion that was cut they are not taken.
        several: whether the problem has several answers, which may stand in several boxes.
    """
    text = after_thinking(completion)
    boxed = last_boxed(text, several=several)
    return Extraction(boxed, complete=True) if boxed is not None else FALLBACKS[fallback](text)
