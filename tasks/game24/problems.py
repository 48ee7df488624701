"""24 points problems: sets of cards, with and without a solution; each set once, whatever the order of its cards.

Training and held-out sets share no multiset of cards: the split depends on a hash of the sorted cards.
"""

from __future__ import annotations

import itertools
import random

from system.errors import UserError
from tasks import problems as all_problems
from tasks.game24 import solver
from tasks.problems import SPLITS, Problem, generated_id

TASK = "game24"
NONE = "none"  # the answer where there is no solution
WORDINGS = {
    "full": "Make 24 with the cards {cards}, each used exactly once, by +, -, *, / and brackets.",
    "short": "Cards {cards}.",
}


def split_of(cards: tuple[int, ...]) -> str:
    """The split that a set of cards belongs to."""
    return all_problems.split_of(f"24 from {sorted(cards)}")


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
    if split not in SPLITS or wording not in WORDINGS:
        raise UserError(
            f"game24 has the splits {SPLITS} and the wordings {tuple(WORDINGS)}, not '{split}', '{wording}'"
        )
    rng = random.Random(f"game24/{split}/{seed}")
    every = itertools.combinations_with_replacement(range(1, largest + 1), cards)
    sets = [chosen for chosen in every if split_of(chosen) == split]
    rng.shuffle(sets)
    found: list[Problem] = []
    for chosen in sets:
        if len(found) == rows:
            break
        solution = solver.solve(chosen, whole)
        if solvable in (None, solution is not None) and (solution or not whole or solver.solve(chosen) is None):
            found.append(problem(chosen, solution, split, wording, rng))
    if len(found) < rows:
        raise UserError(
            f"game24 has only {len(found):,} such sets of {cards} cards from 1 to {largest} ({split}): ask for fewer "
            "rows, or for larger cards"
        )
    return found


def problem(
    cards: tuple[int, ...],
    solution: tuple[solver.Operation, ...] | None,
    split: str,
    wording: str,
    rng: random.Random,
) -> Problem:
    """One set of cards as a problem.

    Args:
        cards: sorted.
        solution: its operations, or None.
        split: for the name.
        wording: a name in WORDINGS.
        rng: puts the cards into an order.
    """
    shown = rng.sample(cards, len(cards))
    text = WORDINGS[wording].format(
        cards=", ".join(map(str, shown)) if wording == "full" else " ".join(map(str, shown))
    )
    answer = NONE if solution is None else solver.expression(cards, solution)
    return Problem(generated_id(split, text), TASK, text, answer, {"cards": shown, "solvable": solution is not None})
