"""Syllogisms: does a third statement follow from two?

Problems as those of reasoning-gym 0.1.25 (https://github.com/open-thought/reasoning-gym), on which Biswas trained small
models (https://towardsdatascience.com/how-to-finetune-small-language-models-to-think-with-reinforcement-learning/).

    question   1. All adults are chefs. 2. Some chefs are not whales. Does it follow that: Some adults are not whales?
    right      No          (the chefs that are no whales may all be others)
    wrong      Yes         (the published label)

>>> meta = {"published_answer": "Yes"}
>>> [TASK.verify(answer, "No", meta, grader=grader) for grader in ("", PUBLISHED) for answer in ("No", "yes.", "maybe")]
['correct', 'wrong', 'format_error', 'wrong', 'correct', 'format_error']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tasks.task import Grader, Task

PUBLISHED = "published-rules"
ANSWERS = ("Yes", "No")


class Syllogisms(Task):
    """The answer is Yes or No.

    Graders: by default logic, with at least one thing of each kind; `published-rules`, reasoning-gym's labels.
    """

    answer_format = "tagged"
    graders: ClassVar[Mapping[str, Grader]] = {PUBLISHED: Grader()}

    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "") -> str:
        """Compare the answers. See Task.verify."""
        right = str(meta.get("published_answer")) if grader == PUBLISHED else gold
        if right not in ANSWERS:
            return "ungradable"
        if (stated := self.canonical_answer(answer)) not in ANSWERS:
            return "format_error"
        return "correct" if stated == right else "wrong"

    def canonical_answer(self, answer: str) -> str:
        """Yes or No, if it is one of them in any case, perhaps with a full stop. See Task.canonical_answer."""
        word = super().canonical_answer(answer).removesuffix(".").capitalize()
        return word if word in ANSWERS else super().canonical_answer(answer)


TASK = Syllogisms("syllogisms")
