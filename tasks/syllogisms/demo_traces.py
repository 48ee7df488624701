"""Demo traces of syllogisms: what the statements say, what follows of the terms in question, and the answer.

    The statements say: All adults are chefs, Some chefs are not whales.
    So nothing follows about adults and whales.

Some traces take every link through the middle term for a conclusion, as the published labels do, and some guess.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tasks.problems import Problem
from tasks.prompts import Prompt
from tasks.syllogisms.forms import QUANTIFIERS, Statement, follows, labelled_valid, statements_in, strongest
from tasks.syllogisms.problems import answer_text
from tasks.trace_parts import answer_after_thinking


@dataclass(frozen=True)
class Habits:
    """Shares from 0 to 1; the other traces guess what follows."""

    sound: float  # conclude what follows
    linked: float  # and where nothing does, what the published labels have
    format_kept: float
    slip: float  # of the conclusions, a guess


def strata(problem: Problem) -> str:
    """Every answer is equally frequent in traces."""
    return problem.answer or ""


def _linked(premises: tuple[Statement, ...], subject: int, predicate: int) -> Statement | None:
    """The strongest conclusion that the published labels call valid; what follows, of a statement turned around."""
    if (subject, predicate) != (0, 2):
        return strongest(premises, subject, predicate)
    statements = (Statement(quantifier, subject, predicate) for quantifier in QUANTIFIERS)
    return next((statement for statement in statements if labelled_valid(premises, statement)), None)


def completion(problem: Problem, prompt: Prompt, habits: Habits, rng: random.Random) -> str:
    """What follows a prompt that ends with `<think>`: two lines and the answer."""
    terms = problem.meta["terms"]
    *premises, asked_for = statements_in(problem.question, terms)
    subject, predicate = asked_for.subject, asked_for.predicate
    habit, guess = rng.random(), Statement(rng.choice(QUANTIFIERS), subject, predicate)
    if rng.random() < habits.slip or habit >= habits.sound + habits.linked:
        conclusion: Statement | None = rng.choice((guess, None))
    else:
        conclude = strongest if habit < habits.sound else _linked
        conclusion = conclude(tuple(premises), subject, predicate)
    said = ", ".join(statement.text(terms) for statement in premises)
    nothing = f"nothing follows about {terms[subject]} and {terms[predicate]}"
    what = conclusion.text(terms) if conclusion else nothing
    valid = conclusion is not None and follows((conclusion,), asked_for)
    thought = f"The statements say: {said}.\nSo {what[0].lower()}{what[1:]}.\n"
    return answer_after_thinking(thought, answer_text(valid), habits.format_kept, rng)
