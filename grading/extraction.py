r"""Which answer a completion gives: where its prompt asks for it, or by a named rule, after the thinking part.

Only the model's own turn counts (grading.model_turn). All of it takes time linear in the completion,
whatever a model writes.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from grading.model_turn import THINKING_ENDS, own_turn
from system.errors import UserError
from tasks import option_letters
from tasks.latex_boxes import Box, find_boxes

if TYPE_CHECKING:
    from tasks.prompts import Prompt

BOX = "none"  # the rule without another place than the box
ANSWER_IS = ("he answer is", "final answer is")  # what `answer-is` looks for before it takes the last number
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?<=\d)")
_ANSWER_LINE = re.compile(
    r"^[ \t*#>]*(?:(?:the\s)?(?:final\s)?answer(?:\s(?:is|was))?|A)\**\s?[:=]\s*(.+)$|^####\s*(.+)$", re.I | re.M
)
_JOINT = re.compile(
    r"(?:\\(?:q?quad|text|mathrm|mbox)(?![a-zA-Z])|(?:and|or)\b|\n\s*+(?:[-•]|\d{1,2}[.)])\s|\([a-z]\)|[\s$\\,;.(){}\[\]&*|])*+"
)
_WORDED_JOINT = re.compile(r"(?:[\s$\\()\[\]{}&,;*]|[a-zA-Z]++(?:_\{?\w\}?)?(?:\s*=)?)*+")  # "goats and", ", x_2 ="
_SENTENCE = re.compile(r"(?:the\s)?(?:final\s)?answer\s(?:is|was)\b:?\s*", re.I)
_NEXT_SENTENCE = re.compile(r"[.!]\s+(?=[A-Z][a-z']*\s[a-z])|\.\s+I\s|!\s+(?=[A-Z])|\.\s+(?=(?:Yes|No|Done|QED)\b)")
_EXPLAINS = (
    r"(?:which|that|so|since|because|as|where|when|after|while|with|but|thus|hence|therefore|meaning|making|giving|given|for|"
    r"in|by|not|obtained|i\.e\.|(?:an?|the)(?=\s[a-z]{3}))(?![\w])"
)
_EXPLANATION = re.compile(
    rf",\s+(?={_EXPLAINS})|\s(?=(?:because|since|which)\b)|;\s|\s[-–—]+\s(?=[a-z]{{2}})|\s(?=\([a-z -]{{3,40}}\)\.?$)"
)
_INTRODUCES = re.compile(
    r"(?:(?:therefore|thus|hence|then|indeed|simply|just|clearly|so|actually"
    r"|equal to|(?:found|calculated|determined) to be|given by)\b,?\s*)++",
    re.I,
)
_HTML = re.compile(r"</?(?:b|strong|em|i|u|code)>")
_AROUND = " \t\r*_`\"'"
_MORE_FOLLOWS = re.compile(rf"\s*(?:,(?!\s+{_EXPLAINS})|and\b(?!\s+not\b)|or\b|\\)")  # more answers follow
_FORMULA = re.compile(r"\$\$.+?\$\$|\\\[.+?\\\]|\\\(.+?\\\)|\$(?!\$)(?:\\.|[^$\\\n])+(?<!\s)\$(?!\d)", re.DOTALL)
_STATES_FORMULA = re.compile(r"[^$\\=\d]*\b(?:is|are|was|equals?|be):?\s*(?=\$|\\[(\[])", re.I)
_OPTION = re.compile(  # "the answer is **D**", "Option (D) is right"; not "A or B", nor the word "A"
    r"\b(?:answer|option|choice|choose|select|pick|corresponds to|matches)[*_]*+(?:\s+is)?\s*+[:=]?[\s*_$({]*+"
    r"(?:\\(?:text|math)[a-z]*+\{\(?)?((?-i:[A-J]))(?![a-zA-Z_^'])"
    r"(?:[)}*_$\s]*?[).:}*$](?!\s*(?:or|and)\b)|(?=,?\s*(?:$|\n|[-–—]|because\b|since\b)))(?!\s+is(?!\s+(?:the\s+)?(?:correct|right|answer|best)\b))"
    r"|(?:^|[\s*$])\(((?-i:[A-J]))\)[*$]*+\s+is\s+(?:the\s+)?(?:correct|right)\b"
    r"|\b(?:option|choice)\s+((?-i:[A-J]))\s+is\s+(?:the\s+)?(?:correct|right|answer|best)\b"
    r"|(?:答案(?:是|为)?|选项?)\s*[:：]?\s*[(（*]*+((?-i:[A-J]))(?![a-zA-Z_^'])|^####\s*\(?((?-i:[A-J]))\)?\s*$",
    re.I | re.M,
)
_OPTION_BEHIND = re.compile(
    r"(?:[\s$~.]|\\q?quad(?![a-z])|\\[ ,;:])*+(?:\\(?:text|math)[a-z]*+\{|\*\*)?\(([A-J])\)[}*$\s.]*+(?:$|\n)"
)
_LINES = re.compile(  # between boxes on lines of their own: "- x = ", "y: "
    r"[ \t$\\.;,)\]}]*+\n\s*+(?:[-•*]\s+)?[$\\(\[]*+(?:[a-zA-Z]{1,3}(?:_\{?\w\}?)?\s*[=:]\s*)?[$\\(\[ ]*+"
)
_PROBE = "x7351"  # an answer, and not a number
_AND = re.compile(r"[,;&]|\b(?:and|or)\b")
_CONCLUDES = re.compile(r"\b(?:so|hence|thus|therefore|then|because|since|which|answers?|solutions?)\b", re.IGNORECASE)
_SVG_TAG = re.compile(r"<svg>|<svg(?=\s)|(</svg>)")
_WIDEST_JOINT = 60  # characters
_TABLE_ROWS = re.compile(
    r"[^\n|\\]{0,9}\|[^\n\\]*\n(?:[ \t]*+\|[-:| \t]*\n)?[ \t]*+\|[^\n\\]*"
)  # between boxes of two rows
_PART = (
    re.compile(  # "a)", "(ii)", "**3.**", "## Part 2" at the beginning of a line, "For part (b)," of a sentence, too
        r"(?:^[ \t>*_|#-]*+|(?<=[.;] )(?=(?:for[ \t])?part\b))(?:for[ \t])?"
        r"(?:(?:part|question|answer|case)[ \t]*+(?=[(\[]?\w{1,4}[)\]]?(?:[.:,*_ \t]|$)))?"
        r"[(\[（]?(?:(\d{1,2})|([ivx]{1,4})|([a-h]))(?:[)\].:,）](?!\w)|(?:(?<=\d)|(?<=part [a-h]))[*_ \t]*$)",
        re.I | re.M,
    )
)
_INLINE_PART = re.compile(r"(?:(?<=[\s.;,}$])|^)[(（]?(?:(\d{1,2})|([ivx]{1,4})|([a-h]))[)）](?!\w)")
_ORDINAL = re.compile(
    r"(?:\b(first|second|third|fourth|fifth|(?<=part )(?:one|two|three|four|five))\b|第([一二三四五]))()", re.I
)
_ORDINALS = {
    name: number
    for names in ("first second third fourth fifth", "one two three four five", "一 二 三 四 五")
    for number, name in enumerate(names.split(), start=1)
}
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
_LIST = re.compile(r"[,;]|\\text\s*\{\s*(?:and|or)\b")
_GLM_BOX = re.compile(r"<\|begin_of_box\|>|<\|end_of_box\|>")


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
    the last one are joined to it: `\boxed{1} and \boxed{3}` gives `1, 3`. So are those of the rows of a table, and the
    last of each part where a text has parts: `a) … \boxed{1}`, then `b) … \boxed{3}`.
    """
    if is_multi_answer and (parts := _last_of_parts(text)):
        return ", ".join(parts)
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
    if any(joint.fullmatch(text, left.end, right.start) for joint in (_JOINT, _TABLE_ROWS, _LINES)):
        return True
    between = text[left.end : right.start]
    return bool(_WORDED_JOINT.fullmatch(between) and _AND.search(between) and not _CONCLUDES.search(between))


