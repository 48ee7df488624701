"""Stories of things that are bought and given away, generated.

    level 1   Tom has 12 coins. Tom gives 5 away. How many coins does Tom have now?
    level 2   Mia has 7 apples. Mia buys 5 more and then gives 3 away. How many apples does Mia have now?

The level is the number of steps. Numbers are from 2 to `largest`, and nobody gives away more than there is. Training
and held-out problems are disjoint: the split depends on a hash of the calculation, whatever the wording. Stories of one
calculation are a cluster: there are few calculations, and a model that knows one knows it in each wording.
"""

from __future__ import annotations

from collections.abc import Sequence

from tasks.problem_generation import ProblemSampler
from tasks.problems import Problem

TASK = "word_problems"
LARGEST = 20
TRIES = 20_000
NAMES = ("Mia", "Tom", "Ana", "Leo", "Zoe", "Sam")
THINGS = ("apples", "books", "cards", "coins", "eggs")


def write_story(name: str, things: str, numbers: Sequence[int]) -> str:
    """The story of a first number and the changes to it; a negative one is given away."""
    first, *changes = numbers
    told = [f"buys {change} more" if change > 0 else f"gives {-change} away" for change in changes]
    return f"{name} has {first} {things}. {name} {' and then '.join(told)}. How many {things} does {name} have now?"


def generate(rows: int, split: str, seed: int, levels: Sequence[int] = (1,), largest: int = LARGEST) -> list[Problem]:
    """`rows` distinct problems of one split, the levels in turn; the same for the same arguments.

    Args:
        rows: how many.
        split: `train` or `test`.
        seed: of every choice.
        levels: numbers of steps.
        largest: number in a question.

    Raises:
        UserError: an unknown split, or more rows than there are problems.
    """
    sampler = ProblemSampler(TASK, split, seed)

    def attempt(level: int) -> Problem | None:
        rng = sampler.rng
        numbers = [rng.randint(2, largest), *(rng.choice((1, -1)) * rng.randint(2, largest) for _ in range(level))]
        calculation = "".join(f"{number:+}" for number in numbers).removeprefix("+")
        question = write_story(rng.choice(NAMES), rng.choice(THINGS), numbers)
        left_over = [sum(numbers[: step + 1]) for step in range(level + 1)]
        if min(left_over) < 0 or not sampler.in_split(calculation) or not sampler.is_new(question):
            return None
        problem = sampler.problem(question, str(left_over[-1]), {"level": level, "expression": calculation})
        return problem._replace(cluster=calculation)

    return sampler.generate(rows, attempt, list(levels), tries=TRIES)
