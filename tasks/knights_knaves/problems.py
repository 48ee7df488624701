"""Knights and Knaves problems with exactly one solution, drawn as K-and-K's sampler draws them.

Everybody says one thing. The six forms of statement are equally likely, and so are the people; nobody says "I am a
knave" or makes the same claim twice (Xie et al., arXiv:2410.23123; their depth 2 and width 2). Puzzles without a
solution, or with several, are drawn again.

Training and held-out problems are disjoint: the split depends on a hash of the statements, whatever the names and the
wording.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from system.errors import UserError
from tasks import problems as all_problems
from tasks.knights_knaves import puzzles
from tasks.knights_knaves.puzzles import Claim, Statement
from tasks.problems import SPLITS, Problem, generated_id

TASK = "knights_knaves"
TRIES = 100_000  # draws before giving up on a problem


def _draw_statement(speaker: int, people: int, forms: Sequence[str], rng: random.Random) -> Statement:
    form = rng.choice(list(forms))
    claims: list[Claim] = []
    while len(claims) < (1 if form in ("is", "not") else 2):
        claim = Claim(rng.randrange(people), rng.random() < 0.5)
        if claim not in claims and claim != Claim(speaker, False):
            claims.append(claim)
    return Statement(form, tuple(claims))


def split_of(statements: Sequence[Statement]) -> str:
    """The split that a puzzle belongs to, whatever its names and its wording."""
    key = repr([(form, *((person, knight) for person, knight in claims)) for form, claims in statements])
    return all_problems.split_of(key)


def answer(names: Sequence[str], knights: Sequence[bool]) -> str:
    """The list that Logic-RL asks for: `(1) Zoey is a knight`, a line for each person."""
    return "\n".join(
        f"({place}) {name} is a {'knight' if knight else 'knave'}"
        for place, (name, knight) in enumerate(zip(names, knights, strict=True), start=1)
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
        seed: of all draws.
        people: how many people there may be (2 to 8), taken in turn.
        forms: which forms of statement (puzzles.FORMS).
        names: people are called by the first so many of NAMES.
        wording: `full` or `short`.

    Raises:
        UserError: an argument out of its range, or no more puzzles of that kind.
    """
    if split not in SPLITS or wording not in puzzles.WORDINGS or not set(forms) <= set(puzzles.FORMS):
        raise UserError(
            f"knights_knaves has the splits {SPLITS}, the wordings {puzzles.WORDINGS} and the forms "
            f"{tuple(puzzles.FORMS)}, not '{split}', '{wording}' and {tuple(forms)}"
        )
    if not all(2 <= count <= 8 for count in people) or not max(people) <= names <= len(puzzles.NAMES):
        raise UserError(
            f"knights_knaves needs 2 to 8 people and as many names, up to {len(puzzles.NAMES)}; found {people}, {names}"
        )
    rng = random.Random(f"knights_knaves/{split}/{seed}")
    seen: set[str] = set()
    return [
        _draw(people[index % len(people)], split, forms, puzzles.NAMES[:names], wording, seen, rng)
        for index in range(rows)
    ]


def _draw(
    people: int,
    split: str,
    forms: Sequence[str],
    names: Sequence[str],
    wording: str,
    seen: set[str],
    rng: random.Random,
) -> Problem:
    for _ in range(TRIES):
        statements = [_draw_statement(speaker, people, forms, rng) for speaker in range(people)]
        if split_of(statements) != split or len(found := puzzles.solutions(statements)) != 1:
            continue
        chosen = rng.sample(list(names), people)
        question = puzzles.write_question(statements, chosen, wording, rng)
        if question not in seen:
            seen.add(question)
            meta = {"names": chosen, "knights": list(found[0]), "people": people}
            return Problem(generated_id(f"{people}-{split}", question), TASK, question, answer(chosen, found[0]), meta)
    raise UserError(
        f"knights_knaves found no further puzzle of {people} people ({split}) after {len(seen):,}: ask for fewer rows, "
        "or for more forms and names"
    )