def _last_of_parts(text: str) -> list[str]:
    """The last box of each part, if the text ends in two or more parts, counted from the first, with a box in each.

    Parts begin with a label at the head of a line, else with one in brackets, else with an ordinal.
    """
    parts = ([*map(_part_number, pattern.finditer(text))] for pattern in (_PART, _INLINE_PART))
    ordinals = [(match.start(), _ORDINALS[(match[1] or match[2]).lower()], 0) for match in _ORDINAL.finditer(text)]
    return next((last for labels in (*parts, ordinals) if (last := _last_of_labelled(text, labels))), [])


def _part_number(match: re.Match[str]) -> tuple[int, int, int]:
    """Where a part's label stands, its number, and the number that it is as a letter; 0 for none."""
    label = (match[2] or "").lower()
    number = int(match[1]) if match[1] else _ROMAN.index(label) + 1 if label in _ROMAN else 0
    letter = ord((match[3] or (label if len(label) == 1 else "")).lower() or "`") - ord("`")
    return match.start(), number, letter


def _last_of_labelled(text: str, labels: Sequence[tuple[int, int, int]]) -> list[str]:
    starts: list[int] = []
    for start, number, letter in labels:
        if number == 1 or letter == 1:
            starts = [start]
        elif starts and len(starts) + 1 in (number, letter):
            starts.append(start)
    if len(starts) < 2:
        return []
    last: list[str] = [""] * len(starts)
    for box in find_boxes(text):
        if not box.escaped and box.content and (part := bisect(starts, box.start)):
            last[part - 1] = box.content
    return last if all(last) and not _LIST.search(last[-1]) else []


