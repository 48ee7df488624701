r"""Read the letter of an option in an answer: `B`, `(B)`, `\text{B}`, `**B.**`. In time linear in the answer."""

from __future__ import annotations

import re

LONGEST = 4000  # characters; no answer that names an option is longer
_WRAPPED = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathsf|mbox|boldsymbol)\s*\{([^{}]*)\}|\*\*([^*]*)\*\*|\$([^$]*)\$"
)
_MOST_WRAPPERS = 3  # such as $\textbf{(B)}$
_ANNOUNCED = r"(?:(?:[Tt]he )?(?:[Ff]inal |[Cc]orrect )?[Aa]nswer(?: is)?[\s:~]*+)?"
_NAMED = rf"{_ANNOUNCED}(?:(?:[Oo]ption|[Cc]hoice)[\s:~]*+)?"
_LETTER = re.compile(rf"{_NAMED}(?:\(([A-Za-z])\)|\[([A-Za-z])\]|([A-Za-z])[).:]?)")
_OTHER_OPTION = re.compile(r"(?:or|and|not|is|are)\b|[,;/&]|\\text\s*\{\s*(?:or|and)\b|\(?[A-J]\)?[).:]*$")
_SPACE = re.compile(r"\\(?:[ ,;:!]|q?quad(?![a-zA-Z]))|~")
_LABELLED = re.compile(
    rf"{_NAMED}(?:\(([A-Z])\)|([A-Z])(?![A-Za-z_^'(]))(?:[\s).:,;=–—]|-{{1,3}}(?=\s))*+(\S.*)", re.DOTALL
)
_MARKED = re.compile(rf"{_NAMED}(?:\([A-J]\)|[A-J](?:[).:]|\s+[-–—]+\s))\s*\S|{_NAMED}\(?[A-J][).:]*$", re.DOTALL)
_SET_APART = re.compile(r"(?:\\(?:text|mathrm|mathbf)[a-z]*\s*\{([^{}]*)\}|\*\*([^*]*)\*\*|\$([^$]*)\$)(.*)", re.DOTALL)


def without_markup(answer: str) -> str:
    """The answer without white space, dollar signs and commands for type around the whole of it."""
    text = answer[: LONGEST + 1].strip()
    for _ in range(_MOST_WRAPPERS):
        if (match := _WRAPPED.fullmatch(text)) is None:
            break
        text = (match[1] or match[2] or match[3] or "").strip()
    return text


def bare_letter(answer: str) -> str | None:
    """The letter that is the whole answer, as it is written; None for anything else, such as `B or C`."""
    if len(answer) > LONGEST:
        return None
    match = _LETTER.fullmatch(without_markup(answer)) or _LETTER.fullmatch(_plain_label(answer))
    return (match[1] or match[2] or match[3]) if match else None


def letter_and_text(answer: str) -> tuple[str, str] | None:
    r"""The letter and the text of an answer such as `(B) 42`, `B - 42`, `\textbf{(B)}\ 42`; None for any other."""
    if len(answer) > LONGEST:
        return None
    match = _LABELLED.fullmatch(_plain_label(answer))
    return (match[1] or match[2], match[3]) if match else None


def labelled_letter(answer: str) -> str | None:
    """The letter that is marked as an option's at the head of an answer, whatever its text says; None for another."""
    labelled = letter_and_text(answer) if names_option(answer) else None
    return labelled[0] if labelled and not _OTHER_OPTION.match(labelled[1]) else None


def names_option(answer: str) -> bool:
    """Whether an answer is a letter, or begins with one that is marked as an option's: `(B) 42` or `B. 42`."""
    return len(answer) <= LONGEST and _MARKED.match(_plain_label(answer)) is not None


def _plain_label(answer: str) -> str:
    """The answer without markup around it or around its first part, and with LaTeX's spaces as spaces."""
    text = without_markup(_SPACE.sub(" ", answer))
    match = _SET_APART.fullmatch(text)
    return f"{(match[1] or match[2] or match[3] or '').strip()} {match[4].strip()}" if match else text
