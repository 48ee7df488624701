"""Knights and Knaves: who tells the truth, from what each of two to eight people says?

Data: K-and-K (Xie et al., arXiv:2410.23123) in Logic-RL's files, https://github.com/Unakar/Logic-RL.

    question   A very special island … You meet 2 inhabitants: Zoey, and Noah. Zoey said that Noah is a knave. …
    right      (1) Zoey is a knight (2) Noah is a knave
    wrong      (1) Zoey is a knave (2) Noah is a knight

>>> answers = ("(1) Zoey is a knight (2) Noah is a knave", "(1) Zoey is a knave (2) Noah is a knight")
>>> [TASK.verify(answer, "", {"names": ["Zoey", "Noah"], "knights": [True, False]}) for answer in answers]
['correct', 'wrong']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.knights_knaves import verifier
from tasks.task import Task


class KnightsKnaves(Task):
    """The answer says of each person whether they are a knight or a knave."""

    answer_format = "tagged"

    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "") -> str:
        """Judge the identities of all people. See Task.verify."""
        try:
            return verifier.verify(answer, meta["names"], meta["knights"])
        except (KeyError, TypeError, ValueError):  # of the problem: no answer makes the verifier raise
            return "ungradable"

    def level(self, meta: Mapping[str, Any]) -> str | None:
        """How many people there are."""
        return str(len(meta["names"])) if "names" in meta else None


TASK = KnightsKnaves("knights_knaves")
