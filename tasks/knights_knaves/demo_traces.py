"""Demo traces of Knights and Knaves: assignments are tried in order, and some traces check too little.

A try states everybody's identity and checks one statement after another: its words, whether each claim holds, and
whether that fits the speaker. It ends at the first that does not. Tries are numbered: the first has knights only, and
the last person changes fastest.

    1 Emma knight Liam knight
    Emma: Liam is a knave. Liam is a knave no Emma knight fails
    2 Emma knight Liam knave
    Emma: Liam is a knave. Liam is a knave yes Emma knight fits
    Liam: Emma is a knave and Liam is a knave. Emma is a knave no Liam is a knave yes Liam knave fits
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.knights_knaves import problems as knights_knaves_problems
from tasks.knights_knaves.puzzles import NAMES, Claim, Statement, read_question, statement_text
from tasks.problems import Problem
from tasks.prompts import Prompt
from tasks.trace_parts import answer_after_thinking

KINDS = {True: "knight", False: "knave"}


@dataclass(frozen=True)
class Habits:
    """Shares from 0 to 1; the other traces check only the first statement."""

    thorough: float  # check all statements
    two: float  # check the first two statements, which is enough for two people
    unchecked: float  # take the first assignment
    format_kept: float
    slip: float  # of the claims, judged wrongly


def phrases(problems: Mapping[str, Any]) -> list[str]:
    """The claims and assignments of the names in the problems, and verdicts. See tasks.task.Traces."""
    texts = [" fits\n", " fails\n"]
    for name in NAMES[: problems["names"]]:
        texts.append(f"{name}:")
        for kind in KINDS.values():
            texts += [f" {name} is a {kind}", f" {name} is not a {kind}", f" {name} {kind}"]
    return texts


def _check_line(
    speaker: int, statement: Statement, names: Sequence[str], assigned: Sequence[bool], slip: float, rng: random.Random
) -> tuple[str, bool]:
    """The line that checks one statement, and whether it fits."""
    judged, checked = [], ""
    for person, knight in statement.claims:
        holds = (assigned[person] == knight) != (statement.form == "not")
        judged.append(holds != (rng.random() < slip))
        form = "not" if statement.form == "not" else "is"
        claim = statement_text(Statement(form, (Claim(person, knight),)), names)
        checked += f" {claim} {'yes' if judged[-1] else 'no'}"
    # The statement's own form decides over the claims as judged: the first is true, and so on.
    form = "is" if statement.form == "not" else statement.form
    over_judged = Statement(form, tuple(Claim(index, True) for index in range(len(judged))))
    fits = over_judged.holds(judged) == assigned[speaker]
    said = f"{names[speaker]}: {statement_text(statement, names)}."
    return f"{said}{checked} {names[speaker]} {KINDS[assigned[speaker]]} {'fits' if fits else 'fails'}\n", fits


def completion(problem: Problem, prompt: Prompt, habits: Habits, rng: random.Random) -> str:
    """What follows a prompt that ends with `<think>`: the tries and the answer."""
    names, statements = read_question(problem.question)
    assignments = list(itertools.product((True, False), repeat=len(names)))
    shares = [habits.thorough, habits.two, habits.unchecked, 1 - habits.thorough - habits.two - habits.unchecked]
    checks, thought = rng.choices([len(names), 2, 0, 1], shares)[0], ""
    for number, assigned in enumerate(assignments, start=1):
        thought += f"{number}{''.join(f' {n} {KINDS[k]}' for n, k in zip(names, assigned, strict=True))}\n"
        for speaker in range(checks):
            line, fits = _check_line(speaker, statements[speaker], names, assigned, habits.slip, rng)
            thought += line
            if not fits:
                break
        else:
            break
    answer = knights_knaves_problems.answer_list(names, assigned)
    return answer_after_thinking(thought, answer, habits.format_kept, rng)
