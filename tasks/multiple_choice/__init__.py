"""Multiple choice: a question and its options, of which one is right; the answer is that option's letter.

Data: GPQA (https://huggingface.co/datasets/Idavidrein/gpqa) and MMLU-Pro (https://huggingface.co/datasets/TIGER-Lab/MMLU-Pro).

    question   Which of these is a prime number?
               Options:
               A. 9
               B. 7
               Answer with the letter of the right option alone.
    answer     B
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tasks import option_letters
from tasks.problems import canonical
from tasks.task import Grader, Task

LETTERS = string.ascii_uppercase
ELLIPSES = ("", "..", "...", "…", r"\ldots", r"\dots")  # in place of the option's text
_MARKUP = re.compile(r"\\(?:text|mathrm|mathbf)[a-z]*(?![a-z])|\\[ ,;:!]|[{}$~\s]|\*\*")
INSTRUCTION = "\nAnswer with the letter of the right option alone."


def question_text(stem: str, options: Sequence[str]) -> str:
    """The text of a problem: MMLU-Pro's layout, and the instruction that makes it complete under any prompt."""
    lines = [f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False)]
    return "\n".join([stem, "Options:", *lines]) + INSTRUCTION


class MultipleChoice(Task):
    """The answer is one letter: if the right option is B, only `B` is right (the GSM8K notes, section 1.1).

    As in the other tasks, what is around the letter does not count (`(B)`, `**B.**`), nor does the option's own text
    after it (`B. 7`). Grader: `strict`, the letter and nothing else.
    """

    answer_format = "boxed"
    graders: ClassVar[Mapping[str, Grader]] = {"strict": Grader()}
    same_options = True

    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "") -> str:
        """Compare the letters; any other text is wrong, as the document says. See Task.verify."""
        options = meta.get("options") or ()
        if not gold or gold not in list(LETTERS[: len(options) or None]):
            return "ungradable"
        chosen = answer if grader == "strict" else _chosen_letter(answer, options)
        return "correct" if chosen == gold else "wrong"

    def canonical_answer(self, answer: str) -> str:
        """The letter alone. See Task.canonical_answer."""
        return option_letters.bare_letter(answer) or super().canonical_answer(answer)

    def without_instruction(self, question: str) -> str:
        """Without our instruction. See Task.without_instruction."""
        return question.removesuffix(INSTRUCTION)


def _chosen_letter(answer: str, options: Sequence[str]) -> str | None:
    """The letter that an answer names, alone or with that option's own text; with any, if no texts are known."""
    if not options and (letter := option_letters.labelled_letter(answer)):
        return letter
    labelled = option_letters.letter_and_text(answer)
    if labelled is None:
        return option_letters.bare_letter(answer)
    letter, text = labelled
    index = LETTERS.index(letter)
    same = index < len(options) and _bare_text(text) in (*ELLIPSES, _bare_text(str(options[index])))
    return letter if same else None


def _bare_text(text: str) -> str:
    """An option's text without commands for type, dollar signs and white space, which models leave out or add."""
    return canonical(_MARKUP.sub("", option_letters.without_markup(text.strip().removesuffix("."))))


TASK = MultipleChoice("multiple_choice")
