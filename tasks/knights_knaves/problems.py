"""Knights and Knaves problems with exactly one solution, sampled as K-and-K samples them.

Everybody says one thing. The six forms of statement are equally likely, and so are the people; nobody says "I am a
knave" or makes the same claim twice (Xie et al., arXiv:2410.23123; their depth 2 and width 2). Puzzles without a
solution, or with several, are sampled again.

Training and held-out problems are disjoint: the split depends on a hash of the statements, whatever the names and the
wording.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from system.errors import UserError
from tasks.knights_knaves import puzzles
from tasks.knights_knaves.puzzles import Claim, Statement
from tasks.problem_generation import ProblemSampler, check_names
from tasks.problems import Problem

TASK = "knights_knaves"
TRIES = 100_000  # for one more puzzle before there counts as none


def _sample_statement(speaker: int, people: int, forms: Sequence[str], rng: random.Random) -> Statement:
    form = rng.choice(list(forms))
    claims: list[Claim] = []
    while len(claims) < (1 if form in ("is", "not") else 2):
        claim = Claim(rng.randrange(people), rng.random() < 0.5)
        if claim not in claims and claim != Claim(speaker, False):
            claims.append(claim)
    return Statement(form, tuple(claims))


def identity(statements: Sequence[Statement]) -> str:
    """What decides about the split of a puzzle, whatever its names and its wording."""
    return repr([(form, *((person, knight) for person, knight in claims)) for form, claims in statements])


def answer_list(names: Sequence[str], knights: Sequence[bool]) -> str:
    """The list that Logic-RL asks for: `(1) Zoey is a knight`, a line for each person."""
    return "\n".join(
        f"({number}) {name} is a {'knight' if knight else 'knave'}"
        for number, (name, knight) in enumerate(zip(names, knights, strict=True), start=1)
    )


def generate(
    rows: int,
    split: str,
    seed: int,
    people: Sequence[int],
    forms: Sequence[str] = tuple(puzzles.FORMS),
    names: int = len(puzzles.NAMES),
    wording: str = "full",
) -> list[Problem]:
    """`rows` distinct puzzles of one split; the same for the same arguments.

    Args:
        rows: how many.
        split: `train` or `test`.
        seed: of every choice.
        people: how many people there may be (2 to 8), taken in turn.
        forms: which forms of statement (puzzles.FORMS).
        names: people are called by the first so many of NAMES.
        wording: `full` or `short`.

    Raises:
        UserError: an argument out of its range, or no more puzzles of that kind.
    """
    check_names(TASK, "wording", [wording], puzzles.WORDINGS)
    check_names(TASK, "form", forms, puzzles.FORMS)
    if not all(2 <= count <= 8 for count in people) or not max(people) <= names <= len(puzzles.NAMES):
        raise UserError(
            f"puzzles have 2 to 8 people and as many names or more, up to {len(puzzles.NAMES)}, not {people}, {names}",
            code="argument-out-of-range",
        )
    sampler = ProblemSampler(TASK, split, seed)
    rng = sampler.rng

    def attempt(count: int) -> Problem | None:
        statements = [_sample_statement(speaker, count, forms, rng) for speaker in range(count)]
        if not sampler.in_split(identity(statements)) or len(solutions := puzzles.solutions(statements)) != 1:
            return None
        called = rng.sample(puzzles.NAMES[:names], count)
        question = puzzles.write_question(statements, called, wording, rng)
        if not sampler.is_new(question):
            return None
        meta = {"names": called, "knights": list(solutions[0]), "people": count}
        return sampler.problem(question, answer_list(called, solutions[0]), meta, group=str(count))

    return sampler.generate(rows, attempt, people, tries=TRIES, hint="for more forms and names")
