"""Endgames of two-player dou dizhu with open hands, in which the player to move wins, but not with every move.

Training and held-out problems are disjoint: the split depends on a hash of the position.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from system.errors import UserError
from tasks.doudizhu import solver
from tasks.doudizhu.cards import (
    DECK,
    MOST_CARDS,
    Cards,
    combination,
    legal_moves,
    possible_leads,
    read_cards,
    write_cards,
)
from tasks.problem_generation import ProblemSampler, check_names
from tasks.problems import Problem

TASK = "doudizhu"
TRIES = 2_000  # for one more position before there counts as none
WORDINGS = {
    "full": ("Your cards: {mine}\nYour opponent's cards: {theirs}\n{last}",
             "Your opponent has just played: {last}", "It is your lead."),
    "short": ("mine {mine} theirs {theirs} {last}", "beat {last}", "lead"),
}  # fmt: skip


class Position(NamedTuple):
    """The hand of the player to move, the other hand, and the cards to beat (none: the player leads)."""

    mine: Cards
    theirs: Cards
    last: Cards

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Position:
        """The position of a problem; KeyError, TypeError or ValueError if its `meta` describes none."""
        hands = [read_cards(str(meta[name])) for name in cls._fields]
        mine, theirs, last = (hand or () for hand in hands)
        if None in hands or not mine or not theirs or max(map(len, (mine, theirs, last))) > MOST_CARDS:
            raise ValueError(f"no position: {meta}")
        if not Counter(mine + theirs + last) <= Counter(DECK) or (last and combination(last) is None):
            raise ValueError(f"no such cards: {meta}")
        return cls(mine, theirs, last)

    def meta(self) -> dict[str, Any]:
        """What `from_meta` reads, for a problem table."""
        return {name: write_cards(hand) for name, hand in self._asdict().items()}

    def legal(self) -> list[Cards]:
        """The legal moves."""
        return legal_moves(self.mine, self.last)


def identity(position: Position) -> str:
    """What decides about the split of a position."""
    return f"doudizhu {position}"


def question_text(position: Position, wording: str = "full") -> str:
    """The position in words."""
    hands, beat, lead = WORDINGS[wording]
    last = beat.format(last=write_cards(position.last)) if position.last else lead
    return hands.format(mine=write_cards(position.mine), theirs=write_cards(position.theirs), last=last)


def sample_position(cards: int, rng: random.Random) -> Position:
    """Any position: two hands of so many cards each and, half of the time, something to beat from a third hand."""
    dealt = rng.sample(DECK, 3 * cards)
    mine, theirs, gone = (tuple(sorted(dealt[player * cards : (player + 1) * cards])) for player in range(3))
    last = rng.choice(sorted(possible_leads(gone))) if rng.random() < 0.5 else ()
    return Position(mine, theirs, last)


def generate(rows: int, split: str, seed: int, cards: int = 5, wording: str = "full") -> list[Problem]:
    """`rows` distinct positions of one split, the same for the same arguments.

    Args:
        rows: how many.
        split: `train` or `test`.
        seed: of every choice.
        cards: of each hand, 1 to 5.
        wording: a name in WORDINGS.

    Raises:
        UserError: an argument is out of range, or there are no more positions of that kind.
    """
    check_names(TASK, "wording", [wording], WORDINGS)
    if not 1 <= cards <= MOST_CARDS:
        raise UserError(
            f"hands of dou dizhu have 1 to {MOST_CARDS} cards, not {cards}", code="argument-out-of-range", cards=cards
        )
    sampler = ProblemSampler(TASK, split, seed)

    def attempt(_: str) -> Problem | None:
        position = sample_position(cards, sampler.rng)
        if not sampler.in_split(identity(position)) or not sampler.is_new(identity(position)):
            return None
        winning = solver.winning_moves(*position)
        if not winning or len(winning) == len(position.legal()):
            return None
        meta = {**position.meta(), "level": "one winning move" if len(winning) == 1 else "several winning moves"}
        return sampler.problem(question_text(position, wording), write_cards(winning[0]), meta)

    return sampler.generate(rows, attempt, tries=TRIES)