def last_tag(text: str, tag: str = "answer") -> str | None:
    """Content of the last complete `<tag>…</tag>`, stripped; None if there is none."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    end = text.rfind(closing)
    start = text.rfind(opening, 0, end) if end >= 0 else -1
    return text[start + len(opening) : end].strip() if start >= 0 else None


def _own_answer(completion: str) -> str:
    """The model's own turn after its thinking, with GLM's box tokens as boxes."""
    text = after_thinking(own_turn(completion))
    return _GLM_BOX.sub(lambda token: "\\boxed{" if "begin" in token.group() else "}", text)


def _no_answer(text: str) -> Extraction:
    return Extraction(None)


def _last_number(text: str) -> Extraction:
    number = None
    for match in _NUMBER.finditer(text):
        number = match.group() or number
    return Extraction(number)


def _answer_is(text: str) -> Extraction:
    """What follows the last "he answer is", else "final answer is", else the last number."""
    for phrase in ANSWER_IS:
        if phrase in text:
            return Extraction(_answer_of_sentence(text.rpartition(phrase)[2]) or None)
    return _last_number(text)


def _answer_line(text: str) -> Extraction:
    line = None
    for match in _ANSWER_LINE.finditer(text):
        line = (match[1] or match[2]).strip(" *\t\r") or line
    if line and (sentence := _SENTENCE.match(line)):
        line = _answer_of_sentence(line[sentence.end() :])
    return Extraction((line.removesuffix(".").strip() or None) if line else None)


def _answer_of_sentence(text: str) -> str:
    """The answer at the head of `text`: a formula, or the words up to the sentence's end or to what explains them.

    A sentence ends before the next one; a comma and "which" or the like begin an explanation. The answer may stand on
    the line after a colon, and a formula on several lines.
    """
    text = text.lstrip(" \t\r\n:：*_")
    if introduced := _INTRODUCES.match(text):
        text = text[introduced.end() :]
    if (formula := _FORMULA.match(text)) and not _MORE_FOLLOWS.match(text, formula.end()):
        return formula.group()
    sentence = _NEXT_SENTENCE.split(_HTML.sub("", text.partition("\n")[0]), maxsplit=1)[0]
    return _EXPLANATION.split(sentence, maxsplit=1)[0].strip(_AROUND).rstrip(_AROUND + ".?…:")


def _answer_tag(text: str, *, is_multi_answer: bool = False) -> Extraction:
    """The last complete answer tag, of which a box or the formula of a sentence is taken; without one, the last box."""
    content = last_tag(text)
    boxed = last_boxed(content or text, is_multi_answer=is_multi_answer)
    if boxed is None and content and (sentence := _STATES_FORMULA.match(content)):
        boxed = _answer_of_sentence(content[sentence.end() :])
    answer = boxed or content or None
    return Extraction(answer, content is not None or answer is not None, answer is None and "answer>" in text)


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
    BOX: _no_answer,
    "last-number": _last_number,
    "answer-is": _answer_is,
    "answer-tag": _answer_tag,
    "answer-line": _answer_line,
    "svg-element": _svg_element,
}


def extract(completion: str, rule: str = BOX, *, is_multi_answer: bool = False) -> Extraction:
    """The last box after the thinking part, else what a rule finds; by `answer-tag`, the answer tag before the box.

    A box that is complete counts, also where another one is begun after it and cut off: an answer that is stated stands
    until another one is.

    Args:
        completion: what the model wrote, thinking included.
        rule: a name in RULES. What `last-number`, `answer-is` and `answer-line` find is never *complete*: in a
            completion that was truncated it does not count.
        is_multi_answer: whether the problem has several answers, which may stand in several boxes.
    """
    text = _own_answer(completion)
    if rule == "answer-tag":
        return _answer_tag(text, is_multi_answer=is_multi_answer)
    boxed = last_boxed(text, is_multi_answer=is_multi_answer)
    return Extraction(boxed, complete=True) if boxed is not None else RULES[rule](text)


def extract_tagged(completion: str) -> Extraction:
    """The last complete answer tag after the thinking part, else the last box; an answer without either is broken."""
    text = _own_answer(completion)
    answer = last_tag(text) or last_boxed(text)
    return Extraction(answer, complete=answer is not None, broken_tags=answer is None)


def extract_letter(completion: str, rule: str = BOX) -> Extraction:
    """As `extract`, for the letter of an option: where the box holds none, the line "Answer: D" after it counts."""
    extracted = extract(completion, rule)
    if extracted.answer is None or option_letters.names_option(extracted.answer):
        return extracted
    text = _own_answer(completion)
    stated = text[max((box.end for box in find_boxes(text)), default=len(text)) :]
    named = [next(filter(None, match.groups())) for match in _OPTION.finditer(stated)]
    if not named and (behind := _OPTION_BEHIND.match(stated)):
        named = [behind[1]]
    return Extraction(named[-1]) if named else extracted


def rule_of_prompt(prompt: Prompt, fallback: str = BOX) -> str:
    """The rule that finds an answer in the form that a prompt asks for.

    Args:
        prompt: states the form, or none.
        fallback: the rule where it asks for no form.

    Raises:
        UserError: no rule finds an answer in that form.
    """
    if prompt.answer is None:
        return fallback
    bare = prompt.answer.strip() == "{answer}"  # as an element of SVG, which its own tags mark
    form = prompt.completion(f"<svg>{_PROBE}</svg>" if bare else _PROBE)
    rule = next(
        (name for name in RULES if name != "last-number" and _PROBE in (extract(form, name).answer or "")), None
    )
    if rule is None:
        raise UserError(
            f"prompt '{prompt.name}' asks for a form of answer that no rule reads, {prompt.answer!r}: ask for "
            "\\boxed{…} or <answer>…</answer>",
            code="unreadable-answer-form",
            prompt=prompt.name,
        )
    return rule
