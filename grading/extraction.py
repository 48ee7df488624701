r"""Which answer a completion gives: the last complete \boxed{…} after the thinking part, else by a named rule.

All of it takes time linear in the completion, whatever a model writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tasks.latex_boxes import Box, find_boxes

THINKING_ENDS = "</think>"
ANSWER_IS = ("he answer is", "final answer is")  # what `answer-is` looks for before it takes the last number
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?<=\d)")
_ANSWER_LINE = re.compile(
    r"^[ \t*#>]*(?:(?:the\s)?(?:final\s)?answer(?:\s(?:is|was))?|A)\**\s?[:=]\s*(.+)$|^####\s*(.+)$", re.I | re.M
)
_JOINT = re.compile(
    r"(?:\\(?:q?quad|text|mathrm|mbox)(?![a-zA-Z])|(?:and|or)\b|\n\s*+(?:[-•]|\d{1,2}[.)])\s|\([a-z]\)|[\s$\\,;.(){}\[\]&*])*+"
)
_WORDED_JOINT = re.compile(r"(?:[\s$\\()\[\]{}&,;*]|[a-zA-Z]++(?:_\{?\w\}?)?(?:\s*=)?)*+")  # "goats and", ", x_2 ="
_SENTENCE = re.compile(r"(?:the\s)?(?:final\s)?answer\s(?:is|was)\b:?\s*", re.I)
_NEXT_SENTENCE = re.compile(r"[.!]\s+(?=[A-Z][a-z']*\s[a-z])|\.\s+I\s")
_WORDS_BEFORE_MORE = re.compile(r"\s*(?:,|and\b|or\b|\\)")  # more answers follow
_AND = re.compile(r"[,;&]|\b(?:and|or)\b")
_CONCLUDES = re.compile(r"\b(?:so|hence|thus|therefore|then|because|since|which|answers?|solutions?)\b", re.IGNORECASE)
_SVG_TAG = re.compile(r"<svg>|<svg(?=\s)|(</svg>)")
_WIDEST_JOINT = 60  # characters


class Extraction(NamedTuple):
    """The answer, if one was found."""

    answer: str | None
    complete: bool = False  # its end is marked, so that it counts in a truncated completion too
    broken_tags: bool = False  # tags that should hold the answer are missing or not closed


def after_thinking(completion: str) -> str:
    """The text after the last `</think>`; the whole text if there is none."""
    return completion.rpartition(THINKING_ENDS)[2]


def last_boxed(text: str, *, is_multi_answer: bool = False) -> str | None:
    r"""Content of the last complete \boxed{…} (the innermost, where boxes are nested).

    With `is_multi_answer`, for problems with more than one answer, boxes that only "and", "or" or a comma separate from
    the last one are joined to it: `\boxed{1} and \boxed{3}` gives `1, 3`.
    """
    joined: list[Box] = []
    for box in reversed(find_boxes(text)):
        if box.escaped or not box.content:
            continue
        if joined and not _joined(text, box, joined[-1]):
            break
        joined.append(box)
        if not is_multi_answer:
            break
    return ", ".join(box.content for box in reversed(joined)) or None


def _joined(text: str, left: Box, right: Box) -> bool:
    """Whether only "and", "or", a comma or the like stands between two boxes."""
    if not left.end <= right.start <= left.end + _WIDEST_JOINT:
        return False
    if _JOINT.fullmatch(text, left.end, right.start):
        return True
    between = text[left.end : right.start]
    return bool(_WORDED_JOINT.fullmatch(between) and _AND.search(between) and not _CONCLUDES.search(between))


def last_tag(text: str, tag: str = "answer") -> str | None:
    """Content of the last complete `<tag>…</tag>`, stripped; None if there is none."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    end = text.rfind(closing)
    start = text.rfind(opening, 0, end) if end >= 0 else -1
    return text[start + len(opening) : end].strip() if start >= 0 else None


def _no_answer(text: str) -> Extraction:
    return Extraction(None)


def _last_number(text: str) -> Extraction:
    number = None
    for match in _NUMBER.finditer(text):
        number = match.group() or number
    return Extraction(number)


def _answer_is(text: str) -> Extraction:
    """What follows the last "he answer is", else "final answer is", to the end of its line, else the last number."""
    for phrase in ANSWER_IS:
        if phrase in text:
            line = text.rpartition(phrase)[2].strip().partition("\n")[0].lstrip(": ")
            return Extraction(_first_formula(line).rstrip(". \r") or None)
    return _last_number(text)


def _answer_tag(text: str) -> Extraction:
    content = last_tag(text)
    if content is None:
        return Extraction(None, broken_tags="<answer>" in text or "</answer>" in text)
    return Extraction(content or None, complete=True)


def _answer_of_sentence(line: str) -> str:
    """The answer of `The final answer is $6+9i$. I hope it is correct.`; any other line as it is."""
    match = _SENTENCE.match(line)
    if match is None:
        return line
    return _first_formula(line[match.end() :])


def _first_formula(text: str) -> str:
    """The answer at the head of a sentence: without what follows its formula, or the sentence, unless that is more."""
    answer = _NEXT_SENTENCE.split(text, maxsplit=1)[0].strip()
    if answer.startswith("$") and (end := answer.find("$", 1)) > 0 and not _WORDS_BEFORE_MORE.match(answer, end + 1):
        return answer[: end + 1]
    return answer


def _answer_line(text: str) -> Extraction:
    line = None
    for match in _ANSWER_LINE.finditer(text):
        line = (match[1] or match[2]).strip(" *\t\r") or line
    return Extraction((_answer_of_sentence(line).removesuffix(".").strip() or None) if line else None)


def _svg_element(text: str) -> Extraction:
    """The last complete <svg> element; a tag alone between backticks is a mention of it."""
    starts: list[int] = []
    answer = None
    for match in _SVG_TAG.finditer(text):
        if text[max(match.start() - 1, 0) : match.start()] == "`" == text[match.end() : match.end() + 1]:
            continue
        if match[1] is None:
            starts.append(match.start())
        elif starts:
            answer = text[starts.pop() : match.end()]
    return Extraction(answer, complete=answer is not None)


RULES: dict[str, Callable[[str], Extraction]] = {
    "none": _no_answer,
    "last-number": _last_number,
    "answer-is": _answer_is,
    "answer-tag": _answer_tag,
    "answer-line": _answer_line,
    "svg-element": _svg_element,
}


def extract(completion: str, rule: str = "none", *, is_multi_answer: bool = False) -> Extraction:
    """The last box after the thinking part, else what a protocol's extraction rule finds.

    Args:
        completion: what the model wrote, thinking included.
        rule: a name in RULES. What `last-number`, `answer-is` and `answer-line` find is never *complete*: in a
            completion that was truncated it does not count.
        is_multi_answer: whether the problem has several answers, which may stand in several boxes.
    """
    text = after_thinking(completion)
    boxed = last_boxed(text, is_multi_answer=is_multi_answer)
    return Extraction(boxed, complete=True) if boxed is not None else RULES[rule](text)


def extract_tagged(completion: str) -> Extraction:
    """The last complete answer tag after the thinking part, else the last box; an answer without either is broken."""
    text = after_thinking(completion)
    answer = last_tag(text) or last_boxed(text)
    return Extraction(answer, complete=answer is not None, broken_tags=answer is None)
