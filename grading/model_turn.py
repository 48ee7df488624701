"""Where the model's own turn ends: a base model writes end tokens as text, and goes on with another problem.

lm-eval stops generation at the same words (minerva_math: "Problem:", gsm8k: "Question:"). Time is linear in the text.
"""

from __future__ import annotations

import re

from tasks.latex_boxes import find_boxes

THINKING_ENDS = "</think>"
END_TOKEN = re.compile(
    r"<\|(?:im_end|im_start|endoftext|eot_id|eom_id|end_of_text|eot|EOT|assistant|return|user|endofturn|END_OF_TURN_TOKEN|"
    r"start_header_id|system|observation)\|>|<(?:end_of_turn|start_of_turn|eos)>|</s>|<｜(?:end▁of▁sentence|User)｜>|"
    r"\[/?INST\]|<\|end\|>(?!\s*<\|start\|>assistant)"
)
NEXT_PROBLEM = re.compile(
    r"^[ \t>*_]*+(?:#+[ \t]*+)?(?:\\(?:textbf|(?:sub)?section\*?)\{)?(?:(?:next|new|another)[ \t])?"
    r"(?:problem|question|human|user|q|instruction|exercise|example|task|input|student|问题?|题目|用户)"
    r"(?:[ \t]statement)?[ \t]*+(\d{0,3})[*_ \t]*+[:：]"
    r"|^[ \t]*+(?:#+|\*\*)[ \t]*+(?:problem|question|exercise)[ \t]*+(\d{0,3})[*_ \t.]*+$"
    r"|^[ \t>*_#]*+(?:\\(?:textbf|(?:sub)?section\*?)\{)?(?:problem|question|exercise)[ \t]++(\d{1,3})\.[*_}]*+[ \t]"
    r"|^[ \t]*+(?:\[(?:problem|question)\]|Q\.[ \t]|(?:user|human)[ \t]*+$"
    r"|(?:(?:now|please|here[ \t]is|let's|let[ \t]us|given|consider|solve)[ \t])*+(?:the|a|another)[ \t]"
    r"(?:(?<=another[ \t])|(?:following|next|new)[ \t])(?:problem|question)(?![\w-]))",
    re.I | re.M,
)
_STATED = re.compile(
    r"</answer>|</svg>|^####"
    r"|(?:\banswer[*_]*+(?:[ \t]*+:|[ \t]is\b[ \t]*+:?)|答案[:：])[*_ \t]*+(?=[-\d$\\]|\(?[A-J]\b)",
    re.I | re.M,
)


def own_turn(completion: str) -> str:
    """The completion up to the first end token, and up to the first "Problem:" or the like after a stated answer.

    A numbered heading is the next part of the model's own answer where one stands before the first answer, too.
    """
    text = completion[: _end_token(completion)]
    headings = list(NEXT_PROBLEM.finditer(text))
    answered = _first_answer(text, max(text.find(THINKING_ENDS), 0)) if headings else None
    following = next((one for one in headings if answered is not None and one.start() >= answered), None)
    if following is None:
        return text
    is_part = _is_numbered(following) and any(_is_numbered(one) for one in headings[: headings.index(following)])
    return text if is_part else text[: following.start()]


def _is_numbered(heading: re.Match[str]) -> bool:
    return any(heading.groups())


def _end_token(text: str) -> int | None:
    """Where the first end token after some text stands; `</s>` after `<s>` only strikes a text out."""
    start = len(text) - len(text.lstrip())
    struck = text.find("<s>")
    for token in END_TOKEN.finditer(text):
        if token.start() == start:
            start = token.end()  # a token at the head begins the turn
        elif not (token.group() == "</s>" and 0 <= struck < token.start()):
            return token.start()
    return None


def _first_answer(text: str, start: int) -> int | None:
    """Where the first answer after `start` ends; None without one."""
    boxes = [box.end for box in find_boxes(text) if box.start >= start and box.content and not box.escaped]
    stated = _STATED.search(text, start)
    return min([*boxes, *([stated.end()] if stated else [])], default=None)
