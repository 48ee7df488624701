r"""Read the letter of an option in an answer: `B`, `(B)`, `\text{B}`, `**B.**`. In time linear in the answer."""

from __future__ import annotations

import re

LONGEST = 4000  # characters; no answer that names an option is longer
_WRAPPED = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathsf|mbox|boldsymbol)\s*\{([^{}]*)\}|\*\*([^*]*)\*\*|\$([^$]*)\$"
)
_MOST_WRAPPERS = 3  # such as $\textbf{(B)}$
_LETTER = re.compile(r"\(([A-Za-z])\)|([A-Za-z])[).:]?")
_LABELLED = re.compile(r"(?:\(([A-Z])\)|([A-Z])[).:])\s*(\S.*)", re.DOTALL)


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
    match = _LETTER.fullmatch(without_markup(answer))
    return (match[1] or match[2]) if match else None


def letter_and_text(answer: str) -> tuple[str, str] | None:
    """The letter and the text of an answer such as `(B) 42`; None for anything else."""
    match = _LABELLED.fullmatch(without_markup(answer)) if len(answer) <= LONGEST else None
    return (match[1] or match[2], match[3]) if match else None
