"""Two statements and a third, of which nobody knows whether it follows, generated as in reasoning-gym 0.1.25.

    Consider these statements:
    1. All adults are chefs
    2. Some chefs are not whales

    Does it logically follow that:
    Some adults are whales?
    (Answer Yes or No)

Three in ten are inversions: the third statement is one of the two turned around. Seven in ten are valid by the labels
of reasoning-gym, of which some are wrong (forms.labelled_valid); the answer is what follows, the label is in `meta`.
Problems of one form, whatever their nouns, are a cluster.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from tasks.problem_generation import ProblemSampler, check_names
from tasks.problems import Problem
from tasks.syllogisms.forms import (
    ALL,
    NO,
    QUANTIFIERS,
    SOME,
    SOME_NOT,
    Statement,
    follows,
    labelled_converse,
    labelled_valid,
)

TASK = "syllogisms"
VALID, INVERSIONS = 0.7, 0.3  # shares, as published
TRIES = 20_000
WORDINGS = {
    "published": "Consider these statements:\n1. {}\n2. {}\n\nDoes it logically follow that:\n{}?\n(Answer Yes or No)",
    "short": "1. {}. 2. {}. Does it follow that: {}?",
}
NOUNS = (
    "adults", "ants", "artists", "bees", "birds", "cats", "chefs", "children", "dogs", "dolphins", "doctors",
    "elephants", "engineers", "fish", "horses", "humans", "insects", "lawyers", "lions", "mammals", "musicians",
    "parents", "philosophers", "reptiles", "scientists", "spiders", "students", "teachers", "tigers", "whales",
    "writers",
)  # fmt: skip


class Syllogism(NamedTuple):
    """A problem without nouns: what is stated of the terms 0, 1 and 2, what is asked, and the published label."""

    premises: tuple[Statement, Statement]
    conclusion: Statement
    labelled: bool

    @property
    def form(self) -> str:
        """Such as `all 0 1, some 1 2: some 0 2`."""
        first, second, conclusion = (" ".join(map(str, statement)) for statement in (*self.premises, self.conclusion))
        return f"{first}, {second}: {conclusion}"


def sample_syllogism(rng: random.Random) -> Syllogism:
    """Two statements and a conclusion on their first and last term, valid in VALID of all by the published labels."""
    valid = rng.random() < VALID
    while True:
        first, second, third = (rng.choice(QUANTIFIERS) for _ in range(3))
        premises, conclusion = (Statement(first, 0, 1), Statement(second, 1, 2)), Statement(third, 0, 2)
        if labelled_valid(premises, conclusion) == valid:
            return Syllogism(premises, conclusion, valid)


def sample_inversion(rng: random.Random) -> Syllogism:
    """Two statements and one of them turned around, valid in VALID of all."""
    quantifiers, chosen, valid = [rng.choice(QUANTIFIERS) for _ in range(2)], rng.randrange(2), rng.random() < VALID
    if valid and quantifiers[chosen] == SOME_NOT:  # cannot be turned around
        quantifiers[chosen] = rng.choice((ALL, NO, SOME))
    converse = labelled_converse(quantifiers[chosen])
    turned = converse if valid and converse else rng.choice([each for each in (ALL, NO, SOME) if each != converse])
    premises = (Statement(quantifiers[0], 0, 1), Statement(quantifiers[1], 1, 2))
    return Syllogism(premises, Statement(turned, chosen + 1, chosen), valid)


def generate(rows: int, split: str, seed: int, wording: str = "published") -> list[Problem]:
    """`rows` distinct problems of one split; the same for the same arguments.

    Args:
        rows: how many.
        split: `train` or `test`.
        seed: of every choice.
        wording: a name in WORDINGS.

    Raises:
        UserError: an unknown split or wording, or more rows than there are problems.
    """
    check_names(TASK, "wording", [wording], WORDINGS)
    sampler = ProblemSampler(TASK, split, seed)

    def attempt(_: str) -> Problem | None:
        rng = sampler.rng
        syllogism = (sample_inversion if rng.random() < INVERSIONS else sample_syllogism)(rng)
        terms = rng.sample(NOUNS, 3)
        statements = [statement.text(terms) for statement in (*syllogism.premises, syllogism.conclusion)]
        if not sampler.in_split("\n".join(statements)) or not sampler.is_new("\n".join(statements)):
            return None
        return _problem(sampler, WORDINGS[wording].format(*statements), terms, syllogism)

    return sampler.generate(rows, attempt, tries=TRIES)


def _problem(sampler: ProblemSampler, question: str, terms: list[str], syllogism: Syllogism) -> Problem:
    valid = follows(syllogism.premises, syllogism.conclusion)
    label = answer_text(syllogism.labelled)
    problem = sampler.problem(question, answer_text(valid), {"terms": terms, "published_answer": label})
    return problem._replace(cluster=syllogism.form)


def answer_text(valid: bool) -> str:
    """Yes or No."""
    return "Yes" if valid else "No"
