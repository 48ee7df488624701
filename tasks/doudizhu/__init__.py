"""Two-player dou dizhu endgames with open hands: play what wins if both play perfectly.

    question   Your cards: 3 3 K K 2
               Your opponent's cards: 5 6 6 A A
               Your opponent has just played: Q
    right      2, or any other legal move that wins, such as K
    wrong      pass

>>> meta = {"mine": "3 3 K K 2", "theirs": "5 6 6 A A", "last": "Q"}
>>> [TASK.verify(answer, "2", meta) for answer in ("2", "K", "pass")]
['correct', 'correct', 'wrong']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.doudizhu import game
from tasks.doudizhu.cards import read_cards, write_cards
from tasks.task import Task


class DouDizhu(Task):
    """The answer is the cards to play, or `pass`."""

    answer_format = "tagged"

    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "") -> str:
        """Judge a move by the exact solver. See Task.verify."""
        try:
            move = game.read_move(answer, meta)
            if move is not None:
                return "correct" if game.value(move, meta) else "wrong"
        except (KeyError, TypeError, ValueError):
            return "ungradable"
        return "format_error" if read_cards(answer) is None else "wrong"

    def canonical_answer(self, answer: str) -> str:
        """The cards in order. See Task.canonical_answer."""
        cards = read_cards(answer)
        return super().canonical_answer(answer) if cards is None else write_cards(cards)


TASK = DouDizhu("doudizhu")
