"""24 points problems: sets of cards, with and without a solution; each set once, whatever the order of its cards.

Training and held-out sets share no multiset of cards: the split depends on a hash of the sorted cards.
"""

from __future__ import annotations

import itertools

from tasks.game24 import solver
from tasks.problem_generation import ProblemSampler, check_names
from tasks.problems import Problem

TASK = "game24"
NONE = "none"  # the answer where there is no solution
WORDINGS = {
    "full": "Make 24 with the cards {cards}, each used exactly once, by +, -, *, / and brackets.",
    "short": "Cards {cards}.",
}


def identity(cards: tuple[int, ...]) -> str:
    """What decides about the split of a set of cards."""
    return f"24 from {sorted(cards)}"


def generate(
    rows: int,
    split: str,
    seed: int,
    cards: int = 4,
    largest: int = 13,
    solvable: bool | None = True,
    whole: bool = False,
    wording: str = "full",
) -> list[Problem]:
    """`rows` different sets of cards of one split, the same for the same arguments.

    Args:
        rows: how many.
        split: `train` or `test`.
        seed: of the choice and of the order of cards.
        cards: in each set.
        largest: cards are from 1 to this.
        solvable: with a solution (true), without one (false), or both as they come (null).
        whole: of those with a solution, only those that can be solved without fractions and negative numbers.
        wording: a name in WORDINGS.

    Raises:
        UserError: an unknown split or wording, or more rows than there are sets.
    """
    check_names(TASK, "wording", [wording], WORDINGS)
    sampler = ProblemSampler(TASK, split, seed)

    def problem_of(hand: tuple[int, ...]) -> Problem | None:
        solution = solver.solve(hand, whole)
        if solvable is not None and solvable != (solution is not None):
            return None
        if solution is None and whole and solver.solve(hand) is not None:  # solved, but by a fraction on the way
            return None
        ordered = sampler.rng.sample(hand, len(hand))
        text = WORDINGS[wording].format(cards=(", " if wording == "full" else " ").join(map(str, ordered)))
        answer = NONE if solution is None else solver.write_expression(hand, solution)
        return sampler.problem(text, answer, {"cards": ordered, "solvable": solution is not None})

    every = itertools.combinations_with_replacement(range(1, largest + 1), cards)
    hands = [hand for hand in every if sampler.in_split(identity(hand))]
    sampler.rng.shuffle(hands)
    return sampler.first(rows, map(problem_of, hands), hint="for larger cards")
